"""A Scrapy extension for tests: how long the reactor stood still, and how much memory a crawl took."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

from scrapy import signals
from scrapy.crawler import Crawler

_TICK_SECONDS: Final = 0.05
_TASKS: Final = Path("/proc/self/task")


class ReactorProbe:
    """Writes ``{"longest_stall_seconds", "peak_megabytes"}`` to the file of the setting PROBE_FILE.

    A stall is the time by which a tick is late, without what threads of ours spent waiting for a processor: a busy
    machine is no fault of the crawl. The memory is that of this process alone.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._longest_seconds = 0.0
        self._last = 0.0
        self._waited: dict[str, int] = {}
        self._handle: asyncio.TimerHandle | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(Path(crawler.settings["PROBE_FILE"]))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        assert threading.current_thread() is threading.main_thread()
        self._loop = asyncio.get_running_loop()
        self._last, self._waited = time.monotonic(), _waited()
        self._handle = self._loop.call_later(_TICK_SECONDS, self._tick)

    def spider_closed(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._measure()
        found: dict[str, Any] = {
            "longest_stall_seconds": round(self._longest_seconds, 3),
            "peak_megabytes": _peak_megabytes(),
        }
        self._file.write_text(json.dumps(found), encoding="utf-8")

    def _tick(self) -> None:
        self._measure()
        self._handle = self._loop.call_later(_TICK_SECONDS, self._tick)

    def _measure(self) -> None:
        now, waited = time.monotonic(), _waited()
        starved = max((waited[task] - self._waited.get(task, waited[task]) for task in waited), default=0) / 1e9
        late = now - self._last - _TICK_SECONDS - starved
        self._longest_seconds = max(self._longest_seconds, late)
        self._last, self._waited = now, waited


def _waited() -> dict[str, int]:
    """Nanoseconds that each thread has waited for a processor; empty where the system does not tell."""
    found = {}
    for task in _TASKS.iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            # The thread ended meanwhile.
            continue
    return found


def _peak_megabytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise RuntimeError("the system does not tell the peak of memory")
