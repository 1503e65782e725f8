"""The thread that claims rows of a run, step by step; what a step is, its subclasses say."""

from __future__ import annotations

import functools
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from searchcrawl.exceptions import SearchcrawlError

logger = logging.getLogger(__name__)

#: How long it waits where nothing can be claimed for now, unless it is woken.
IDLE_SECONDS: Final = 1.0


class ClaimingThread(ABC):
    """Claims rows in a thread of its own, and counts those that are not settled yet.

    ``filled`` is called when there are claims to hand out. ``exhausted`` is called once, when nothing is left: all
    claimed rows were committed, and a look that began after that found no row. ``failed`` is called with the error of
    the store. All three are called in this thread. The reactor calls ``start`` and ``runs_low``; any thread may call
    ``hold`` and ``note_committed``.
    """

    def __init__(
        self,
        *,
        filled: Callable[[], None],
        exhausted: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._filled = filled
        self._exhausted = exhausted
        self._failed = failed
        self._outstanding = 0
        self._counting = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="claiming", daemon=True)

    @abstractmethod
    def open(self) -> None:
        """Reads what is needed before the first request; raises StoreError."""

    @abstractmethod
    def runs_low(self) -> None:
        """Notes that there are few claims left to hand out."""

    @abstractmethod
    def note_committed(self, visits: int) -> None:
        """Notes that this number of claimed rows was settled in the store."""

    @abstractmethod
    def _step(self) -> float | None:
        """Claims what it can; returns the seconds until the next step, or None if nothing is left."""

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def hold(self) -> Callable[[], None]:
        """Keeps the run from ending, as a claimed row does, until the returned function is called."""
        self._count(1)
        return functools.partial(self.note_committed, 1)

    def stop(self) -> None:
        """Ends the thread after its present step, and waits for its end."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _count(self, rows: int) -> None:
        """Notes rows that were claimed, or (less than 0) settled."""
        with self._counting:
            self._outstanding += rows

    def _is_idle(self) -> bool:
        """Whether all claimed rows are settled."""
        with self._counting:
            return self._outstanding == 0

    def _work(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                pause = self._step()
            except SearchcrawlError as error:
                logger.warning("claiming stops: %s", error)
                self._failed(error)
                return
            except Exception as error:  # the edge of the thread: whatever it is ends the run
                logger.exception("claiming stops")
                self._failed(error)
                return
            if pause is None:
                self._exhausted()
                return
            self._wake.wait(pause)
