"""A line with pages, pages/s, queue and errors while a run goes on; on a terminal only."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from typing import Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.urls import url_table
from searchcrawl.terminal import make_console

_PAUSE_SECONDS: Final = 0.5
#: Counting the queue takes at most a hundredth of the time, however long the queue is.
_COUNTING_SHARE: Final = 100

logger = logging.getLogger(__name__)


class ProgressExtension:
    """Draws in a thread of its own, so that the reactor waits neither for the terminal nor for the store."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
        self._meter = Meter()
        self._queue = 0
        self._count_again = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ProgressExtension:
        extension = stages_of(crawler).find(cls)
        if extension is None:
            raise NotConfigured("standard error is no terminal")
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        return extension

    def engine_started(self) -> None:
        self._thread.start()

    def stop(self, reason: str) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_PAUSE_SECONDS)

    def _draw(self) -> None:
        # Heavy, and needed on a terminal only.
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(
            *columns,
            console=make_console(sys.stderr),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            task = progress.add_task("", total=None)
            while not self._stopped.wait(_PAUSE_SECONDS):
                if self._run.database.outage_retry.away:
                    line = "waiting for the store"
                else:
                    line = self._meter.line(self._run.copy_counts(), self._count_queue(), clock.monotonic())
                progress.update(task, description=f"{self._run.source.name}: {line}", refresh=True)

    def _count_queue(self) -> int:
        """The number of rows still to be visited; a slow count is repeated less often."""
        begun = clock.monotonic()
        if begun >= self._count_again:
            try:
                with self._run.database.read_once() as transaction:
                    horizon_ms = self._run.row.horizon_ms
                    self._queue = url_table.count_todo(transaction, self._run.source_id, horizon_ms)
            except StoreError as error:
                logger.warning("the queue could not be counted: %s", error)
            now = clock.monotonic()
            self._count_again = now + (now - begun) * _COUNTING_SHARE
        return self._queue


class Meter:
    """Makes the text of the line; pages/s are those of the last ten seconds or so."""

    _WINDOW_SECONDS: Final = 10.0

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def line(self, counts: Mapping[str, int], queue: int, now_seconds: float) -> str:
        """The line at a monotonic time."""
        errors = counts["fetch_failures"]
        pages = counts["fetched"] + errors
        self._marks = [mark for mark in self._marks if mark[0] > now_seconds - self._WINDOW_SECONDS]
        self._marks.append((now_seconds, pages))
        since, before = self._marks[0]
        rate = (pages - before) / (now_seconds - since) if now_seconds > since else 0.0
        return f"{pages} pages, {rate:.1f} pages/s, {queue} in the queue, {errors} errors"
