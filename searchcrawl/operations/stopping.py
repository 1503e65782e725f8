"""Stops, suspends and resumes a source, on whatever machine it is crawled (H4), and pauses a receiver (L14)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from searchcrawl import clock
from searchcrawl.exceptions import UnknownReceiver
from searchcrawl.failpoints import reach
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receivers import list_names
from searchcrawl.store import receiver_table, source_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import job_table, lease, run_table
from searchcrawl.store.states import EndReason

_POLL_SECONDS: Final = 0.2


def resume(database: Database, name: str) -> bool:
    """Lets a source be crawled again, and runs nothing; whether it was suspended."""

    def take_back(transaction: Transaction) -> bool:
        source_id = run_table.find_source(transaction, name)
        if source_id is None or source_id not in job_table.find_suspended(transaction):
            return False
        source_table.note(transaction, source_id, suspended=0)
        return True

    return database.write(take_back)


def is_left(database: Database, name: str) -> bool:
    """Whether the last run of a source left something to do, so that its next crawl goes on with it."""
    last = database.read(run_table.read_of, name, run_table.find_last, None)
    return last is not None and last.end_reason != EndReason.FINISHED


def stop(database: Database, name: str, *, wait_seconds: float, suspends: bool = False) -> str:
    """Has the crawl of a source end cleanly, and takes its next start back; waits for it, so long.

    ``suspends``: the source is not crawled until it is resumed. Returns ``stopped``, ``stopping`` where it goes on to end,
    or ``idle`` where nothing was to be stopped.
    """

    def order(transaction: Transaction) -> tuple[int, int, bool]:
        source_id = run_table.find_or_add_source(transaction, name)
        if suspends:
            source_table.note(transaction, source_id, suspended=1)
        waited = job_table.stop(transaction, source_id)
        held = lease.is_held(transaction, source_id)
        if held:
            lease.order_stop(transaction, source_id)
        return source_id, lease.find_fence(transaction, source_id) if held else 0, waited

    def is_running(transaction: Transaction) -> bool:
        return lease.is_held(transaction, source_id) and lease.find_fence(transaction, source_id) == fence

    source_id, fence, waited = database.write(order)
    reach("job.stopped")
    if not fence:
        return "stopped" if waited else "idle"
    deadline, never = clock.monotonic() + wait_seconds, threading.Event()
    while clock.monotonic() < deadline:
        if not database.read(is_running):
            return "stopped"
        never.wait(_POLL_SECONDS)
    return "stopping"


def pause(project: Project, sources: Iterable[Source], database: Database, name: str, *, paused: bool) -> list[str]:
    """Has a receiver get nothing of these sources, or lets it go on; returns the names of those for which that is new.

    A crawl that is under way heeds it with the next page of documents. Raises UnknownReceiver where no source has it.
    """
    chosen = [source for source in sources if name in list_names(project, source)]
    if not chosen:
        raise UnknownReceiver(
            f"no source has a receiver of this name: {name} (there are {', '.join(project.receivers) or 'none'}: [receivers.NAME] "
            f"in {FILE})"
        )

    def note(transaction: Transaction) -> list[str]:
        return [
            source.name
            for source in chosen
            if receiver_table.pause(
                transaction, run_table.find_or_add_source(transaction, source.name), name, paused=paused
            )
        ]

    return database.write(note)
