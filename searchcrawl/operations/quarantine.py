"""Removals that an operator decides about: carry them out, reject them, let rejected ones go, or take them back (L3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from searchcrawl import clock
from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.commit.orphans import let_stay
from searchcrawl.delivery import delivery_queue, removals
from searchcrawl.delivery.batch_sender import Sent, open_sender
from searchcrawl.exceptions import Exit, UnknownRun
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations import redelivery
from searchcrawl.operations.redelivery import ProgressCallback
from searchcrawl.operations.source_lease import RETRY_SECONDS, check_delivers, lease_source
from searchcrawl.rules.lifecycle import ORPHAN
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store import removal_table, source_table
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.removal_table import Choice, HeldRow, RemovalCandidate
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import orphan_table, url_table

#: When runs started and ended, by id.
_Times = dict[int, tuple[int, int | None]]


def list_waiting(database: Database, source: Source) -> Iterator[dict[str, Any]]:
    """The waiting removals of a source, as ``quarantine list`` shows them; raises StoreError.

    Once all are read, those of runs that have ended count as listed: ``approve`` and ``reject`` mean them.
    """
    source_id, times = database.read(run_table.find_source, source.name), _Times()
    yield from _list_held(database, source_id, removal_table.list_waiting, times)
    if source_id is not None and times:
        # A run that was killed goes on, and may hold back more.
        listed = max((run for run, (_, ended_ms) in times.items() if ended_ms is not None), default=min(times) - 1)
        database.write(removal_table.set_listed_run, source_id=source_id, run_id=listed)


def list_rejected(database: Database, source: Source) -> Iterator[dict[str, Any]]:
    """The rejected removals of a source, as ``quarantine list --rejected`` shows them; raises StoreError."""
    source_id = database.read(run_table.find_source, source.name)
    yield from _list_held(database, source_id, removal_table.list_rejected, {})


def _list_held(
    database: Database, source_id: int | None, load: Callable[..., Sequence[HeldRow]], times: _Times
) -> Iterator[dict[str, Any]]:
    """The removals that ``load`` reads, of no source: none; ``times`` gets those of their runs."""
    if source_id is None:
        return
    for page in database.read_pages(load, source_id=source_id):
        for row in page:
            if row.run not in times:
                times[row.run] = database.read(removal_table.find_times, run_id=row.run)
            started_ms, ended_ms = times[row.run]
            since = started_ms if ended_ms is None else ended_ms
            yield {"run": row.run, "url": row.url, "reason": row.reason, "since": clock.iso(since)}


def approve(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    only: int | None = None,
    counts_into_run: bool = False,
    retry_seconds: float = RETRY_SECONDS,
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
        choice = run.read(_choose, source_id=run.source_id, only=only)
        find = partial(removal_table.find_waiting, source_id=run.source_id, choice=choice)
        done = _carry_out(run, receiver, find, retry_seconds)
        if only is not None and not done[0] and find_source_of(database, only) != source.name:
            raise UnknownRun(f"unknown run: {only}")
        waiting = _count_waiting(run)
        if counts_into_run:
            code = Exit.QUARANTINE if waiting else Exit.DONE
            run.write(run_table.amend, run_id=run.id, added={"deleted": done[1]}, exit_code=code)
        return _build_result(source, *done, waiting=waiting)


def restore(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    only: int | None = None,
    retry_seconds: float = RETRY_SECONDS,
) -> dict[str, Any]:
    """Lets rejected removals go after all, ``only`` those of one run; otherwise as ``approve``."""
    check_delivers(source)
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        choice = Choice(only)
        find = partial(removal_table.find_rejected, source_id=run.source_id, choice=choice)
        documents, removed = _carry_out(run, receiver, find, retry_seconds)
        while dropped := run.write(_drop_page, source_id=run.source_id, choice=choice):
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
        while number := run.write(_reject_page, source_id=run.source_id, only=only):
            kept += number
        return _build_result(source, kept, 0, waiting=_count_waiting(run)) | {"failed": 0}


def _drop_page(transaction: Transaction, *, source_id: int, choice: Choice) -> int:
    url_ids = removal_table.find_unsent(transaction, source_id, choice)
    before = duplicate_key_table.load(transaction, url_ids)
    removal_table.drop_unsent(transaction, url_ids)
    resolve_again(transaction, source_id, before)
    return len(url_ids)


def _reject_page(transaction: Transaction, *, source_id: int, only: int | None) -> int:
    choice = _choose(transaction, source_id, only)
    rows = removal_table.find_waiting(transaction, source_id, choice)
    orphans = duplicate_key_table.load(transaction, [row.url_id for row in rows if row.evidence == ORPHAN])
    url_table.reopen(transaction, removal_table.reject(transaction, [row.url_id for row in rows]))
    let_stay(transaction, source_id=source_id, before=orphans)
    return len(rows)


def _choose(transaction: Transaction, source_id: int, only: int | None) -> Choice:
    return Choice(only, source_table.find(transaction, source_id, "listed_run"))


def _carry_out(
    run: Run, receiver: Receiver, find: Callable[[Transaction], list[RemovalCandidate]], retry_seconds: float
) -> tuple[int, int]:
    """Sends removals until ``find`` finds none; returns how many there were, and how many the index acknowledged."""
    if isinstance(receiver, SearchIndex):
        receiver.ping()
    documents = removed = 0
    with open_sender(run, receiver, retry_seconds=retry_seconds) as sender:
        # Some of it may stand in the place of what goes.
        delivery_queue.deliver_left(sender)
        for found, gone in removals.carry_out(sender, find):
            documents += found
            removed += gone
    return documents, removed


def _count_waiting(run: Run) -> int:
    return run.read(document_table.count_totals, run.source_id)["quarantined"]


def _build_result(source: Source, documents: int, removed: int, *, waiting: int = 0) -> dict[str, Any]:
    return {
        "source": source.name,
        "documents": documents,
        "removed": removed,
        "failed": documents - removed,
        "waiting": waiting,
    }


def find_source_of(database: Database, run_id: int) -> str:
    """The name of the source of a run; raises UnknownRun, StoreError."""
    name = database.read(run_table.find_source_of, run_id=run_id)
    if name is None:
        raise UnknownRun(f"unknown run: {run_id}")
    return name


def undelete(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    run_id: int,
    *,
    retry_seconds: float = RETRY_SECONDS,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Takes back what a run of ``source`` removed, approved removals included, and sends everything that waits.

    Documents whose record is gone become due: the next run fetches them (``to_fetch``). All of them count as rejected
    removals. Returns ``{"source", "documents", "removed", "failed", "to_fetch"}``. Raises SourceBusy while the source is
    crawled, and DeliveryError where the index cannot be reached: then the documents wait for it.
    """
    sent, to_fetch = Sent(), 0
    check_delivers(source)
    with lease_source(project, source, database) as run:
        if run is not None:
            while any(page := run.write(_take_back_page, source_id=run.source_id, run_id=run_id)):
                to_fetch += page[1]
            # A call that was cut off may have left some.
            if run.read(delivery_queue.is_waiting, source_id=run.source_id):
                if isinstance(receiver, SearchIndex):
                    receiver.ping()
                sent = redelivery.send_waiting(run, receiver, retry_seconds, on_progress)
    return {"source": source.name, **sent._asdict(), "to_fetch": to_fetch + sent.to_fetch}


def _take_back_page(transaction: Transaction, *, source_id: int, run_id: int) -> tuple[int, int]:
    removed = removal_table.find_removed(transaction, source_id, run_id)
    orphans = [url_id for url_id, evidence in removed.items() if evidence == ORPHAN]
    before = duplicate_key_table.load(transaction, orphans)
    cached, lost = removal_table.take_back(transaction, list(removed))
    orphan_table.unpark(transaction, [*cached, *lost], due_ms=0)
    url_table.reopen(transaction, lost)
    let_stay(transaction, source_id=source_id, before=before)
    return len(cached), len(lost)
