"""Removals that wait in quarantine: list them, carry them out, or drop them (L3)."""

from __future__ import annotations

import logging
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import RemovalCandidate, SealedBatch
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_queries, url_table

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60.0


def list_waiting(database: Database, source: Source) -> list[dict[str, Any]]:
    """The waiting removals of a source, as ``quarantine list`` shows them; raises StoreError."""

    def select(transaction: Transaction) -> list[dict[str, Any]]:
        source_id = run_table.find_source(transaction, source.name)
        if source_id is None:
            return []
        since = url_queries.find_quarantine_times(transaction, source_id)
        return [
            {
                "run": run,
                "url": row.url,
                "reason": f"{row.code} {row.rule}" if row.rule else str(row.code),
                "since": clock.iso(since.get(run)),
            }
            for row, run in batch_table.find_quarantined(transaction, source_id)
        ]

    return database.read(select)


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
        batches = run.write(lambda transaction: _seal_waiting(transaction, run, only))
        documents = removed = 0
        with open_sender(run, receiver, retry_seconds=retry_seconds) as sender:
            for batch, candidates in batches:
                documents += len(candidates)
                removed += sender.send_removals(batch, candidates)
                sender.commit(batch)
        return _build_result(source, documents, removed)


def _find_waiting(transaction: Transaction, source_id: int, only: int | None) -> list[int]:
    held = batch_table.find_quarantined(transaction, source_id)
    return [row.url_id for row, number in held if only is None or number == only]


def _seal_waiting(
    transaction: Transaction, run: Run, only: int | None
) -> list[tuple[SealedBatch, list[RemovalCandidate]]]:
    """Puts the waiting removals into a batch; returns all batches of removals that are to be sent."""
    waiting = _find_waiting(transaction, run.source_id, only)
    if waiting:
        batch_table.seal_removals(transaction, run.source_id, run.id, clock.now_ms(), waiting)
    return [
        (batch, candidates) for _, batch, candidates in batch_table.find_removals_under_way(transaction, run.source_id)
    ]


def reject(project: Project, source: Source, database: Database, *, only: int | None = None) -> dict[str, Any]:
    """Drops the waiting removals, ``only`` those of one run: the documents stay until a visit brings new evidence.

    Raises SourceBusy.
    """
    with lease_source(project, source, database) as run:
        if run is None:
            return _build_result(source, 0, 0)
        kept = run.write(lambda transaction: _keep_waiting(transaction, run.source_id, only))
        return {"source": source.name, "documents": kept, "removed": 0, "failed": 0}


def _keep_waiting(transaction: Transaction, source_id: int, only: int | None) -> int:
    waiting = _find_waiting(transaction, source_id, only)
    url_table.reopen(transaction, batch_table.reject_removals(transaction, waiting))
    return len(waiting)


def _build_result(source: Source, documents: int, removed: int) -> dict[str, Any]:
    return {"source": source.name, "documents": documents, "removed": removed, "failed": documents - removed}
