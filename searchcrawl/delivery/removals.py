"""Removals at the end of a run: evidence, limits, quarantine (L3; docs: decisions/removals-at-the-end)."""

from __future__ import annotations

import logging
from typing import Final

from searchcrawl import clock
from searchcrawl.delivery.batch_sender import BatchSender
from searchcrawl.delivery.evidence import select_with_evidence
from searchcrawl.failpoints import reach
from searchcrawl.rules.lifecycle import is_within_limits
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import RemovalCandidate, SealedBatch
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import run_table

logger = logging.getLogger(__name__)

#: Removals of so long count together: six runs that an outage met must not remove more than one.
_DAY_MS: Final = 86_400_000


def remove_copies(sender: BatchSender) -> int:
    """Removes copies (909) whose survivor the index has, at once and without limits; returns how many."""
    run = sender.run

    def seal(transaction: Transaction) -> tuple[SealedBatch, list[RemovalCandidate]] | None:
        copies = batch_table.find_removable_copies(transaction, run.source_id)
        return (_seal(transaction, run, copies), copies) if copies else None

    sealed = run.write(seal)
    return 0 if sealed is None else _send(sender, *sealed)


def remove_documents(sender: BatchSender) -> None:
    """Removes the documents with evidence against them, or puts all of these removals into quarantine."""
    sealed = sender.run.write(lambda transaction: _seal_within_limits(transaction, sender.run))
    if sealed is not None:
        reach("delete.selected")
        _send(sender, *sealed)


def finish_removals(sender: BatchSender) -> int:
    """Sends the removals of a dead process again, and removes the copies that it left; returns how many."""
    run = sender.run
    begun = run.read(lambda transaction: batch_table.find_removals_under_way(transaction, run.source_id))
    removed = sum(_send(sender, batch, candidates) for _, batch, candidates in begun)
    # The process may have died between the receipt of a survivor and the removal of its copies.
    return removed + remove_copies(sender)


def _seal_within_limits(transaction: Transaction, run: Run) -> tuple[SealedBatch, list[RemovalCandidate]] | None:
    """Seals the removals into a batch; if they are too many, puts all of them into quarantine instead.

    They are counted together with those of a day and those since the last completed run, and with those that wait (L3).
    """
    lifecycle = run.source.lifecycle
    candidates = select_with_evidence(
        transaction, batch_table.find_removal_candidates(transaction, run.source_id), lifecycle
    )
    if not candidates:
        return None
    totals = document_table.count_totals(transaction, run.source_id)
    removed = run.copy_counts()["deleted"] + run_table.count_recent(
        transaction, run.source_id, "deleted", before=run.id, since_ms=clock.now_ms() - _DAY_MS
    )
    documents = totals["documents"] + removed
    allowed = is_within_limits(
        len(candidates) + removed + totals["quarantined"],
        documents,
        max_delete_percent=lifecycle.max_delete_percent,
        max_delete_documents=lifecycle.max_delete_documents,
    )
    if allowed:
        return _seal(transaction, run, candidates), candidates
    batch_table.quarantine(transaction, [row.url_id for row in candidates], run.id)
    logger.warning(
        "%d of %d documents would leave the index (%d left it lately, %d wait for approval): they wait in quarantine "
        "(searchcrawl quarantine list %s)",
        len(candidates),
        documents,
        removed,
        totals["quarantined"],
        run.source.name,
    )
    return None


def _seal(transaction: Transaction, run: Run, candidates: list[RemovalCandidate]) -> SealedBatch:
    return batch_table.seal_removals(
        transaction, run.source_id, run.id, clock.now_ms(), [row.url_id for row in candidates]
    )


def _send(sender: BatchSender, batch: SealedBatch, candidates: list[RemovalCandidate]) -> int:
    removed = sender.send_removals(batch, candidates, counted=True)
    sender.commit(batch)
    return removed
