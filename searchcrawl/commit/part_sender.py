"""Hands what is listed to the writer, in parts and no faster than they are written."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from searchcrawl.exceptions import CrawlEnds

P = TypeVar("P")

#: How many entries of all parts together may wait for the writer; that a list was read to its end counts as one.
ENTRIES_AHEAD: Final = 8000


class PartSender(Generic[P]):
    """Hands parts to the writer by ``submit``, which answers False where no writer takes them; thread-safe.

    ``count`` says how many entries a part has.
    """

    def __init__(self, submit: Callable[[P], bool], count: Callable[[P], int]) -> None:
        self._submit = submit
        self._count = count
        self._changed = threading.Condition()
        #: how many entries each part has that waits: a rewriter may leave some out before it is written
        self._waiting: deque[int] = deque()
        self._entries = 0
        self._stopped = False

    def send(self, part: P) -> None:
        """Blocks while too many entries wait to be written; raises CrawlEnds once the run ends. One thread calls it."""
        size = self._count(part) + 1
        with self._changed:
            while self._waiting and self._entries + size > ENTRIES_AHEAD and not self._stopped:
                self._changed.wait()
            self._waiting.append(size)
            self._entries += size
        if self._stopped or not self._submit(part):
            raise CrawlEnds

    def on_committed(self, part: P) -> None:
        """A part is in the store, as all before it: there is room for others."""
        with self._changed:
            self._entries -= self._waiting.popleft()
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends all waiting."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
