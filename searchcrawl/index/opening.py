"""Chooses the index of a project, and its receivers. A module of its own: they import ``receiver.py``, and this imports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.sources.checking import join_key
from searchcrawl.sources.plugin_classes import import_class
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receiver_errors import METHODS


def open_index(project: Project) -> Receiver:
    """Opens the receiver in the package that ``index.type`` names; requests nothing yet. Its library is loaded here."""
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
