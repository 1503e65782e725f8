"""Work on a source between its runs: its last run, under the lease that keeps crawls away meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from searchcrawl import clock
from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow

logger = logging.getLogger(__name__)


@contextmanager
def held(project: Project, source: Source, database: Database) -> Iterator[Run | None]:
    """The last run of a source under its lease, which is renewed meanwhile; None where it never ran.

    Raises SourceBusy while the source is crawled, or worked on by another command.
    """
    boundary = build_boundary(source)
    taken = database.write(lambda transaction: _take(transaction, source.name))
    if taken is None:
        yield None
        return
    its_lease, row = taken
    run = Run(
        project=project,
        source=source,
        database=database,
        boundary=boundary,
        source_id=its_lease.source_id,
        lease=its_lease,
        row=row,
        fingerprint=row.fingerprint or "",
    )
    run.counts.update(row.counts)
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(run, over), name="heartbeat", daemon=True)
    beating.start()
    try:
        yield run
    finally:
        over.set()
        beating.join()
        database.write(lambda transaction: lease.release(transaction, its_lease))


def _take(transaction: Transaction, name: str) -> tuple[Lease, RunRow] | None:
    source_id = run_table.find_source(transaction, name)
    row = None if source_id is None else run_table.last(transaction, source_id)
    if source_id is None or row is None:
        return None
    return lease.take(transaction, source_id, name=name, now_ms=clock.now_ms()), row


def _beat(run: Run, over: threading.Event) -> None:
    while not over.wait(lease.BEAT_SECONDS):
        try:
            run.beat()
        except (LeaseLost, StoreError) as error:
            # The next write finds out whether it is gone for good.
            logger.warning("the lease could not be renewed: %s", error)
