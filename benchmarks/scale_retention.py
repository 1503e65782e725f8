"""What is forgotten after ``store.retention_days``, in a process of its own; called by benchmarks/scale.py.

python -m benchmarks.scale_retention fill|measure STORE_URL SIZE FOLDER: the figures as JSON on standard output. All rows
of the table are older than these days, a quarter of them refused or gone. Of eleven hosts one is named by no URL.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import func, select, update

from benchmarks.scale_measure import Measuring, peak_rss_bytes
from benchmarks.scale_table import fill
from searchcrawl import clock
from searchcrawl.commit.retention import purge_old
from searchcrawl.run import Run
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.schema import hosts, urls

T = TypeVar("T")

_LONG_AGO_MS: Final = 100 * 86_400_000


class Steps:
    """The transactions of a run from now on: how many wrote, the longest of them and the longest that read."""

    def __init__(self) -> None:
        self.writes: list[float] = []
        self.reads: list[float] = []
        self._watch("write", self.writes)
        self._watch("read", self.reads)

    def figures(self) -> dict[str, float]:
        """In seconds."""
        self.writes.sort()
        return {
            "writes": len(self.writes),
            "median_write_seconds": self.writes[len(self.writes) // 2],
            "longest_write_seconds": self.writes[-1],
            "longest_read_seconds": max(self.reads),
        }

    def _watch(self, name: str, found: list[float]) -> None:
        original = getattr(Run, name)

        def timed(run: Run, work: Callable[[Transaction], T]) -> T:
            began = time.perf_counter()
            try:
                result: T = original(run, work)
                return result
            finally:
                found.append(time.perf_counter() - began)

        setattr(Run, name, timed)


def prepare(database_url: str, size: int, folder: Path) -> dict[str, float]:
    """Fills the table and makes all of it old."""
    database = Database(database_url, folder)
    began = time.perf_counter()
    fill(database, size, hosts=size // 10)
    unused = [f"unused{number}.site.example:80" for number in range(size // 100)]
    with database.write_once() as transaction:
        host_table.find_or_add(transaction, [*unused, "zz.site.example:80"])
        transaction.execute(update(urls).values(first_seen_ms=urls.c.first_seen_ms - _LONG_AGO_MS))
        transaction.execute(update(hosts).values(used_ms=clock.now_ms() - _LONG_AGO_MS))
    database.close()
    return {"fill_seconds": time.perf_counter() - began}


def measure(database_url: str, size: int, folder: Path) -> dict[str, float]:
    """Two runs: the first forgets, the second finds that there is less, or nothing, to forget."""
    measuring = Measuring(folder, database_url, size)
    measuring.start()
    run = measuring.run
    steps = Steps()
    figures: dict[str, float] = {}
    for name in ("first", "second"):
        before = _count(run)
        began = time.perf_counter()
        purge_old(run, [])
        figures[f"{name}_seconds"] = time.perf_counter() - began
        after = _count(run)
        figures |= {f"{name}_{what}": before[what] - after[what] for what in before}
    return {**figures, **steps.figures(), "peak_rss_bytes": peak_rss_bytes()}


def _count(run: Run) -> dict[str, int]:
    def count(transaction: Transaction) -> dict[str, int]:
        tables: dict[str, Any] = {"urls": urls, "hosts": hosts}
        return {
            name: transaction.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.items()
        }

    return run.database.read(count)


if __name__ == "__main__":
    what, database_url, size, folder = sys.argv[1:]
    work = prepare if what == "fill" else measure
    print(json.dumps(work(database_url, int(size), Path(folder))))
