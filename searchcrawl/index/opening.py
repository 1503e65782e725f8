"""Chooses the receiver of a project. A module of its own: receivers import ``receiver.py``, and this imports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.sources.project import Project


def open_index(project: Project) -> Receiver:
    """Opens the receiver in the package that ``index.type`` names; requests nothing yet. Its library is loaded here."""
    receiver: Receiver = import_module(f"searchcrawl.index.{project.index.type}.receiver").open_receiver(project)
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
