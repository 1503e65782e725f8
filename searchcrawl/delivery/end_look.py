"""A look at the index when a run ends: whether it has what it acknowledged, as the table says (L4)."""

from __future__ import annotations

import logging

from searchcrawl.comparison.look import count_differing
from searchcrawl.counters import DIFFERING, LOOKED_AT
from searchcrawl.exceptions import DeliveryError
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.run import Run

logger = logging.getLogger(__name__)


def look_at_end(run: Run, receiver: Receiver) -> None:
    """Looks at about 120 documents of the index, the newest among them, and counts into the run how many differ.

    It costs some small requests, however large the index is; one that is away by then says nothing. Raises StoreError.
    """
    if not isinstance(receiver, SearchIndex):
        return
    name = run.source.name
    try:
        looked, differing = count_differing(receiver, run.database, name, run.source_id)
    except DeliveryError as error:
        logger.info("the index was not looked at when the run ended: %s", error)
        return
    # A run that was cut off may have counted before.
    before = run.copy_counts()
    run.count(**{LOOKED_AT: looked - before.get(LOOKED_AT, 0), DIFFERING: differing - before.get(DIFFERING, 0)})
    if differing:
        logger.warning(
            "%d of %d documents that were looked at differ in the index: searchcrawl verify %s --repair",
            differing,
            looked,
            name,
        )
    else:
        logger.info("%d documents of the index were looked at: it has them as the table says", looked)


def forget_end_look(run: Run) -> None:
    """Notes that what the last run saw was mended since; raises StoreError, LeaseLost."""
    if seen := run.copy_counts().get(DIFFERING, 0):
        run.count(**{DIFFERING: -seen})
        run.write_counted(lambda transaction: {})
