"""Takes the removals of a run back: its documents are sent again from the cache, or fetched again (L3)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from searchcrawl.commit.orphans import let_stay
from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.delivery_queue import Sent
from searchcrawl.exceptions import UnknownRun
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations import redelivery
from searchcrawl.operations.redelivery import ProgressCallback
from searchcrawl.operations.source_lease import check_delivers, lease_source
from searchcrawl.rules.lifecycle import ORPHAN
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import quarantine_table
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import orphan_table, url_table

_RETRY_SECONDS: Final = 60.0


def find_source_of(database: Database, run_id: int) -> str:
    """The name of the source of a run; raises UnknownRun, StoreError."""
    name = database.read(partial(run_table.find_source_of, run_id=run_id))
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
    retry_seconds: float = _RETRY_SECONDS,
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
            while any(page := run.write(partial(_take_back_page, source_id=run.source_id, run_id=run_id))):
                to_fetch += page[1]
            # A call that was cut off may have left some.
            if run.read(partial(delivery_queue.is_waiting, source_id=run.source_id)):
                if isinstance(receiver, SearchIndex):
                    receiver.ping()
                sent = redelivery.send_waiting(run, receiver, retry_seconds, on_progress)
    return {"source": source.name, **sent._asdict(), "to_fetch": to_fetch + sent.to_fetch}


def _take_back_page(transaction: Transaction, *, source_id: int, run_id: int) -> tuple[int, int]:
    removed = quarantine_table.find_removed(transaction, source_id, run_id)
    orphans = [url_id for url_id, evidence in removed.items() if evidence == ORPHAN]
    before = duplicate_key_table.load(transaction, orphans)
    cached, lost = quarantine_table.take_back(transaction, list(removed))
    orphan_table.unpark(transaction, [*cached, *lost], due_ms=0)
    url_table.reopen(transaction, lost)
    let_stay(transaction, source_id=source_id, before=before)
    return len(cached), len(lost)
