"""Writes down how a run ended: its reason, its counts and its exit code."""

from __future__ import annotations

import logging

from scrapy.crawler import Crawler

from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.queries import run_outcome
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)


class ReportExtension:
    """The last to hear of the end of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReportExtension:
        return stages_of(crawler).get(cls)

    def finished(self, reason: str) -> None:
        run = self._run
        if run.attributes is not None:
            for attribute, count in sorted(run.attributes.unreadable.items()):
                logger.warning("attribute %s: %d values could not be read, and were left out", attribute, count)
        ended = run_outcome.end_reason(reason, failed=run.shutdown.failure is not None)
        try:
            run.exit_code = run_outcome.exit_code(run, ended)
            run.end(ended, run.exit_code)
        except (StoreError, LeaseLost) as error:
            run.exit_code = run_outcome.STORE_FAILED
            run.shutdown.failure = run.shutdown.failure or error
            logger.warning("the end of the run could not be written: %s", error)
        logger.info("run %d of %s ended: %s, exit %s", run.id, run.source.name, ended, run.exit_code)
