"""Which errors of a database may end by themselves, and how a transaction is repeated meanwhile (X-S4, X-S9)."""

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
    """Repeats transactions while the store is away; all threads of a process share it, and its one outage.

    An outage begins with the first transaction that fails, in any thread. It ends with the first one that writes: a
    lock that stops the writers of an SQLite file does not stop its readers. ``seconds`` limit one outage. Safe for
    threads.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._since: float | None = None
        self._back = threading.Event()
        #: Called when an outage is over, in the thread that noticed it.
        self.on_return: list[Callable[[], None]] = []

    @property
    def away(self) -> bool:
        """Whether the store is known to be away."""
        return self._since is not None

    def attempt(self, call: Callable[[], T], *, writes: bool = True, retry_on: type[StoreAway] = StoreAway) -> T:
        """Returns the result of ``call``; repeats it after each error of the class ``retry_on``, and raises the last of them.

        ``call`` is made at least once, even after an outage that lasted too long. Without ``writes`` a success does not
        end an outage.
        """
        pause = _FIRST_PAUSE_SECONDS
        while True:
            begun = clock.monotonic()
            try:
                result = call()
            except retry_on as error:
                remaining = self._note_failure(error, begun)
                if remaining <= 0:
                    raise self._build_error(error) from error
            except StoreError:
                raise
            except Exception:
                # This is no error of the store, which has answered.
                self._note_success(writes=writes)
                raise
            else:
                self._note_success(writes=writes)
                return result
            # The pause is random, so that processes that lost the store together do not return at the same moment.
            self._back.wait(min(random.uniform(0.5, 1.0) * pause, remaining))  # noqa: S311  # no secret
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _note_failure(self, error: StoreAway, begun: float) -> float:
        """Notes a failed call that began at ``begun``; returns how many seconds are left for more tries."""
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

    def _note_success(self, *, writes: bool) -> None:
        # Each transaction passes here, so this is checked without the lock first.
        if self._since is None or not writes:
            return
        with self._lock:
            since, self._since = self._since, None
            self._back.set()
        if since is not None:
            logger.info("the store answers again after %.1f s", clock.monotonic() - since)
            for tell in self.on_return:
                tell()

    def _build_error(self, error: StoreAway) -> StoreAway:
        return type(error)(f"{error} (waited {self._seconds:g} s)") if self._seconds else error
