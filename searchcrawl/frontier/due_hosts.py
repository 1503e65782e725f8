"""Which hosts have known rows that are due again."""

from __future__ import annotations

from collections import deque
from typing import Final

from searchcrawl.frontier.window import MOST_HOSTS
from searchcrawl.run import Run
from searchcrawl.store.urls import url_queue
from searchcrawl.store.urls.url_queue import FIRST, DuePlace

#: Rows that are read at once, and how often within one call.
_PAGE_ROWS: Final = 256
_PAGES: Final = 16


class DueHosts:
    """Finds hosts along the index of what is due, and keeps them until nothing of them is due.

    Each due row is passed about once in a run, so that the cost does not rise with the number of hosts. For the
    claiming thread. ``begin`` begins a scan, and ``take`` goes on with it until ``done``.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: dict[int, None] = {}
        self._waiting: deque[int] = deque()
        self._place = FIRST
        self._at_end = False
        #: whether this scan sees all that is due: rows that became due behind the place are found by such a scan
        self.is_whole = False

    def begin(self) -> None:
        """Begins a scan: of the known hosts, then of new ones; of everything that is due where none is known."""
        self._waiting = deque(self._known)
        self.is_whole = not self._known
        if self.is_whole:
            self._place, self._at_end = FIRST, False

    def look_again(self, place: DuePlace) -> None:
        """Has the next scan look for hosts behind ``place`` once more: rows of theirs have become due, or may be claimed."""
        self._place, self._at_end = place, False

    @property
    def known(self) -> list[int] | None:
        """All hosts with rows that are due; None where there may be more."""
        return list(self._known) if self._at_end else None

    @property
    def done(self) -> bool:
        """Whether the scan has seen all hosts that it may."""
        return not self._waiting and (self._at_end or len(self._known) >= MOST_HOSTS)

    def take(self, horizon_ms: int, *, most: int) -> list[int]:
        """The next hosts of the scan, ``most`` at most; raises StoreError."""
        for _ in range(_PAGES):
            if self._at_end or len(self._waiting) >= most or len(self._known) >= MOST_HOSTS:
                break
            self._read_page(horizon_ms)
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def drop(self, host_id: int) -> None:
        """Notes that nothing of a host is due any more."""
        self._known.pop(host_id, None)

    def _read_page(self, horizon_ms: int) -> None:
        run = self._run
        page = run.read(
            url_queue.find_due, source_id=run.source_id, horizon_ms=horizon_ms, after=self._place, limit=_PAGE_ROWS
        )
        self._at_end = len(page) < _PAGE_ROWS
        for place in page:
            self._place = place
            if place.host_id not in self._known:
                self._known[place.host_id] = None
                self._waiting.append(place.host_id)
