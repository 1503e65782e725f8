"""Everything again from the cache to the index, with new versions and without a request (E7).

The table remembers that it was asked for: a resend that was cut off is completed by the next run,
``flush`` or ``resend``.
"""

from __future__ import annotations

import logging
from functools import partial

from searchcrawl import clock
from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.batch_delivery import Shipping, free_segments
from searchcrawl.delivery.delivery_queue import Sent
from searchcrawl.failpoints import passing
from searchcrawl.run import Run
from searchcrawl.store.batches import resend_table
from searchcrawl.store.batches.resend_table import Chunk
from searchcrawl.store.engine.database import Transaction

logger = logging.getLogger(__name__)


def ask(run: Run) -> None:
    """Notes that all documents are to be sent again; ``go_on`` does it."""
    run.write(lambda transaction: resend_table.begin(transaction, run.source_id, clock.now_ms()))


def go_on(shipping: Shipping) -> Sent:
    """Sends what was asked for and is still left, a full cache at a time; raises as ``Shipping.documents``."""
    run = shipping.run
    if run.read(lambda transaction: resend_table.version(transaction, run.source_id)) is None:
        return Sent()
    sent, after = Sent(), 0
    while (chunk := run.write(partial(_sealed, run=run, after=after))) is not None:
        passing("batch.sealed")
        sent = sent.plus(delivery_queue.deliver(shipping, chunk.batch))
        after = chunk.last
        if run.failure is not None:
            return sent
    run.write(lambda transaction: resend_table.end(transaction, run.source_id))
    # Nothing was given up while it might still have to be sent.
    free_segments(run, shipping.cache)
    logger.info("%d documents were sent again, %d could not be", sent.documents, sent.failed)
    return sent


def _sealed(transaction: Transaction, *, run: Run, after: int) -> Chunk | None:
    most = run.project.cache.threshold_bytes
    return resend_table.seal(transaction, run.source_id, run.id, clock.now_ms(), after=after, max_bytes=most)
