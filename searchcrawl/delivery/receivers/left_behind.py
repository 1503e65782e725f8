"""Documents that receivers have and the index has not: lost there, or refused by it, and gone from the site since."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from searchcrawl import clock
from searchcrawl.delivery.removals import find_limits
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.receivers import log_table, receiver_table
from searchcrawl.store.states import BatchState

logger = logging.getLogger(__name__)


def let_go_of_left(run: Run) -> None:
    """Has receivers remove them, within the limits on deleting: no removal of the index has counted them (L3)."""
    if not run.read(receiver_table.load, source_id=run.source_id):
        return
    count = run.read(log_table.count_left, source_id=run.source_id)
    if not count:
        return
    if not run.read(find_limits, run=run, candidates=count).allowed:
        logger.warning(
            "receivers have %d documents that the index does not have, which is past the limits on deleting: "
            "searchcrawl resend %s --receiver NAME has one receiver remove them",
            count,
            run.source.name,
        )
        return
    while rows := run.read(log_table.find_left, source_id=run.source_id):
        run.write(_let_go, run=run, url_ids=rows)


def _let_go(transaction: Transaction, *, run: Run, url_ids: Sequence[int]) -> None:
    log_table.let_go(transaction, run.source_id, url_ids)
    # They count towards the limits, as a delivery of removals does.
    batch = batch_table.add_batch(transaction, run.source_id, run.id, clock.now_ms(), removals=len(url_ids))
    batch_table.set_state(transaction, batch.number, BatchState.COMMITTED)
