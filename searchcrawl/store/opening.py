"""Opens the store of a project. The only place that knows how ``store.url`` becomes one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database


def open_store(project: Project, *, patience_seconds: float = 0.0) -> Database:
    """The store of a project; an empty database gets its tables.

    ``patience_seconds`` is how long a store that is away is waited for.
    """
    return Database(project.database_url, project.root, patience_seconds=patience_seconds)


@contextmanager
def use_store(project: Project, *, patience_seconds: float = 0.0) -> Iterator[Database]:
    """The store of a project for one command; it is closed afterwards."""
    with closing(open_store(project, patience_seconds=patience_seconds)) as database:
        yield database
