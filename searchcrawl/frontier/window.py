"""The claims that are in memory, by host, and which of them may go now."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.items import Claim
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.politeness.host_state import HostState

#: How many rows are claimed ahead: for a host without delay, for one with a delay, for all without a delay together.
HOST_ROWS: Final = 192
FEW_ROWS: Final = 3
WINDOW_ROWS: Final = 768
#: How many hosts have claims at once.
MOST_HOSTS: Final = 10_000
#: How many claims wait at hosts to which redirects led them, or for the turn after that of a robots.txt. They do not keep
#: others from being claimed.
REDIRECTED_ROWS: Final = 12_000
#: Of a host with so few claims left more are claimed.
_LOW_ROWS: Final = 1


@dataclass(slots=True, eq=False)
class _HostClaims:
    """A host with its claims that wait; the window knows it only while it has some, or some in flight."""

    host: HostState
    claims: deque[Claim] = field(default_factory=deque)
    #: those that redirects led here; one of them and one of the others go in turn
    redirected: deque[Claim] = field(default_factory=deque)
    was_redirected: bool = False
    in_flight: int = 0
    #: the number of the host in the store; 0: none of its own rows was claimed
    host_id: int = 0
    #: whether a delay was in force when rows were claimed last
    slow: bool = False
    #: whether the table has no more rows of it, as far as is known; whether it waits for more
    drained: bool = False
    is_low: bool = False
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


class HostWork(NamedTuple):
    """A host with its claims that wait, and those of the others that were tried before in this run.

    ``has_first`` tells whether any claim is a first visit.
    """

    name: str
    claims: list[Claim]
    has_first: bool


def _describe(entry: _HostClaims, retried: list[Claim]) -> HostWork:
    claims = [*entry.redirected, *entry.claims, *retried]
    has_first = entry.in_flight > len(retried) or not all(claim.attempt for claim in claims)
    return HostWork(entry.host.name, claims, has_first)


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
        #: those in flight that were tried before in this run
        self._retried: dict[int, Claim] = {}
        #: three queues of hosts, by their next claim: it may go now; it waits for a moment (a heap by moment and serial
        #: number); it waits for the cap on hosts
        self._ready: deque[_HostClaims] = deque()
        self._delayed: list[tuple[float, int, _HostClaims]] = []
        self._capped: deque[_HostClaims] = deque()
        self._serial = 0
        self._size = self._slow = self._redirected = 0
        #: hosts of which more rows are to be claimed, and those that are blocked with claims
        self._low: list[_HostClaims] = []
        self._blocked: list[_HostClaims] = []

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
        """Whether there are so few claims that other hosts are looked for."""
        return self._size < WINDOW_ROWS // 12

    @property
    def hosts_in_hand(self) -> int:
        """How many hosts have claims that wait or were handed out."""
        return len(self._by_host)

    @property
    def has_low(self) -> bool:
        """Whether more rows of some hosts are to be claimed."""
        return bool(self._low)

    @property
    def has_room(self) -> bool:
        """Whether rows of more hosts may be claimed."""
        return len(self._by_host) < MOST_HOSTS and self._size - self._slow <= WINDOW_ROWS // 2

    def take_low(self) -> list[int]:
        """Takes out the hosts, by id, of which more rows are to be claimed."""
        with self._lock:
            low, self._low = self._low, []
            for entry in low:
                entry.is_low = False
            return [entry.host_id for entry in low if not entry.drained]

    def note_drained(self, name: str, *, drained: bool = True) -> None:
        """Notes whether the table has no more rows of a host that could be claimed now."""
        entry = self._by_host.get(name)
        if entry is not None:
            entry.drained = drained

    @property
    def in_flight(self) -> int:
        """How many claims were handed out and have not ended."""
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        """How many claims wait, with those that were redirected."""
        return self._size + self._redirected

    def count_room(self, name: str, *, most: int = HOST_ROWS) -> int | None:
        """How many more rows of a host fit into the window now; None if enough of them wait.

        Of a host without delay at most ``most`` wait, and its share where there are many hosts.
        """
        with self._lock:
            entry = self._by_host.get(name)
            waiting = len(entry.claims) if entry else 0
            if self._is_slow(name):
                return FEW_ROWS if waiting <= _LOW_ROWS else None
            most = max(0, min(HOST_ROWS, most, max(WINDOW_ROWS // (2 * len(self._by_host) + 1), FEW_ROWS)))
            # A few rows are not worth a transaction.
            return None if waiting > most // 2 else min(most - waiting, WINDOW_ROWS - self._size + self._slow)

    def _is_slow(self, name: str) -> bool:
        return self.hosts.delay_seconds(name) > 0 and self.hosts.blocked_code(name) is None

    def fill(self, name: str, claims: Sequence[Claim]) -> None:
        """Adds claims of a host, at least one."""
        with self._lock:
            entry = self._find_or_add(name)
            entry.host_id = claims[0].host_id
            slow = self._is_slow(name)
            if slow != entry.slow:
                self._slow += len(entry.claims) if slow else -len(entry.claims)
                entry.slow = slow
            entry.claims.extend(claims)
            self.hosts.names.look_ahead((name,))
            self._note_added(entry, len(claims))

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
            while self._ready or self._add_uncrowded():
                entry = self._ready.popleft()
                entry.scheduled = False
                host = entry.host
                # If a side request waits, it gets the last free request of the host.
                side_is_next = host.side_waiting > 0 and not host.side_was_last
                if not entry.has_claims or hosts.count_free(host) <= side_is_next:
                    continue
                if not hosts.names.is_known(host.name):
                    # ``on_free`` is called once DNS has answered.
                    continue
                start = hosts.find_start(host)
                if start is None or start > now:
                    # With the same ``now``: by a later clock it could be ready again, and this loop would not end.
                    self._schedule(entry, now)
                    continue
                if not hosts.addresses.acquire(host.name):
                    # ``_add_uncrowded`` has it tried again.
                    continue
                if not hosts.cap.acquire(host.name, now):
                    hosts.addresses.release(host.name)
                    entry.scheduled = True
                    self._capped.append(entry)
                    continue
                return host.name, self._take(entry, now)
            return None

    def _add_uncrowded(self) -> bool:
        """Has a host tried again that waited for its address, where that has room; False where none does."""
        while (name := self.hosts.addresses.next_waiting()) is not None:
            entry = self._by_host.get(name)
            if entry is not None and not entry.scheduled:
                entry.scheduled = True
                self._ready.append(entry)
                return True
        return False

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
            self._retried.pop(url_id, None)
            if entry is not None:
                entry.host.visited = True
                entry.in_flight -= 1
                self.hosts.end_request(entry.host)
                self._drop_unused(entry)

    def host_of(self, url_id: int) -> str | None:
        """The host of a claim that was handed out."""
        entry = self._in_flight.get(url_id)
        return None if entry is None else entry.host.name

    def list_hosts(self) -> list[str]:
        """The hosts with claims that wait or are in flight."""
        with self._lock:
            return list(self._by_host)

    def has_only(self, holds: Callable[[HostWork], bool]) -> bool:
        """Whether something holds of all hosts with claims that wait or are in flight."""
        with self._lock:
            retried: dict[_HostClaims, list[Claim]] = {}
            for url_id, claim in self._retried.items():
                retried.setdefault(self._in_flight[url_id], []).append(claim)
            return all(holds(_describe(entry, retried.get(entry, []))) for entry in self._by_host.values())

    def take_blocked(self, name: str | None = None) -> list[tuple[str, int, Claim]]:
        """Takes out the claims of blocked hosts, each with its host and the code of the block; ``name`` is one of them."""
        with self._lock:
            blocked, self._blocked = self._blocked, []
            entry = self._by_host.get(name) if name is not None else None
            if entry is not None:
                blocked.append(entry)
            return [
                (entry.host.name, entry.host.blocked_code, claim)
                for entry in blocked
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
            self._low.clear()
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
        self._slow += count if entry.slow else 0
        entry.host.has_claims = entry.has_claims
        self._schedule(entry)
        self._drop_unused(entry)

    def _take(self, entry: _HostClaims, now: float) -> Claim:
        claim, redirected = entry.take()
        entry.host.has_claims = entry.has_claims
        if redirected:
            self._redirected -= 1
        else:
            self._size -= 1
            self._slow -= entry.slow
            self._note_low(entry)
        self._in_flight[claim.url_id] = entry
        if claim.attempt:
            self._retried[claim.url_id] = claim
        entry.in_flight += 1
        self.hosts.begin_request(entry.host, now, side=False)
        self._schedule(entry, now)
        return claim

    def _clear(self, entry: _HostClaims) -> list[Claim]:
        claims = [*entry.redirected, *entry.claims]
        self._size -= len(entry.claims)
        self._slow -= len(entry.claims) if entry.slow else 0
        self._redirected -= len(entry.redirected)
        entry.claims.clear()
        entry.redirected.clear()
        entry.host.has_claims = False
        self._drop_unused(entry)
        return claims

    def _note_low(self, entry: _HostClaims) -> None:
        """Has more rows of a host claimed where few are left."""
        few = _LOW_ROWS if entry.slow else HOST_ROWS // 3
        if len(entry.claims) <= few and entry.host_id and not entry.drained and not entry.is_low:
            entry.is_low = True
            self._low.append(entry)

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
        if entry.host.blocked_code is not None and entry.has_claims:
            self._blocked.append(entry)
            return
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
