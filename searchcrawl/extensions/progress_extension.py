"""How far a run is: a line on a terminal; elsewhere a line of the log each minute. A stop says what it waits for."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

from scrapy import signals
from scrapy.crawler import Crawler

from searchcrawl import clock
from searchcrawl.delivery.delivery_extension import DeliveryExtension
from searchcrawl.exceptions import StoreError
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.urls import url_queue
from searchcrawl.terminal import make_console, to_one_line, wrap_line

_PAUSE_SECONDS: Final = 0.5
#: Between two lines of the log.
_LOG_SECONDS: Final = 60.0
#: Counting the queue takes at most a hundredth of the time, however long the queue is.
_COUNTING_SHARE: Final = 100
#: What a spinner and a clock take of the line, with blanks.
_BESIDE_TEXT: Final = 12
_FORCE: Final = "Ctrl-C once more ends it at once: nothing is lost, the next run goes on"

logger = logging.getLogger(__name__)


class ProgressExtension:
    """Draws in a thread of its own, so that the reactor waits neither for the terminal nor for the store."""

    def __init__(self, run: Run, *, log_seconds: float = _LOG_SECONDS) -> None:
        self._run = run
        self._log_seconds = log_seconds
        self._on_terminal = sys.stderr.isatty()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)
        self._meter = Meter()
        self._queue = 0
        self._count_again = 0.0
        self._crawler: Crawler | None = None
        self._delivery: DeliveryExtension | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ProgressExtension:
        extension = stages_of(crawler).get(cls)
        extension._crawler = crawler
        extension._delivery = stages_of(crawler).find(DeliveryExtension)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        return extension

    def engine_started(self) -> None:
        from twisted.internet import reactor  # to import it sooner would install another one

        # After a second Ctrl-C nothing else is called: the terminal gets its cursor back all the same.
        twisted: Any = reactor
        twisted.addSystemEventTrigger("before", "shutdown", self.stop, "shutdown")
        self._thread.start()

    def stop(self, reason: str) -> None:
        """Takes the line away; called once everything is delivered, or nothing more is waited for."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_PAUSE_SECONDS)
            if self._thread.is_alive() and self._on_terminal:
                # It waits for the store.
                make_console(sys.stderr).show_cursor(True)

    def _show(self) -> None:
        if self._on_terminal:
            self._draw()
            return
        while not self._stopped.wait(self._log_seconds):
            logger.info("%s", self._describe())

    def _draw(self) -> None:
        # Heavy, and needed on a terminal only.
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        console, stopping = make_console(sys.stderr), False
        with Progress(
            *columns,
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            task = progress.add_task("", total=None)
            while not self._stopped.wait(_PAUSE_SECONDS):
                if not stopping and self._is_stopping:
                    stopping = True
                    for line in wrap_line(f"Stopping: {self._find_wait()}. {_FORCE}.", console.width):
                        progress.console.print(line, soft_wrap=True)
                line = shorten_line(self._describe(), console.width - _BESIDE_TEXT)
                progress.update(task, description=line, refresh=True)

    def _describe(self) -> str:
        if self._run.database.outage_retry.away:
            line = "waiting for the store"
        elif self._is_stopping:
            line = self._find_wait()
        else:
            line = self._meter.line(self._run.copy_counts(), self._count_queue(), clock.monotonic())
        return to_one_line(f"{self._run.source.name}: {line}")

    @property
    def _is_stopping(self) -> bool:
        """Whether a signal has asked the crawl to end."""
        return self._crawler is not None and not self._crawler.crawling

    def _find_wait(self) -> str:
        """What a stop waits for."""
        engine = None if self._crawler is None else self._crawler.engine
        under_way = len(engine.downloader.active) if engine is not None else 0
        away = None if self._delivery is None else self._delivery.find_outage()
        return describe_wait(under_way, away)

    def _count_queue(self) -> int:
        """The number of rows still to be visited; a slow count is repeated less often."""
        begun = clock.monotonic()
        if begun >= self._count_again:
            try:
                with self._run.database.read_once() as transaction:
                    horizon_ms = self._run.row.horizon_ms
                    self._queue = url_queue.count_todo(transaction, self._run.source_id, horizon_ms)
            except StoreError as error:
                logger.warning("the queue could not be counted: %s", error)
            now = clock.monotonic()
            self._count_again = now + (now - begun) * _COUNTING_SHARE
        return self._queue


def describe_wait(under_way: int, outage: Exception | None) -> str:
    """What a crawl that was asked to end waits for: ``under_way`` requests, then the index, which may be away."""
    if under_way:
        return f"waits for {under_way} request{'' if under_way == 1 else 's'} under way"
    if outage is not None:
        return f"waits for the index, which cannot be reached ({outage})"
    return "sends what was fetched to the index"


def shorten_line(line: str, width: int) -> str:
    """``line`` without its last parts, where it is wider than ``width``: no word is cut."""
    while len(line) > width and ", " in line:
        line = line.rpartition(", ")[0]
    return line


class Meter:
    """Makes the text of the line; pages/s are those of the last ten seconds or so, or since the line before."""

    _WINDOW_SECONDS: Final = 10.0

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def line(self, counts: Mapping[str, int], queue: int, now_seconds: float) -> str:
        """The line at a monotonic time."""
        errors = counts["fetch_failures"]
        pages = counts["fetched"] + errors
        before = self._marks[-1:]
        self._marks = [mark for mark in self._marks if mark[0] > now_seconds - self._WINDOW_SECONDS] or before
        self._marks.append((now_seconds, pages))
        since, until = self._marks[0]
        rate = (pages - until) / (now_seconds - since) if now_seconds > since else 0.0
        # A row that is claimed, or waits to be tried again, is in no queue.
        others = 0 if queue else counts.get("to_fetch", 0)
        under_way = f", {others} under way or to be tried again" if others > 0 else ""
        return f"{pages} pages, {rate:.1f} pages/s, {queue} in the queue{under_way}, {errors} errors"
