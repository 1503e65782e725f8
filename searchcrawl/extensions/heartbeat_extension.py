"""Renews the lease of the source while the run goes on (decision 10 of requirements.md)."""

from __future__ import annotations

import logging
import threading

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.run import Run
from searchcrawl.store.lease import BEAT_SECONDS

logger = logging.getLogger(__name__)


class HeartbeatExtension:
    """Beats in a thread of its own, so that a busy reactor does not lose the lease."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HeartbeatExtension:
        run: Run | None = getattr(crawler.spider, "run", None)
        if run is None:
            raise NotConfigured("the spider is not that of a source")
        extension = cls(run)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        run.wires.finished.append(extension.finished)
        return extension

    def engine_started(self) -> None:
        self._thread.start()

    def finished(self, reason: str) -> None:
        self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            try:
                self._run.beat()
            except (LeaseLost, StoreError) as error:
                logger.warning("the lease could not be renewed: %s", error)
                self._run.fail(error)
                return
