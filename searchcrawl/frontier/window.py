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

#: How many rows are claimed ahead: for a host without delay, for one with a delay, for all together.
HOST_ROWS: Final = 192
DELAYED_HOST_ROWS: Final = 2
WINDOW_ROWS: Final = 384
#: How many claims wait at hosts to which redirects led them. They do not keep others from being claimed.
REDIRECTED_ROWS: Final = 4096


@dataclass(slots=True, eq=False)
class _HostClaims:
    """A host with its claims that wait; the window knows it only while it has some, or some in flight."""

    host: HostState
    claims: deque[Claim] = field(default_factory=deque)
    #: those that redirects led here; one of them and one of the others go in turn
    redirected: deque[Claim] = field(default_factory=deque)
    was_redirected: bool = False
    in_flight: int = 0
    #: whether it is in ``_ready``, ``_delayed`` or ``_capped``
    scheduled: bool = False

    @property
    def has_claims(self) -> bool:
        """Whether any claim waits."""
        return bool(self.claims or self.redirected)

    def take(self) -> tuple[Claim, bool]:
        """Takes out the next claim, and says whether a redirect led it here."""
        self.was_redirected = bool(self.redirected) and not (self.claims and self.was_redirected)
        return (self.redirected if self.was_redirected else self.claims).popleft(), self.was_redirected


