"""What the cache holds for the index: sealed into batches, each delivered, made visible, and freed."""

from __future__ import annotations

from typing import NamedTuple

from searchcrawl import clock
from searchcrawl.delivery import removals
from searchcrawl.delivery.batch_delivery import Shipping, free_segments
from searchcrawl.failpoints import passing
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table, resend_table
from searchcrawl.store.batches.batch_table import SealedBatch
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import BatchState


class Sent(NamedTuple):
    """How many documents and removals the index acknowledged, and how many documents could not be sent."""

    documents: int = 0
    removed: int = 0
    failed: int = 0

    def plus(self, other: Sent) -> Sent:
        """Both together."""
        return Sent(self.documents + other.documents, self.removed + other.removed, self.failed + other.failed)


def seal(run: Run, *, rotate: bool = False) -> SealedBatch | None:
    """Puts what is cached into a batch; ``rotate`` has the next record begin a new segment."""
    batch = run.write(lambda transaction: _sealed(transaction, run, rotate=rotate))
    if batch is not None:
        passing("batch.sealed")
    return batch


def _sealed(transaction: Transaction, run: Run, *, rotate: bool) -> SealedBatch | None:
    if rotate:
        number, _ = run_table.open_segment(transaction, run.source_id)
        run_table.set_segment(transaction, run.source_id, number + 1, 0)
    return batch_table.seal_documents(transaction, run.source_id, run.id, clock.now_ms())


def deliver(shipping: Shipping, batch: SealedBatch) -> Sent:
    """Sends a batch as far as that was not done, and what follows from it; raises as ``Shipping.documents``."""
    documents, failed = shipping.documents(batch) if batch.state < BatchState.ACKNOWLEDGED else (0, 0)
    shipping.commit(batch)
    removed = removals.remove_copies(shipping.run, shipping)
    free_segments(shipping.run, shipping.cache)
    return Sent(documents, removed, failed)


def waits(transaction: Transaction, source_id: int) -> bool:
    """Whether ``flush`` and ``resending.go_on`` have anything to do."""
    return bool(
        document_table.waiting(transaction, source_id)[0]
        or batch_table.unfinished(transaction, source_id)
        or batch_table.removing(transaction, source_id)
        or resend_table.version(transaction, source_id) is not None
    )


def flush(shipping: Shipping) -> Sent:
    """Sends all that waits, also what a dead process left; raises as ``Shipping.documents``."""
    run = shipping.run
    sent = Sent(removed=removals.finish_removals(run, shipping))
    for batch in run.read(lambda transaction: batch_table.unfinished(transaction, run.source_id)):
        sent = sent.plus(deliver(shipping, batch))
    # The segment that was written to last is complete: it can be given up as well (E2).
    last = seal(run, rotate=not run.project.cache.preserve)
    return sent if last is None else sent.plus(deliver(shipping, last))
