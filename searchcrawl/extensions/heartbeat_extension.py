"""Renews the lease of the source while the run goes on (X-S3), and looks at the disks."""

from __future__ import annotations

import logging
import threading

from scrapy import signals
from scrapy.crawler import Crawler

from searchcrawl.cache.disk_space import refuse_low
from searchcrawl.exceptions import DiskFull, LeaseLost, StoreError
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.runs.lease import BEAT_SECONDS

logger = logging.getLogger(__name__)


class HeartbeatExtension:
    """Beats in a thread of its own, so that a busy reactor does not lose the lease.

    The run ends where the lease is lost, and where a disk has less than ``min_free_bytes`` left:
    then all that was fetched can still be written down (X-D18).
    """

    def __init__(self, run: Run, *, min_free_bytes: int) -> None:
        self._run = run
        self._min_free_bytes = min_free_bytes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HeartbeatExtension:
        extension = stages_of(crawler).get(cls)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        return extension

    def engine_started(self) -> None:
        self._thread.start()

    def finished(self, reason: str) -> None:
        self._over.set()

    def _beat(self) -> None:
        try:
            self._look_at_disks()
            while not self._over.wait(BEAT_SECONDS):
                self._run.beat()
                self._look_at_disks()
        except (LeaseLost, StoreError, DiskFull) as error:
            logger.warning("the heart stops: %s", error)
            self._run.shutdown.fail(error)

    def _look_at_disks(self) -> None:
        if self._min_free_bytes:
            project = self._run.project
            folders = [project.cache_dir, project.logs_dir]
            folders += [project.index_dir] if project.index.type == "local" else []
            folders += [self._run.database.folder] if self._run.database.folder else []
            refuse_low(folders, min_free_bytes=self._min_free_bytes)
