"""Trying again with growing pauses while an index cannot be reached."""

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


class Patience:
    """While a run is going on an index is waited for; once it ends, or cannot go on without, ``seconds`` more."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._hurry = threading.Event()
        self._deadline: float | None = None

    def run_is_ending(self) -> None:
        """From now on the remaining time is limited."""
        self._deadline = clock.monotonic() + self._seconds
        self._hurry.set()

    def nothing_else_to_do(self) -> None:
        """Fetching waits for the index too: so the remaining time is limited until it answers again."""
        if self._deadline is None:
            self._deadline = clock.monotonic() + self._seconds

    def attempt(self, call: Callable[[], T]) -> T:
        """The result of ``call``, tried until it works; raises IndexUnavailable when time is up."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                result = call()
            except IndexUnavailable as error:
                wait = max(pause, min(error.retry_after_seconds or 0.0, 10 * _LONGEST_PAUSE_SECONDS))
                if self._deadline is not None and clock.monotonic() + wait > self._deadline:
                    raise
                logger.warning("%s; trying again in %.1f s", error, wait)
                self._wait(wait)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                if not self._hurry.is_set():
                    self._deadline = None
                return result

    def _wait(self, seconds: float) -> None:
        if self._hurry.is_set():
            threading.Event().wait(seconds)
        else:
            # The end of the run interrupts a long pause: one try more is due then.
            self._hurry.wait(seconds)
