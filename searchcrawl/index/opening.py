"""Chooses the receiver of a project. A module of its own: receivers import ``receiver.py``, and this imports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.sources.project import Project


def open_index(project: Project) -> Receiver:
    """Opens the receiver that ``index.type`` names; requests nothing yet. Its library is loaded only here."""
    if project.index.type == "solr":
        from searchcrawl.index.solr.receiver import SolrReceiver  # noqa: PLC0415  # heavy

        return SolrReceiver(str(project.index.url))
    from searchcrawl.index.local.receiver import LocalReceiver  # noqa: PLC0415  # heavy

    return LocalReceiver(project.index_dir)


@contextmanager
def use_index(project: Project) -> Iterator[Receiver]:
    """The receiver of a project for one command; it is closed afterwards, if it can be."""
    receiver = open_index(project)
    try:
        yield receiver
    finally:
        if isinstance(receiver, SearchIndex):
            receiver.close()
