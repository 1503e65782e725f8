"""Calls an index again, with growing pauses, while it cannot be reached.

It differs from the retry of the store (``store/engine/outage_retry.py``): one thread calls an index, an index may name
the pause itself, and there is no limit while a crawl runs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from searchcrawl import clock
from searchcrawl.exceptions import IndexUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 30.0


class IndexRetry:
    """Waits for an index without limit while a run goes on, and for ``seconds`` once a limit is set.

    The thread that sends calls ``attempt``; any thread may set a limit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._run_ends = threading.Event()
        self._deadline: float | None = None
        #: Why the index is waited for; None while it answers.
        self.outage: IndexUnavailable | None = None

    def limit_to_end(self) -> None:
        """Notes that the run ends: from now on all calls together have only ``seconds``."""
        self._deadline = clock.monotonic() + self._seconds
        self._run_ends.set()

    def limit_until_answer(self) -> None:
        """Notes that fetching waits for the index: it has only ``seconds`` until it answers again."""
        if self._deadline is None:
            self._deadline = clock.monotonic() + self._seconds

    def attempt(self, call: Callable[[], T]) -> T:
        """The result of ``call``, repeated until it works; raises IndexUnavailable when the time is up."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                result = call()
            except IndexUnavailable as error:
                wait = max(pause, min(error.retry_after_seconds or 0.0, 10 * _LONGEST_PAUSE_SECONDS))
                if self._deadline is not None and clock.monotonic() + wait > self._deadline:
                    raise
                self.outage = error
                logger.warning("%s; trying again in %.1f s", error, wait)
                self._wait(wait)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                self.outage = None
                if not self._run_ends.is_set():
                    self._deadline = None
                return result

    def _wait(self, seconds: float) -> None:
        if self._run_ends.is_set():
            threading.Event().wait(seconds)
        else:
            # The end of the run interrupts a long pause, and one more try follows.
            self._run_ends.wait(seconds)
