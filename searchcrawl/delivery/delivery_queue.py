"""The documents that wait for the index: sealed into batches, sent, committed, freed in the cache; or resent (E7).

The store remembers that a resend was asked for. If it is cut off, the next run, ``flush`` or ``resend`` completes it.
"""

from __future__ import annotations

import logging
from functools import partial

from searchcrawl import clock
from searchcrawl.delivery import removals
from searchcrawl.delivery.batch_sender import BatchSender, Sent
from searchcrawl.failpoints import reach
from searchcrawl.run import Run
from searchcrawl.store import batch_table, removal_table, source_table
from searchcrawl.store.batch_table import Chunk, SealedBatch
from searchcrawl.store.documents import document_table, segment_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


def seal_batch(run: Run, *, rotate: bool = False) -> SealedBatch | None:
    """Puts all cached documents into a batch; with ``rotate`` the next record begins a new segment."""

    def seal(transaction: Transaction) -> SealedBatch | None:
        if rotate:
            segment_table.begin(transaction, run.source_id)
        return batch_table.seal_documents(transaction, run.source_id, run.id, clock.now_ms())

    batch = run.write(seal)
    if batch is not None:
        reach("batch.sealed")
    return batch


def deliver_left(sender: BatchSender) -> Sent:
    """Sends the documents of batches that an earlier process left; raises as ``BatchSender.deliver``."""
    run, sent = sender.run, Sent()
    for batch in run.read(batch_table.find_unfinished, source_id=run.source_id):
        holds_removals = partial(batch_table.holds_removals, number=batch.number, source_id=run.source_id)
        if run.shutdown.failure is None and not run.read(holds_removals):
            sent = sent.plus(sender.deliver(batch))
    return sent


def is_waiting(transaction: Transaction, source_id: int) -> bool:
    """Whether ``flush`` and ``continue_resend`` have anything to do."""
    return bool(
        document_table.count_waiting(transaction, source_id)[0]
        or batch_table.find_unfinished(transaction, source_id)
        or removal_table.find_under_way(transaction, source_id)
        or source_table.find(transaction, source_id, "resend_version") is not None
    )


def flush(sender: BatchSender) -> Sent:
    """Sends everything that waits, including what a dead process left; raises as ``BatchSender.deliver``."""
    run = sender.run
    sent = deliver_left(sender)
    sent = sent.plus(Sent(removed=removals.finish_removals(sender)))
    # A new segment begins, so that the last one can be deleted as well (E2).
    last = seal_batch(run, rotate=not run.project.cache.preserve)
    return sent if last is None else sent.plus(sender.deliver(last))


def continue_resend(sender: BatchSender) -> Sent:
    """Sends the rest of a resend from the cache, a full cache at a time; raises as ``BatchSender.deliver``."""
    run = sender.run
    if run.read(source_table.find, run.source_id, "resend_version") is None:
        return Sent()
    sent, after = Sent(), 0
    while (chunk := run.write(_seal_chunk, run=run, after=after)) is not None:
        reach("batch.sealed")
        sent = sent.plus(sender.deliver(chunk.batch))
        after = chunk.last
        if run.shutdown.failure is not None:
            return sent
    run.write(source_table.note, run.source_id, resend_version=None)
    # Meanwhile no segment was deleted, because its records might still have had to be sent.
    sender.space.free()
    logger.info(
        "%s sent again, %d could not be",
        counted(sent.documents, "document was", "documents were"),
        sent.failed + sent.to_fetch,
    )
    return sent


def _seal_chunk(transaction: Transaction, *, run: Run, after: int) -> Chunk | None:
    most = run.project.cache.threshold_bytes
    return batch_table.seal_resend(transaction, run.source_id, run.id, clock.now_ms(), after=after, max_bytes=most)
