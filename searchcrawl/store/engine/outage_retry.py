"""Trying again with growing pauses while the store is locked or out of reach (X-S4, X-S9)."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from searchcrawl import clock
from searchcrawl.exceptions import StoreAway, StoreError

logger = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0


class OutageRetry:
    """What all threads of a process know of the store's being away; ``seconds`` bound one outage.

    An outage begins with the first transaction that fails, for whichever thread, and ends with the
    first that writes: readers of a file pass a lock that stops writers. Safe for threads.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._since: float | None = None
        self._back = threading.Event()
        #: called, in any thread, once an outage is over
        self.on_return: list[Callable[[], None]] = []

    @property
    def away(self) -> bool:
        """Whether the store is known to be away."""
        return self._since is not None

    def attempt(self, call: Callable[[], T], *, writes: bool = True, only: type[StoreAway] = StoreAway) -> T:
        """The result of ``call``, tried again after each error of the kind ``only``; raises it when time is up.

        ``call`` is made at least once, also after an outage that lasted too long.
        """
        pause = _FIRST_PAUSE_SECONDS
        while True:
            begun = clock.monotonic()
            try:
                result = call()
            except only as error:
                remaining = self._went_away(error, begun)
                if remaining <= 0:
                    raise self._given_up(error) from error
            except StoreError:
                raise
            except Exception:
                # Not an error of the store: it has answered.
                self._came_back(writes=writes)
                raise
            else:
                self._came_back(writes=writes)
                return result
            # Processes that were shut out together do not come back together.
            self._back.wait(min(random.uniform(0.5, 1.0) * pause, remaining))  # noqa: S311  # no secret
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _went_away(self, error: StoreAway, begun: float) -> float:
        """Notes a failed call; how many seconds of patience are left."""
        if not self._seconds:
            return 0.0
        with self._lock:
            is_news = self._since is None
            if self._since is None:
                self._since = begun
                self._back.clear()
            since = self._since
        if is_news:
            logger.warning("%s; fetching pauses, waiting up to %g s for it", error, self._seconds)
        return since + self._seconds - clock.monotonic()

    def _came_back(self, *, writes: bool) -> None:
        # Unlocked first: this is passed by each transaction.
        if self._since is None or not writes:
            return
        with self._lock:
            since, self._since = self._since, None
            self._back.set()
        if since is not None:
            logger.info("the store answers again after %.1f s", clock.monotonic() - since)
            for tell in self.on_return:
                tell()

    def _given_up(self, error: StoreAway) -> StoreAway:
        return type(error)(f"{error} (waited {self._seconds:g} s)") if self._seconds else error
