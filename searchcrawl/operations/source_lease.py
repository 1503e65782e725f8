"""The lease of a source for a command that works on it between runs: no crawl can begin meanwhile.

A stall watch ends a command that does not turn any more, as that of a crawl does (X-D12). A command has no reactor. What can
stop it for good is code that keeps the lock of the interpreter: then no Ctrl-C is heard, and the lease of its source, if it
has one, runs out.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from searchcrawl.exceptions import ConfigurationError, LeaseLost, StoreError
from searchcrawl.run import Run, return_memory
from searchcrawl.settings import SEARCHCRAWL_STALL_SECONDS
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow

logger = logging.getLogger(__name__)

#: How long a command waits for an index that is away, unless it was told otherwise.
RETRY_SECONDS: Final = 60.0
_BEAT_SECONDS: Final = 5.0
#: Its descriptor: faulthandler writes names of files and functions, escaped, and no text of strangers.
_STANDARD_ERROR: Final = 2


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
    return_memory()
    boundary = build_boundary(source)
    taken = database.write(_take, source.name)
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
        database.write(lease.release, own_lease)


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


@contextmanager
def watch_stalls(log: Path | None = None, *, seconds: float | None = None) -> Iterator[None]:
    """Has the process end with exit code 1 and all its stacks in ``log`` if no thread can run for ``seconds`` (0: never).

    Without a log they go to standard error; without seconds it is as long as a crawl may stand still.
    """
    seconds = SEARCHCRAWL_STALL_SECONDS if seconds is None else seconds
    try:
        # A descriptor of its own, as the stream may be closed or replaced meanwhile.
        file = os.dup(_STANDARD_ERROR) if log is None else os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        logger.warning("no stall watch: %s", error)
        seconds = file = 0
    if not seconds:
        yield
        return
    ended = threading.Event()
    # A thread of its own, as a heartbeat may have to wait for the store.
    thread = threading.Thread(target=_put_off, args=(file, seconds, ended), name="stall watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        faulthandler.cancel_dump_traceback_later()
        os.close(file)


def _put_off(file: int, seconds: float, ended: threading.Event) -> None:
    while True:
        faulthandler.dump_traceback_later(seconds, file=file, exit=True)
        if ended.wait(min(_BEAT_SECONDS, seconds / 4)):
            return
