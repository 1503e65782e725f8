"""Removals at the end of a run: evidence, limits, quarantine (architecture, decision 7; L3)."""

from __future__ import annotations

import logging

from searchcrawl import clock
from searchcrawl.codes import REDIRECTS
from searchcrawl.delivery.batch_delivery import Shipping
from searchcrawl.failpoints import passing
from searchcrawl.rules import removal
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import Leaving, SealedBatch
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import outlink_table, url_table

logger = logging.getLogger(__name__)


def remove_copies(run: Run, shipping: Shipping) -> int:
    """Takes copies out of the index whose survivor is there (909): at once, outside the limits. How many."""

    def select(transaction: Transaction) -> tuple[SealedBatch, list[Leaving]] | None:
        surplus = batch_table.surplus_copies(transaction, run.source_id)
        return (_seal(transaction, run, surplus), surplus) if surplus else None

    selected = run.write(select)
    return 0 if selected is None else _send(shipping, *selected)


def remove_leaving(run: Run, shipping: Shipping) -> None:
    """Carries out the removals that visits brought evidence for, or holds all of them back."""
    selected = run.write(lambda transaction: _within_limits(transaction, run))
    if selected is not None:
        passing("delete.selected")
        _send(shipping, *selected)


def _within_limits(transaction: Transaction, run: Run) -> tuple[SealedBatch, list[Leaving]] | None:
    """The removals that are to be carried out now; puts all into quarantine where they are too many."""
    lifecycle = run.source.lifecycle
    leaving = _with_evidence(transaction, batch_table.leaving(transaction, run.source_id))
    if not leaving:
        return None
    documents = document_table.totals(transaction, run.source_id)["documents"]
    allowed = removal.is_within_limits(
        len(leaving),
        documents,
        max_delete_percent=lifecycle.max_delete_percent,
        max_delete_documents=lifecycle.max_delete_documents,
    )
    if allowed:
        return _seal(transaction, run, leaving), leaving
    batch_table.quarantine(transaction, [row.url_id for row in leaving], run.id)
    logger.warning(
        "%d of %d documents would leave the index: they wait in quarantine (searchcrawl quarantine list %s)",
        len(leaving),
        documents,
        run.source.name,
    )
    return None


def finish_removals(run: Run, shipping: Shipping) -> int:
    """Sends again what a dead process was removing, and takes out the copies that it left; how many."""
    under_way = run.read(lambda transaction: batch_table.removing(transaction, run.source_id))
    removed = sum(_send(shipping, batch, leaving) for _, batch, leaving in under_way)
    # It may have died between the receipt of a survivor and the removal of its copies.
    return removed + remove_copies(run, shipping)


def _seal(transaction: Transaction, run: Run, leaving: list[Leaving]) -> SealedBatch:
    return batch_table.seal_removals(
        transaction, run.source_id, run.id, clock.now_ms(), [row.url_id for row in leaving]
    )


def _send(shipping: Shipping, batch: SealedBatch, leaving: list[Leaving]) -> int:
    removed = shipping.removals(batch, leaving, counted=True)
    shipping.commit(batch)
    return removed


def _with_evidence(transaction: Transaction, leaving: list[Leaving]) -> list[Leaving]:
    """Without those that moved inside the boundary to a page which was not fetched yet."""
    moved = [row.url_id for row in leaving if row.code in REDIRECTS and row.rule is None]
    targets = outlink_table.load(transaction, moved)
    wanted = sorted({target for ids in targets.values() for target in ids})
    fetched = url_table.ended_well(transaction, wanted)
    return [
        row
        for row in leaving
        if row.url_id not in moved or any(target in fetched for target in targets.get(row.url_id, ()))
    ]
