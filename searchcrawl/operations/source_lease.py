"""The lease of a source for a command that works on it between runs: no crawl can begin meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from searchcrawl.exceptions import ConfigurationError, LeaseLost, StoreError
from searchcrawl.operations.stall_watch import watch_stalls
from searchcrawl.run import Run, return_large_blocks
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow

logger = logging.getLogger(__name__)


def check_delivers(source: Source) -> None:
    """Raises ConfigurationError for a source that is to deliver nothing (D11, H6)."""
    if source.no_delivery_key is not None:
        file, key = source.locate(source.no_delivery_key)
        raise ConfigurationError(file, key, "delivers nothing while it is so: edit it first")


@contextmanager
def lease_source(project: Project, source: Source, database: Database, *, watched: bool = True) -> Iterator[Run | None]:
    """Takes the lease of a source and yields its last run; yields None, without a lease, if it never ran.

    A thread renews the lease until the context ends, and a stall watch ends a process that hangs, unless it is ``watched``
    already. Raises SourceBusy while the source is crawled, or while another command has the lease.
    """
    return_large_blocks()
    boundary = build_boundary(source)
    taken = database.write(lambda transaction: _take(transaction, source.name))
    if taken is None:
        yield None
        return
    own_lease, row = taken
    run = Run(
        project=project,
        source=source,
        database=database,
        boundary=boundary,
        source_id=own_lease.source_id,
        lease=own_lease,
        row=row,
        fingerprint=row.fingerprint or "",
    )
    run.counts.update(row.counts)
    ended = threading.Event()
    heartbeat = threading.Thread(target=_beat, args=(run, ended), name="heartbeat", daemon=True)
    heartbeat.start()
    try:
        with watch_stalls(project.logs_dir / f"{source.name}.log") if watched else nullcontext():
            yield run
    finally:
        ended.set()
        heartbeat.join()
        database.write(lambda transaction: lease.release(transaction, own_lease))


def _take(transaction: Transaction, name: str) -> tuple[Lease, RunRow] | None:
    source_id = run_table.find_source(transaction, name)
    row = None if source_id is None else run_table.find_last(transaction, source_id)
    if source_id is None or row is None:
        return None
    return lease.take(transaction, source_id, name=name), row


def _beat(run: Run, ended: threading.Event) -> None:
    while not ended.wait(lease.BEAT_SECONDS):
        try:
            run.renew_lease()
        except (LeaseLost, StoreError) as error:
            # If the lease is lost, the next write of the run fails.
            logger.warning("the lease could not be renewed: %s", error)