class Window:
    """Claims by host, handed out as ``hosts`` allows.

    The claiming thread fills it and the reactor takes from it; all methods are quick and take the registry's lock.
    Times are monotonic seconds.
    """

    def __init__(self, hosts: HostRegistry) -> None:
        self.hosts = hosts
        hosts.on_free = self._schedule_host
        self._lock = hosts.lock
        self._by_host: dict[str, _HostClaims] = {}
        self._in_flight: dict[int, _HostClaims] = {}
        #: three queues of hosts, by their next claim: it may go now; it waits for a moment (a heap by moment and serial
        #: number); it waits for the cap on hosts
        self._ready: deque[_HostClaims] = deque()
        self._delayed: list[tuple[float, int, _HostClaims]] = []
        self._capped: deque[_HostClaims] = deque()
        self._serial = 0
        self._size = self._redirected = 0

    @property
    def has_room_for_redirected(self) -> bool:
        """Whether one more claim may wait where a redirect led it."""
        return self._redirected < REDIRECTED_ROWS

    @property
    def size(self) -> int:
        """How many claims wait, without those that were redirected."""
        return self._size

    @property
    def runs_low(self) -> bool:
        """Whether it is time to claim more."""
        return self._size < WINDOW_ROWS // 6

    @property
    def in_flight(self) -> int:
        """How many claims were handed out and have not ended."""
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        """How many claims wait, with those that were redirected."""
        return self._size + self._redirected

    def count_room(self, name: str, *, most: int = HOST_ROWS) -> int:
        """How many more rows of a host fit into the window now; 0 if they are too few for a transaction.

        Of a host without delay at most ``most`` wait.
        """
        with self._lock:
            entry = self._by_host.get(name)
            waiting = len(entry.claims) if entry else 0
            slow = self.hosts.delay_seconds(name) and self.hosts.blocked_code(name) is None
            most = DELAYED_HOST_ROWS if slow else max(0, min(HOST_ROWS, most))
            # A few rows are not worth a transaction.
            return 0 if waiting > most // 2 else min(most - waiting, WINDOW_ROWS - self._size)

    def fill(self, name: str, claims: Iterable[Claim]) -> None:
        """Adds claims of a host."""
        with self._lock:
            entry = self._find_or_add(name)
            before = len(entry.claims)
            entry.claims.extend(claims)
            self._note_added(entry, len(entry.claims) - before)

    def fill_first(self, name: str, claim: Claim) -> None:
        """Adds a claim before all others of the host."""
        with self._lock:
            entry = self._find_or_add(name)
            entry.claims.appendleft(claim)
            self._note_added(entry, 1)

    def fill_redirected(self, name: str, claim: Claim) -> None:
        """Adds a claim that a redirect led to the host."""
        with self._lock:
            entry = self._find_or_add(name)
            entry.redirected.append(claim)
            self._redirected += 1
            self._note_added(entry, 0)

    def count_redirected(self, name: str) -> int:
        """How many claims wait that redirects led to the host."""
        with self._lock:
            entry = self._by_host.get(name)
            return 0 if entry is None else len(entry.redirected)

    def pop(self, now: float) -> tuple[str, Claim] | None:
        """The next claim that may be requested now, with its host; None if there is none."""
        hosts = self.hosts
        with self._lock:
            hosts.update_delay()
            while self._delayed and self._delayed[0][0] <= now:
                self._ready.append(heapq.heappop(self._delayed)[2])
            if self._capped:
                # The hosts that have waited longest are tried first.
                for _ in range(min(hosts.cap.count_free(now), len(self._capped))):
                    self._ready.append(self._capped.popleft())
            while self._ready:
                entry = self._ready.popleft()
                entry.scheduled = False
                host = entry.host
                # If a side request waits, it gets the last free request of the host.
                side_is_next = host.side_waiting > 0 and not host.side_was_last
                if not entry.has_claims or hosts.count_free(host) <= side_is_next:
                    continue
                start = hosts.find_start(host)
                if start is None or start > now:
                    # With the same ``now``: by a later clock it could be ready again, and this loop would not end.
                    self._schedule(entry, now)
                    continue
                if not hosts.cap.acquire(host.name, now):
                    entry.scheduled = True
                    self._capped.append(entry)
                    continue
                return host.name, self._take(entry, now)
            return None

    def next_moment(self) -> float | None:
        """When the first claim may go that waits for a delay or for the cap on hosts; None if none does."""
        with self._lock:
            start = self._delayed[0][0] if self._delayed else None
            free = self.hosts.cap.next_free() if self._capped else None
            return min((moment for moment in (start, free) if moment is not None), default=None)

    def release(self, url_id: int) -> None:
        """Notes that a claim has left its host: its visit ended, or it was redirected to another host."""
        with self._lock:
            entry = self._in_flight.pop(url_id, None)
            if entry is not None:
                entry.host.visited = True
                entry.in_flight -= 1
                self.hosts.end_request(entry.host)
                self._drop_unused(entry)

    def host_of(self, url_id: int) -> str | None:
        """The host of a claim that was handed out."""
        entry = self._in_flight.get(url_id)
        return None if entry is None else entry.host.name

    def take_blocked(self) -> list[tuple[str, int, Claim]]:
        """Takes out the claims of blocked hosts, each with its host and the code of the block."""
        with self._lock:
            return [
                (entry.host.name, entry.host.blocked_code, claim)
                for entry in list(self._by_host.values())
                if entry.host.blocked_code is not None
                for claim in self._clear(entry)
            ]

    def take_unredirected(self) -> list[Claim]:
        """Takes out all claims but those that redirects led to their hosts."""
        with self._lock:
            taken = [claim for entry in self._by_host.values() for claim in entry.claims]
            for entry in list(self._by_host.values()):
                removed = len(entry.claims)
                entry.claims.clear()
                self._note_added(entry, -removed)
            return taken

    def drain(self) -> list[Claim]:
        """Takes out all claims."""
        with self._lock:
            return [claim for entry in list(self._by_host.values()) for claim in self._clear(entry)]

    def _find_or_add(self, name: str) -> _HostClaims:
        entry = self._by_host.get(name)
        if entry is None:
            entry = self._by_host[name] = _HostClaims(self.hosts.find_or_add(name))
        return entry

    def _note_added(self, entry: _HostClaims, count: int) -> None:
        self._size += count
        entry.host.has_claims = entry.has_claims
        self._schedule(entry)
        self._drop_unused(entry)

    def _take(self, entry: _HostClaims, now: float) -> Claim:
        claim, redirected = entry.take()
        entry.host.has_claims = entry.has_claims
        self._size -= not redirected
        self._redirected -= redirected
        self._in_flight[claim.url_id] = entry
        entry.in_flight += 1
        self.hosts.begin_request(entry.host, now, side=False)
        self._schedule(entry, now)
        return claim

    def _clear(self, entry: _HostClaims) -> list[Claim]:
        claims = [*entry.redirected, *entry.claims]
        self._size -= len(entry.claims)
        self._redirected -= len(entry.redirected)
        entry.claims.clear()
        entry.redirected.clear()
        entry.host.has_claims = False
        self._drop_unused(entry)
        return claims

    def _drop_unused(self, entry: _HostClaims) -> None:
        # It may still be in a queue of hosts: without claims it is passed over there.
        if not entry.has_claims and not entry.in_flight and self._by_host.get(entry.host.name) is entry:
            del self._by_host[entry.host.name]

    def _schedule_host(self, host: HostState) -> None:
        entry = self._by_host.get(host.name)
        if entry is not None:
            self._schedule(entry)

    def _schedule(self, entry: _HostClaims, now: float | None = None) -> None:
        """Puts a host where ``pop`` finds its next claim: among those that are ready, or that wait for a moment."""
        if entry.scheduled or not entry.has_claims or self.hosts.count_free(entry.host) <= 0:
            return
        if now is None:
            now = clock.monotonic()
        start = self.hosts.find_start(entry.host)
        if start is None:
            return
        entry.scheduled = True
        if start <= now:
            self._ready.append(entry)
        else:
            self._serial += 1
            heapq.heappush(self._delayed, (start, self._serial, entry))
