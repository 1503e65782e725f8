"""Removals that an operator decides about: carry them out, reject them, or let rejected ones go after all (L3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.commit.orphans import let_stay
from searchcrawl.delivery import delivery_queue, removals
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.exceptions import UnknownRun
from searchcrawl.exit_codes import Exit
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations.source_lease import check_delivers, lease_source
from searchcrawl.rules.lifecycle import ORPHAN
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import quarantine_table, removal_table
from searchcrawl.store.batches.quarantine_table import Choice, HeldRemoval
from searchcrawl.store.batches.removal_table import RemovalCandidate
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_table

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60.0
#: When runs started and ended, by id.
_Times = dict[int, tuple[int, int | None]]


def list_waiting(database: Database, source: Source) -> Iterator[dict[str, Any]]:
    """The waiting removals of a source, as ``quarantine list`` shows them; raises StoreError.

    Once all are read, those of runs that have ended count as listed: ``approve`` and ``reject`` mean them.
    """
    source_id = database.read(lambda transaction: run_table.find_source(transaction, source.name))
    if source_id is None:
        return
    times: _Times = {}
    for row in _read_pages(database, partial(quarantine_table.list_waiting, source_id=source_id)):
        yield _describe(database, row, times)
    if times:
        # A run that was killed goes on, and may hold back more.
        listed = max((run for run, (_, ended_ms) in times.items() if ended_ms is not None), default=min(times) - 1)
        database.write(
            lambda transaction: quarantine_table.set_listed_run(transaction, source_id=source_id, run_id=listed)
        )


def list_rejected(database: Database, source: Source) -> Iterator[dict[str, Any]]:
    """The rejected removals of a source, as ``quarantine list --rejected`` shows them; raises StoreError."""
    source_id = database.read(lambda transaction: run_table.find_source(transaction, source.name))
    if source_id is None:
        return
    times: _Times = {}
    for row in _read_pages(database, partial(quarantine_table.list_rejected, source_id=source_id)):
        yield _describe(database, row, times)


def _read_pages(database: Database, load: Callable[..., list[HeldRemoval]]) -> Iterator[HeldRemoval]:
    after = 0
    while page := database.read(partial(load, after=after)):
        yield from page
        after = page[-1].url_id


def _describe(database: Database, row: HeldRemoval, times: _Times) -> dict[str, Any]:
    if row.run not in times:
        times[row.run] = database.read(partial(quarantine_table.find_times, run_id=row.run))
    started_ms, ended_ms = times[row.run]
    since = started_ms if ended_ms is None else ended_ms
    return {"run": row.run, "url": row.url, "reason": row.reason, "since": clock.iso(since)}


def approve(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    only: int | None = None,
    counts_into_run: bool = False,
    retry_seconds: float = _RETRY_SECONDS,
) -> dict[str, Any]:
    """Removes waiting documents from the index, and those of removals that were cut off; commits the index.

    ``only`` is the run whose removals are meant; None: those that were listed last, or all where none ever were.
    ``counts_into_run``: they are removals of the last run, which ends well if none is left to wait.
    Returns ``{"source", "documents", "removed", "failed", "waiting"}``. Raises SourceBusy while the source is crawled,
    UnknownRun where nothing waits of a run that is none of the source, and DeliveryError where the index cannot be
    reached; removals that are sealed by then are sent by the next run, or by another call.
    """
    check_delivers(source)
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        choice = run.read(partial(_choose, source_id=run.source_id, only=only))
        find = partial(quarantine_table.find_waiting, source_id=run.source_id, choice=choice)
        done = _carry_out(run, receiver, find, retry_seconds)
        if only is not None and not done[0]:
            _check_run(run, only)
        waiting = _count_waiting(run)
        if counts_into_run:
            code = Exit.QUARANTINE if waiting else Exit.DONE
            run.write(partial(run_table.amend, run_id=run.id, added={"deleted": done[1]}, exit_code=code))
        return _build_result(source, *done, waiting=waiting)


def _check_run(run: Run, run_id: int) -> None:
    """Raises UnknownRun for a run that is none of the source."""
    if run.read(partial(run_table.find_source_of, run_id=run_id)) != run.source.name:
        raise UnknownRun(f"unknown run: {run_id}")


def restore(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    only: int | None = None,
    retry_seconds: float = _RETRY_SECONDS,
) -> dict[str, Any]:
    """Lets rejected removals go after all, ``only`` those of one run; otherwise as ``approve``."""
    check_delivers(source)
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        choice = Choice(only)
        find = partial(quarantine_table.find_rejected, source_id=run.source_id, choice=choice)
        documents, removed = _carry_out(run, receiver, find, retry_seconds)
        while dropped := run.write(partial(_drop_page, source_id=run.source_id, choice=choice)):
            documents, removed = documents + dropped, removed + dropped
        return _build_result(source, documents, removed, waiting=_count_waiting(run))


def reject(project: Project, source: Source, database: Database, *, only: int | None = None) -> dict[str, Any]:
    """Drops waiting removals: the documents stay until a visit brings other evidence; ``only`` as for ``approve``.

    Raises SourceBusy.
    """
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        kept = 0
        while number := run.write(partial(_reject_page, source_id=run.source_id, only=only)):
            kept += number
        return _build_result(source, kept, 0, waiting=_count_waiting(run)) | {"failed": 0}


def _drop_page(transaction: Transaction, *, source_id: int, choice: Choice) -> int:
    url_ids = quarantine_table.find_unsent(transaction, source_id, choice)
    before = duplicate_key_table.load(transaction, url_ids)
    quarantine_table.drop(transaction, url_ids)
    resolve_again(transaction, source_id, before)
    return len(url_ids)


def _reject_page(transaction: Transaction, *, source_id: int, only: int | None) -> int:
    choice = _choose(transaction, source_id, only)
    rows = quarantine_table.find_waiting(transaction, source_id, choice)
    orphans = duplicate_key_table.load(transaction, [row.url_id for row in rows if row.evidence == ORPHAN])
    url_table.reopen(transaction, removal_table.reject(transaction, [row.url_id for row in rows]))
    let_stay(transaction, source_id=source_id, before=orphans)
    return len(rows)


def _choose(transaction: Transaction, source_id: int, only: int | None) -> Choice:
    return Choice(only, quarantine_table.find_listed_run(transaction, source_id))


def _carry_out(
    run: Run, receiver: Receiver, find: Callable[[Transaction], list[RemovalCandidate]], retry_seconds: float
) -> tuple[int, int]:
    """Sends removals until ``find`` finds none; returns how many there were, and how many the index acknowledged."""
    if isinstance(receiver, SearchIndex):
        receiver.ping()
    documents = removed = 0
    # A run that was cut off is continued later: what it sealed counts in it.
    counts_into_run = run.row.ended_ms is None
    with open_sender(run, receiver, retry_seconds=retry_seconds, counts_into_run=counts_into_run) as sender:
        # Some of it may stand in the place of what goes.
        delivery_queue.deliver_left(sender)
        for found, gone in removals.carry_out(sender, find):
            documents += found
            removed += gone
    return documents, removed


def _count_waiting(run: Run) -> int:
    return run.read(lambda transaction: document_table.count_totals(transaction, run.source_id))["quarantined"]


def _build_result(source: Source, documents: int, removed: int, *, waiting: int = 0) -> dict[str, Any]:
    return {
        "source": source.name,
        "documents": documents,
        "removed": removed,
        "failed": documents - removed,
        "waiting": waiting,
    }
