"""The claims that are in memory, by host, and which of them may go now."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from searchcrawl import clock
from searchcrawl.items import Claim
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.politeness.host_state import HostState

#: Rows claimed ahead of need: of a host without delay, of a host with one, of all together.
HOST_ROWS: Final = 192
DELAYED_HOST_ROWS: Final = 2
WINDOW_ROWS: Final = 384


@dataclass(slots=True, eq=False)
class _HostQueue:
    """The waiting claims of a host."""

    host: HostState
    claims: deque[Claim] = field(default_factory=deque)
    #: whether it is in one of the three queues of the window
    queued: bool = False


class Window:
    """Claims by host, handed out as ``hosts`` allows.

    The claiming thread fills it and the reactor takes from it; all methods are quick and take the registry's lock.
    Times are monotonic seconds.
    """

    def __init__(self, hosts: HostRegistry) -> None:
        self.hosts = hosts
        hosts.on_free = self._queue_host
        self._lock = hosts.lock
        self._queues: dict[str, _HostQueue] = {}
        self._in_flight: dict[int, _HostQueue] = {}
        #: hosts whose next claim may go now; that wait for a moment (a heap by moment and number); that wait for the
        #: cap on hosts
        self._ready: deque[_HostQueue] = deque()
        self._delayed: list[tuple[float, int, _HostQueue]] = []
        self._capped: deque[_HostQueue] = deque()
        self._serial = 0
        self._size = 0

    @property
    def size(self) -> int:
        """How many claims wait."""
        return self._size

    @property
    def runs_low(self) -> bool:
        """Whether it is time to claim more."""
        return self._size < WINDOW_ROWS // 6

    @property
    def in_flight(self) -> int:
        """How many claims were handed out and have not ended."""
        return len(self._in_flight)

    def count_wanted(self, name: str) -> int:
        """How many more rows of a host are wanted now."""
        with self._lock:
            queue = self._queues.get(name)
            waiting = len(queue.claims) if queue else 0
            slow = self.hosts.delay_seconds(name) and self.hosts.blocked_code(name) is None
            most = DELAYED_HOST_ROWS if slow else HOST_ROWS
            # Few at a time are not worth a transaction.
            return 0 if waiting > most // 2 else min(most - waiting, WINDOW_ROWS - self._size)

    def fill(self, name: str, claims: Iterable[Claim]) -> None:
        """Adds claims of a host."""
        with self._lock:
            queue = self._find_or_add(name)
            before = len(queue.claims)
            queue.claims.extend(claims)
            self._added(queue, len(queue.claims) - before)

    def fill_first(self, name: str, claim: Claim) -> None:
        """Adds a claim that was redirected to a host: it goes before all others."""
        with self._lock:
            queue = self._find_or_add(name)
            queue.claims.appendleft(claim)
            self._added(queue, 1)

    def pop(self, now: float) -> tuple[str, Claim] | None:
        """The next claim that may go now, with its host; None where none may."""
        hosts = self.hosts
        with self._lock:
            hosts.update_delay()
            while self._delayed and self._delayed[0][0] <= now:
                self._ready.append(heapq.heappop(self._delayed)[2])
            if self._capped:
                # Those that have waited longest try first.
                for _ in range(min(hosts.cap.count_free(now), len(self._capped))):
                    self._ready.append(self._capped.popleft())
            while self._ready:
                queue = self._ready.popleft()
                queue.queued = False
                host = queue.host
                # The last free request is for the side request that waits.
                side_is_next = host.side_waiting > 0 and not host.side_was_last
                if not queue.claims or hosts.count_free(host) <= side_is_next:
                    continue
                start = hosts.find_start(host, now)
                if start is None or start > now:
                    # By the same clock: with a later time it could be ready again, and this loop would not end.
                    self._queue(queue, now)
                    continue
                if not hosts.cap.acquire(host.name, now):
                    queue.queued = True
                    self._capped.append(queue)
                    continue
                return host.name, self._take(queue, now)
            return None

    def next_moment(self) -> float | None:
        """When a claim may go that waits for a delay or for the cap on hosts; None where none waits for a moment."""
        with self._lock:
            start = self._delayed[0][0] if self._delayed else None
            free = self.hosts.cap.next_free() if self._capped else None
            return min((moment for moment in (start, free) if moment is not None), default=None)

    def release(self, url_id: int) -> None:
        """A claim that was handed out has left its host: its visit ended, or is redirected to another host."""
        with self._lock:
            queue = self._in_flight.pop(url_id, None)
            if queue is not None:
                queue.host.visited = True
                self.hosts.end_request(queue.host)

    def host_of(self, url_id: int) -> str | None:
        """The host of a claim that was handed out."""
        queue = self._in_flight.get(url_id)
        return None if queue is None else queue.host.name

    def take_blocked(self) -> list[tuple[str, int, Claim]]:
        """Takes out the claims of blocked hosts, each with its host and the code of the block."""
        with self._lock:
            return [
                (queue.host.name, queue.host.blocked_code, claim)
                for queue in self._queues.values()
                if queue.host.blocked_code is not None
                for claim in self._clear(queue)
            ]

    def drain(self) -> list[Claim]:
        """Takes out all claims."""
        with self._lock:
            return [claim for queue in self._queues.values() for claim in self._clear(queue)]

    def _find_or_add(self, name: str) -> _HostQueue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = _HostQueue(self.hosts.find_or_add(name))
        return queue

    def _added(self, queue: _HostQueue, count: int) -> None:
        self._size += count
        queue.host.has_claims = bool(queue.claims)
        self._queue(queue)

    def _take(self, queue: _HostQueue, now: float) -> Claim:
        claim = queue.claims.popleft()
        queue.host.has_claims = bool(queue.claims)
        self._size -= 1
        self._in_flight[claim.url_id] = queue
        self.hosts.begin_request(queue.host, now, side=False)
        self._queue(queue, now)
        return claim

    def _clear(self, queue: _HostQueue) -> list[Claim]:
        claims = list(queue.claims)
        queue.claims.clear()
        queue.host.has_claims = False
        self._size -= len(claims)
        return claims

    def _queue_host(self, host: HostState) -> None:
        queue = self._queues.get(host.name)
        if queue is not None:
            self._queue(queue)

    def _queue(self, queue: _HostQueue, now: float | None = None) -> None:
        """Puts a host where ``pop`` finds its next claim: among those that are ready, or that wait for a moment."""
        if queue.queued or not queue.claims or self.hosts.count_free(queue.host) <= 0:
            return
        if now is None:
            now = clock.monotonic()
        start = self.hosts.find_start(queue.host, now)
        if start is None:
            return
        queue.queued = True
        if start <= now:
            self._ready.append(queue)
        else:
            self._serial += 1
            heapq.heappush(self._delayed, (start, self._serial, queue))
