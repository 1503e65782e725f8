"""Writes down how a run ended: its reason, its counts and its exit code, once everything else has ended."""

from __future__ import annotations

import logging
from typing import Final

from scrapy.crawler import Crawler

from searchcrawl import urls
from searchcrawl.codes import ANSWERED, REFUSED, Code
from searchcrawl.counters import FAILED_LISTINGS, MISCOUNTED, NO_START, has_mostly_failed_logins
from searchcrawl.exceptions import ConfigurationError, Exit, LeaseLost, StoreError, exit_of, exit_of_failure
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store import listing_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.states import EndReason, FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

_END_REASONS: Final = frozenset(EndReason)


class RunEndExtension:
    """Writes the end of the run; it is called after everything else has ended."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RunEndExtension:
        return stages_of(crawler).get(cls)

    def write(self, reason: str) -> None:
        """Writes the end of the run, and gives the lease back; called once everything is delivered."""
        run = self._run
        if run.attributes is not None:
            for attribute, count in sorted(run.attributes.unreadable.items()):
                logger.warning(
                    "attribute %s: %s left out, which could not be read",
                    attribute,
                    counted(count, "value is", "values are"),
                )
        failure = run.shutdown.failure
        ended = find_end_reason(reason, failed=failure is not None and not isinstance(failure, ConfigurationError))
        try:
            # The table of a source that another process took over is that of its run.
            if not isinstance(failure, LeaseLost):
                _check_counters(run)
            # A file that was not written is the least of what may have gone wrong.
            run.exit_code = find_exit_code(run, ended) or (
                exit_of(run.files.failure) if run.files.failure else Exit.DONE
            )
            run.end(ended, run.exit_code)
        except (StoreError, LeaseLost) as error:
            run.exit_code = Exit.STORE_FAILED
            run.shutdown.failure = run.shutdown.failure or error
            logger.warning("the end of the run could not be written: %s", error)
        logger.info("run %d of %s ended: %s, exit %s", run.id, run.source.name, ended, run.exit_code)


def _check_counters(run: Run) -> None:
    """Says where the counters of URLs are not those of the table; raises StoreError."""
    wrong = run.find_miscounts()
    if wrong:
        logger.error(
            "the counters of run %d do not add up: %s",
            run.id,
            ", ".join(f"{name} {counted} (the table has {there})" for name, (counted, there) in wrong.items()),
        )
        run.count(**{MISCOUNTED: sum(abs(counted - there) for counted, there in wrong.values())})


def find_end_reason(reason: str, *, failed: bool) -> str:
    """The end reason of a run for that of Scrapy: after a signal (``shutdown``) it is ``stopped``."""
    if failed:
        return EndReason.STORE_FAILED
    if reason in _END_REASONS:
        return reason
    return EndReason.STOPPED if reason in {"shutdown", "cancelled"} else reason


def find_exit_code(run: Run, reason: str) -> Exit:
    """The exit code of a run that ended for ``reason``; raises StoreError."""
    if run.shutdown.failure is not None:
        return exit_of_failure(run.shutdown.failure)
    if run.delivery_failure is not None:
        return Exit.INDEX_AWAY
    quarantined = run.read(lambda transaction: document_table.count_totals(transaction, run.source_id)["quarantined"])
    if reason == EndReason.APPLIED:
        return Exit.QUARANTINE if quarantined else Exit.DONE
    if reason != EndReason.FINISHED:
        return Exit.ENDED_EARLY
    if run.requests and _every_start_failed(run):
        run.count(**{NO_START: 1})
        return Exit.NO_START
    if has_mostly_failed_logins(run.copy_counts()):
        logger.warning("most pages failed the login")
        return Exit.NO_START
    if quarantined:
        return Exit.QUARANTINE
    # What could not be listed may have changed, and so may what was out of reach when it was to be read.
    return Exit.ENDED_EARLY if run.copy_counts().get(FAILED_LISTINGS) or _was_out_of_reach(run) else Exit.DONE


def _was_out_of_reach(run: Run) -> bool:
    """Whether what is listed could not be read because its source was away, as a server or a disk."""
    if not run.source.kind.is_listed or not run.copy_counts().get("fetch_failures"):
        return False
    return run.read(listing_table.has_out_of_reach, run.source_id)


def _every_start_failed(run: Run) -> bool:
    """Whether this run got nothing from any start URL; failures of earlier runs do not count."""
    keys = [urls.key(start.url) for start in run.starts]
    rows = run.read(url_table.find_known, run.source_id, keys)
    if not rows:
        return False
    counts = run.copy_counts()
    visited = any(counts[name] for name in ("fetched", "fetch_failures", "rejected"))
    # A start URL outside the boundary is never visited, and fails in each run.
    if not visited and not all(row.code in REFUSED for row in rows):
        return False
    # One that is not to be requested yet has not failed.
    answered = ANSWERED | {Code.NOT_FETCHED}
    return all(row.fetch_state == FetchState.SETTLED and row.code not in answered for row in rows)
