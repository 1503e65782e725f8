"""Removals that wait in quarantine: list them, carry them out, or drop them (L3)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.delivery import removals
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import removal_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_queries, url_table

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60.0


def list_waiting(database: Database, source: Source) -> Iterator[dict[str, Any]]:
    """The waiting removals of a source, as ``quarantine list`` shows them, in constant memory; raises StoreError."""
    source_id = database.read(partial(run_table.find_source, name=source.name))
    if source_id is None:
        return
    since = database.read(partial(url_queries.find_quarantine_times, source_id=source_id))
    after = 0
    while held := database.read(partial(removal_table.find_quarantined, source_id=source_id, after=after)):
        after = held[-1][0].url_id
        for row, run in held:
            yield {
                "run": run,
                "url": row.url,
                "reason": f"{row.code} {row.rule}" if row.rule else str(row.code),
                "since": clock.iso(since.get(run)),
            }


def approve(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    only: int | None = None,
    retry_seconds: float = _RETRY_SECONDS,
) -> dict[str, Any]:
    """Removes the waiting documents from the index, and those of removals that were cut off; commits the index.

    ``only`` is the run whose removals are meant; None: all that wait.
    Returns ``{"source", "documents", "removed", "failed"}``. Raises SourceBusy while the source is crawled,
    and DeliveryError where the index cannot be reached; removals that are sealed by then are sent by
    the next run, or by another call.
    """
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        if isinstance(receiver, SearchIndex):
            receiver.ping()
        documents = removed = 0
        # A run that was cut off is continued later: what it sealed counts in it.
        counts_into_run = run.row.ended_ms is None
        with open_sender(run, receiver, retry_seconds=retry_seconds, counts_into_run=counts_into_run) as sender:
            for found, gone in removals.approve_removals(sender, only):
                documents += found
                removed += gone
        return _build_result(source, documents, removed)


def reject(project: Project, source: Source, database: Database, *, only: int | None = None) -> dict[str, Any]:
    """Drops the waiting removals, ``only`` those of one run: the documents stay until a visit brings new evidence.

    Raises SourceBusy.
    """
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        kept = 0
        while number := run.write(partial(_keep_page, source_id=run.source_id, only=only)):
            kept += number
        return {"source": source.name, "documents": kept, "removed": 0, "failed": 0}


def _keep_page(transaction: Transaction, *, source_id: int, only: int | None) -> int:
    held = removal_table.find_quarantined(transaction, source_id, run_id=only)
    url_table.reopen(transaction, removal_table.reject(transaction, [row.url_id for row, _ in held]))
    return len(held)


def _build_result(source: Source, documents: int, removed: int) -> dict[str, Any]:
    return {"source": source.name, "documents": documents, "removed": removed, "failed": documents - removed}
