"""Past and running runs, as ``runs`` lists them (J5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from searchcrawl import clock
from searchcrawl.counters import COUNTS
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.run_table import RunRow


def list_runs(database: Database, name: str | None) -> Iterator[dict[str, Any]]:
    """The runs of a source, or of all that were ever run, newest first; raises StoreError.

    One that a process left behind has no end: the next run of its source goes on with it.
    """
    names = database.read(run_table.find_source_names)
    ids = {source_id for source_id, known in names.items() if name in {None, known}}
    before: int | None = None
    while page := database.read(run_table.load_before, ids, before):
        before = page[-1][1].id
        for source_id, run in page:
            yield _describe(names[source_id], run)


def is_known(database: Database, name: str) -> bool:
    """Whether a source was ever run."""
    return database.read(run_table.find_source, name=name) is not None


def _describe(source: str, run: RunRow) -> dict[str, Any]:
    return {
        "id": run.id,
        "source": source,
        "kind": run.kind.value,
        "started": clock.iso(run.started_ms),
        "ended": clock.iso(run.ended_ms),
        "end_reason": run.end_reason,
        "exit_code": run.exit_code,
        "counts": {counter: run.counts.get(counter, 0) for counter in COUNTS},
    }
