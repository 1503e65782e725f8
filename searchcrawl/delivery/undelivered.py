"""The end of a run that delivers nothing: counts what a run that delivers would send and remove (D11, H6)."""

from __future__ import annotations

import logging
from functools import partial

from searchcrawl.counters import PAST_LIMITS, UNSENT_REMOVALS
from searchcrawl.delivery.removals import find_limits, find_pages
from searchcrawl.run import Run
from searchcrawl.store.batches import removal_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.states import Leaving
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


def report(run: Run, *, completed: bool) -> None:
    """Counts what waits into the run, and logs it; raises StoreError, LeaseLost."""
    # Of copies the text of their survivors waits as well.
    with_evidence = sum(row.leaving != Leaving.NO for rows in find_pages(run, completed) for row in rows)
    removals = with_evidence + run.read(partial(removal_table.count_copies, source_id=run.source_id))
    limits = run.read(partial(find_limits, run=run, candidates=removals))
    waiting = run.read(partial(document_table.count_totals, source_id=run.source_id))["waiting"]
    run.counts[UNSENT_REMOVALS] = removals
    run.counts[PAST_LIMITS] = int(removals > 0 and not limits.allowed)
    logger.info(
        "nothing was delivered, because of %s in %s: a run without it would send %s and remove %d",
        run.source.no_delivery_key,
        run.source.file,
        counted(waiting, "document", "documents"),
        removals,
    )
