"""Removals that wait in quarantine: listed, carried out, or dropped (L3)."""

from __future__ import annotations

import logging
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.operations.source_lease import held
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import Leaving, SealedBatch
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_queries

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 60.0


def held_back(database: Database, source: Source) -> list[dict[str, Any]]:
    """The waiting removals of a source, as ``quarantine list`` shows them; raises StoreError."""

    def select(transaction: Transaction) -> list[dict[str, Any]]:
        source_id = run_table.find_source(transaction, source.name)
        if source_id is None:
            return []
        since = url_queries.held_since(transaction, source_id)
        return [
            {"run": run, "url": row.url, "reason": _reason(row), "since": clock.iso(since.get(run))}
            for row, run in batch_table.quarantined(transaction, source_id)
        ]

    return database.read(select)


def approve(
    project: Project,
    source: Source,
    database: Database,
    receiver: Receiver,
    *,
    retry_seconds: float = _RETRY_SECONDS,
) -> dict[str, Any]:
    """Carries out the waiting removals, and those on their way already, at once; makes that visible.

    Answers as interface.md §2 says for what is sent. Raises SourceBusy while the source is crawled,
    and DeliveryError where the index cannot be reached; removals that are sealed by then are sent by
    the next run, or by another call.
    """
    with held(project, source, database) as run:
        if run is None:
            return _sent(source, 0, 0)
        if isinstance(receiver, SearchIndex):
            receiver.ping()
        under_way = run.write(lambda transaction: _sealed(transaction, run))
        documents = removed = 0
        with open_sender(run, receiver, retry_seconds=retry_seconds) as sender:
            for batch, leaving in under_way:
                documents += len(leaving)
                removed += sender.send_removals(batch, leaving)
                sender.commit(batch)
        return _sent(source, documents, removed)


def _sealed(transaction: Transaction, run: Run) -> list[tuple[SealedBatch, list[Leaving]]]:
    """Puts what waits into a batch; all removals that are to be sent."""
    waiting = [row.url_id for row, _ in batch_table.quarantined(transaction, run.source_id)]
    if waiting:
        batch_table.seal_removals(transaction, run.source_id, run.id, clock.now_ms(), waiting)
    return [(batch, leaving) for _, batch, leaving in batch_table.removing(transaction, run.source_id)]


def reject(project: Project, source: Source, database: Database) -> dict[str, Any]:
    """Drops the waiting removals: the documents stay until new evidence comes; raises SourceBusy."""
    with held(project, source, database) as run:
        if run is None:
            return _sent(source, 0, 0)
        kept = run.write(lambda transaction: _kept(transaction, run.source_id))
        return {"source": source.name, "documents": kept, "removed": 0, "failed": 0}


def _kept(transaction: Transaction, source_id: int) -> int:
    waiting = [row.url_id for row, _ in batch_table.quarantined(transaction, source_id)]
    batch_table.keep(transaction, waiting)
    return len(waiting)


def _reason(row: Leaving) -> str:
    return f"{row.code} {row.rule}" if row.rule else str(row.code)


def _sent(source: Source, documents: int, removed: int) -> dict[str, Any]:
    return {"source": source.name, "documents": documents, "removed": removed, "failed": documents - removed}
