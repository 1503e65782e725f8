"""Opens the index of a project, and its receivers; a module of its own: they import ``receiver.py``, and this imports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

from searchcrawl.index.receiver import Batch, Receipt, Receiver, SearchIndex
from searchcrawl.sources.checking import join_key
from searchcrawl.sources.plugin_classes import import_class
from searchcrawl.sources.project import FILE, TRIAL_INDEX, Project
from searchcrawl.sources.receivers import METHODS

#: The configuration set for Solr in an installed package; a checkout has it where ``solr/server`` finds it, too.
_INSTALLED: Final = Path(__file__).parent / "solr" / "configset_files"
_OF_CHECKOUT: Final = Path(__file__).parents[2] / "solr" / "configset"


class PlanningReceiver(Receiver):
    """The receiver of ``plan``: accepts everything and keeps nothing, so that no index learns of a plan."""

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Answers as an index would that has room for every document."""
        ids = [*(each.id for each in batch.documents), *(each.id for each in batch.removals)]
        return [Receipt(each, accepted=True) for each in ids]


def open_index(project: Project) -> Receiver:
    """Opens the receiver in the package that ``index.type`` names; requests nothing yet. Its library is loaded here."""
    if project.index.type == TRIAL_INDEX:
        return PlanningReceiver()
    receiver: Receiver = import_module(f"searchcrawl.index.{project.index.type}.receiver").open_receiver(project)
    return receiver


def open_receiver(project: Project, name: str) -> Receiver:
    """Opens the receiver of ``[receivers.NAME]``; requests nothing yet. Raises ConfigurationError for a class that is gone."""
    table = project.receivers[name]
    if table.class_ is None:
        return open_index(project.of_receiver(name))
    key = join_key(("receivers", name, "class"))
    found = import_class(table.class_, METHODS, file=FILE, key=key, root=project.root, arguments=table.arguments)
    receiver: Receiver = found(**table.arguments)
    return receiver


@contextmanager
def use_index(project: Project) -> Iterator[Receiver]:
    """The receiver of a project for one command; it is closed afterwards, if it can be."""
    receiver = open_index(project)
    try:
        yield receiver
    finally:
        if isinstance(receiver, SearchIndex):
            receiver.close()


def find_configset() -> Path:
    """The folder with ``schema.xml`` and ``solrconfig.xml``, from which a core of Solr is made."""
    return _INSTALLED if _INSTALLED.is_dir() else _OF_CHECKOUT
