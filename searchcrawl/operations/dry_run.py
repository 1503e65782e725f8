"""A run that writes nothing: no lease, no row, no document. It is for trying one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Concatenate, ParamSpec, TypeVar

from searchcrawl import clock
from searchcrawl.render.rendered_page import RenderTrial
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import RunKind

P = ParamSpec("P")
T = TypeVar("T")


class DryRun(Run):
    """A run whose writes are rolled back, and that has no lease.

    ``trial`` is set where its page is rendered to be looked at.
    """

    trial: RenderTrial | None = None

    def write(self, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **names: P.kwargs) -> T:
        """Returns the result of ``work``, whose transaction is rolled back."""
        results: list[T] = []

        def roll_back(transaction: Transaction) -> None:
            results.append(work(transaction, *args, **names))
            raise _RolledBack

        with suppress(_RolledBack):
            self.database.write(roll_back)
        return results[-1]


class _RolledBack(Exception):
    """Rolls a transaction back."""


def build_dry_run(project: Project, source: Source, database: Database) -> DryRun:
    """A run for trying pages of a source; raises ConfigurationError, StoreError."""
    source_id = database.read(run_table.find_source, source.name) or 0
    now_ms = clock.now_ms()
    return DryRun(
        project=project,
        source=source,
        database=database,
        boundary=build_boundary(source),
        source_id=source_id,
        lease=Lease(source_id, 0),
        row=RunRow(id=0, kind=RunKind.MAINTENANCE, started_ms=now_ms, horizon_ms=now_ms),
        fingerprint="",
    )


@contextmanager
def open_dry_run(project: Project, source: Source, database: Database) -> Iterator[DryRun]:
    """The same, with the rewriters of the source open."""
    run = build_dry_run(project, source, database)
    run.rewriting.open(source.name)
    with closing(run.rewriting):
        yield run


def render_all(source: Source) -> Source:
    """The same source, as if its file said that all of its pages are rendered."""
    return source.model_copy(update={"render": source.render.model_copy(update={"mode": "always"})})
