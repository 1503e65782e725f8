"""The requests of the last login that have no answer yet: a page that was refused may wait for what they show (C10)."""

from __future__ import annotations

import asyncio
from typing import Final

#: An answer is not waited for longer: its request may have ended in another way.
_ANSWER_SECONDS: Final = 10.0
#: Nor is the next request, once no other is under way: there may be none.
NEXT_SECONDS: Final = 3.0


class UnderWay:
    """Requests by keys of their own, numbered as they are sent; for the event loop.

    ``sent`` is the number of the last one, ``opened`` the highest of those that opened a page.
    """

    def __init__(self, next_seconds: float = NEXT_SECONDS) -> None:
        self._next_seconds = next_seconds
        self._generation = 0
        self._requests: dict[int, int] = {}
        self._changed = asyncio.Event()
        self.sent = 0
        self.opened = 0

    def begin(self, key: int, generation: int) -> None:
        """Notes that a request of the login ``generation`` is sent; those of older ones count no more."""
        if generation != self._generation:
            self._requests.clear()
            self._generation = generation
        self.sent += 1
        self._requests[key] = self.sent
        self._tell()

    def end(self, key: int, *, opened: bool = False) -> None:
        """Notes that a request was answered or failed."""
        number = self._requests.pop(key, None)
        if number is not None:
            self.opened = max(self.opened, number) if opened else self.opened
            self._tell()

    async def wait(self, *, for_next: bool = False) -> bool:
        """Waits until a request is sent or has ended; False where none does for long.

        If none is under way, it waits only with ``for_next``.
        """
        if not (self._requests or for_next):
            return False
        try:
            await asyncio.wait_for(self._changed.wait(), _ANSWER_SECONDS if self._requests else self._next_seconds)
        except TimeoutError:
            return False
        return True

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
