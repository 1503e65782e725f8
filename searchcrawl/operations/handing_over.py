"""Has other sources take over what their copies stand for now: documents of one source that stood for them are going (F4).

Each source is changed under its own lease. One that is being crawled does it itself, at the end of its run.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from searchcrawl.commit.shared_copies import find_over, settle_shared_copies
from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.exceptions import SearchcrawlError, StoreError
from searchcrawl.index.opening import use_index
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.sources.loading import load_source
from searchcrawl.sources.project import Project
from searchcrawl.store import source_table
from searchcrawl.store.documents import shared_copy_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table

logger = logging.getLogger(__name__)

#: What one source decides may concern the next one; what is left then is done by their next runs.
_ROUNDS: Final = 3


def hand_over(project: Project, database: Database, *, retry_seconds: float, without: int | None = None) -> None:
    """Has all sources that share copies decide anew where others have changed, and deliver; ``without`` the one with this id,
    which is being crawled by this process.

    Sources that cannot do it now are named in the log: their next runs do it. Raises StoreError.
    """
    failed: set[int] = set()
    for _ in range(_ROUNDS):
        wanting = {each: name for each, name in database.read(_find_wanting).items() if each not in {*failed, without}}
        if not wanting:
            return
        for source_id, name in wanting.items():
            try:
                # A crawl is watched as a whole.
                _hand_over_to(project, name, database, retry_seconds, in_crawl=without is not None)
            except StoreError:
                raise
            except SearchcrawlError as error:
                # What is the matter with another source is no failure of this one.
                logger.warning("copies of other sources in %s are decided about by its next run: %s", name, error)
                failed.add(source_id)


def _find_wanting(transaction: Transaction) -> dict[int, str]:
    """The sources that have to decide anew about copies of documents of others, or to list them anew, by id."""
    return {
        source_id: name
        for source_id, name in shared_copy_table.find_sharing(transaction).items()
        if shared_copy_table.has_dues(transaction, source_id)
        or find_over(transaction, source_id)
        or _is_cut_off(transaction, source_id)
    }


def _is_cut_off(transaction: Transaction, source_id: int) -> bool:
    """Whether something waits although the last run has ended: a process died after it had decided, or an index was away."""
    last = run_table.find_last(transaction, source_id)
    # A resend that was cut off is long: it is completed by its own source.
    if last is None or last.ended_ms is None or source_table.find(transaction, source_id, "resend_version") is not None:
        return False
    return delivery_queue.is_waiting(transaction, source_id)


def _hand_over_to(project: Project, name: str, database: Database, retry_seconds: float, *, in_crawl: bool) -> None:
    source = load_source(project, name)
    if not source.shares_copies:
        # Its own next run takes back what it shared.
        return
    with lease_source(project, source, database, watched=not in_crawl) as run:
        if run is None:
            return
        # What the index got by now was there before: only its next run takes it out, within the limits.
        run.row = replace(run.row, batch_before=run.read(run_table.find_last_batch))
        settle_shared_copies(run, gives_way=False)
        if run.delivers and run.read(delivery_queue.is_waiting, source_id=run.source_id):
            with (
                use_index(project) as receiver,
                open_sender(run, receiver, retry_seconds=retry_seconds) as sender,
            ):
                delivery_queue.flush(sender)
