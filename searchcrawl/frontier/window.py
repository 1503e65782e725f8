"""The claims that are in memory: which of them may go now, by host.

All methods are quick and thread-safe; times are monotonic seconds.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from searchcrawl import clock
from searchcrawl.items import Claim
from searchcrawl.rules.freshness import MAX_RETRY_PAUSE_SECONDS

#: Rows held ahead of need: of a host without delay, of a host with one, of all together.
HOST_ROWS: Final = 192
DELAYED_HOST_ROWS: Final = 2
WINDOW_ROWS: Final = 384
#: After so many connection failures in a row a host is left alone for the rest of the run.
FAILURES_TO_PARK: Final = 5
#: So many answers in a row that ask for a pause longer than a run waits, and the host gets it.
LONG_PAUSES_TO_PARK: Final = 2
_TOO_MANY_REQUESTS: Final = 429
#: Who asks for a place asks so often, and not more seldom.
_PLACE_SECONDS: Final = 0.05
_LONGEST_LOOK_SECONDS: Final = 1.0


@dataclass(slots=True)
class _Host:
    name: str
    delay_seconds: float
    waiting: deque[tuple[float, Claim]] = field(default_factory=deque)
    in_flight: int = 0
    next_at: float = 0.0
    queued: bool = False
    failures: int = 0
    long_pauses: int = 0
    parked: int | None = None
    #: whether a visit ended here: its robots.txt is known then
    met: bool = False
    #: requests outside the claims that wait for a place, and whether one of them had the last
    asking: int = 0
    asked_last: bool = False


class Window:
    """Claims by host, handed out within the limits on concurrency and delay.

    ``host_concurrency`` requests go to one host at once, one where a delay is in force (C2) and as
    long as nobody knows whether its robots.txt asks for one. A delay counts from the end of the
    answer before: how long a request is under way must not shorten the pause that a host sees.
    """

    def __init__(self, *, host_concurrency: int, delay_seconds: float) -> None:
        self._host_concurrency = host_concurrency
        self._delay_seconds = delay_seconds
        self._hosts: dict[str, _Host] = {}
        self._flying: dict[int, _Host] = {}
        self._ready: deque[_Host] = deque()
        self._delayed: list[tuple[float, int, _Host]] = []
        self._serial = 0
        self._size = 0
        self._lock = threading.RLock()

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
        return len(self._flying)

    def delay_seconds(self, name: str) -> float:
        """The delay in force for a host."""
        host = self._hosts.get(name)
        return self._delay_seconds if host is None else host.delay_seconds

    def set_delay(self, name: str, seconds: float) -> None:
        """Slows a host down (crawl-delay of its robots.txt), from now on."""
        with self._lock:
            self._host(name).delay_seconds = max(seconds, self._delay_seconds)
        self.rest(name)

    def rest(self, name: str) -> None:
        """The host has just answered, or failed to: its delay begins now."""
        host = self._hosts.get(name)
        if host is not None and host.delay_seconds:
            with self._lock:
                host.next_at = max(host.next_at, clock.monotonic() + host.delay_seconds)

    def wanted(self, name: str) -> int:
        """How many more rows of a host are wanted now."""
        with self._lock:
            host = self._hosts.get(name)
            waiting = len(host.waiting) if host else 0
            slow = bool(self.delay_seconds(name)) and self.parked(name) is None
            most = DELAYED_HOST_ROWS if slow else HOST_ROWS
            # Few at a time are not worth a transaction.
            return 0 if waiting > most // 2 else min(most - waiting, WINDOW_ROWS - self._size)

    def fill(self, name: str, claims: Iterable[Claim]) -> None:
        """Takes claims of a host in."""
        offset = clock.monotonic() - clock.now_ms() / 1000
        with self._lock:
            host = self._host(name)
            for claim in claims:
                host.waiting.append((claim.not_before_ms / 1000 + offset if claim.not_before_ms else 0.0, claim))
                self._size += 1
            self._queue(host)

    def fill_first(self, name: str, claim: Claim) -> None:
        """Takes a claim in that was redirected here: it goes before all others."""
        with self._lock:
            host = self._host(name)
            host.waiting.appendleft((0.0, claim))
            self._size += 1
            self._queue(host)

    def pop(self, now: float) -> tuple[str, Claim] | None:
        """The next claim that may go now, with its host; None where none may."""
        with self._lock:
            while self._delayed and self._delayed[0][0] <= now:
                self._ready.append(heapq.heappop(self._delayed)[2])
            while self._ready:
                host = self._ready.popleft()
                host.queued = False
                if not host.waiting or not self._free(host) or self._kept_free(host):
                    continue
                moment = max(host.next_at, host.waiting[0][0])
                if moment > now:
                    self._queue(host)
                    continue
                _, claim = host.waiting.popleft()
                self._size -= 1
                host.in_flight += 1
                host.next_at = now + host.delay_seconds
                host.asked_last = False
                self._flying[claim.url_id] = host
                self._queue(host)
                return host.name, claim
            return None

    def next_moment(self) -> float | None:
        """When the next claim that waits for its delay may go; None where none waits for that."""
        with self._lock:
            return self._delayed[0][0] if self._delayed else None

    def book(self, name: str, moment: float) -> float:
        """Books one request to a host outside the claims (robots.txt), not before ``moment``; when it may go."""
        with self._lock:
            host = self._host(name)
            at = max(moment, host.next_at)
            host.next_at = at + host.delay_seconds
            return at

    def ask(self, name: str) -> None:
        """A request outside the claims (a sitemap) wants a place at a host: ``enter`` until it has one."""
        with self._lock:
            self._host(name).asking += 1

    def enter(self, name: str, now: float) -> float:
        """Takes a place for who asked for one: 0, or the seconds after which to try again.

        Claims and such requests take turns where both wait, so that neither keeps the other away.
        """
        with self._lock:
            host = self._host(name)
            if not self._free(host) or (host.waiting and host.asked_last and host.parked is None):
                return _PLACE_SECONDS
            if host.next_at > now:
                return min(host.next_at - now, _LONGEST_LOOK_SECONDS)
            host.asking -= 1
            host.in_flight += 1
            host.next_at = now + host.delay_seconds
            host.asked_last = True
            self._queue(host)
            return 0.0

    def ask_no_more(self, name: str) -> None:
        """Who asked for a place does not want it any more."""
        with self._lock:
            host = self._host(name)
            host.asking -= 1
            self._queue(host)

    def leave(self, name: str) -> None:
        """Gives a place back that ``enter`` gave."""
        with self._lock:
            host = self._host(name)
            host.in_flight -= 1
            self._queue(host)

    def ended(self, url_id: int) -> None:
        """A handed-out claim left its host: settled, or redirected to another."""
        with self._lock:
            host = self._flying.pop(url_id, None)
            if host is not None:
                host.in_flight -= 1
                host.met = True
                self._queue(host)

    def name_of(self, url_id: int) -> str | None:
        """The host that a handed-out claim is at."""
        host = self._flying.get(url_id)
        return None if host is None else host.name

    def answered(self, name: str) -> None:
        """The host gave an answer."""
        host = self._hosts.get(name)
        if host is not None:
            host.failures = host.long_pauses = 0

    def failed(self, name: str, code: int) -> list[Claim]:
        """A connection to the host failed with ``code``; the claims to give up where it is parked now."""
        with self._lock:
            host = self._host(name)
            host.failures += 1
            if host.parked is None and host.failures >= FAILURES_TO_PARK:
                host.parked = code
            return self._given_up(host)

    def told_to_wait(self, name: str, code: int, seconds: float) -> list[Claim]:
        """The host answered ``code`` with a Retry-After; the claims to give up where it is left alone now.

        All requests to it wait, up to a minute. A longer pause means the rest of the run: at once
        after 429, which is about us; after 503 once no page came between two of them, as one page
        that is always under repair must not cost the others.
        """
        with self._lock:
            host = self._host(name)
            if seconds <= MAX_RETRY_PAUSE_SECONDS:
                host.next_at = max(host.next_at, clock.monotonic() + seconds)
                return []
            host.long_pauses += 1
            if host.parked is None and (code == _TOO_MANY_REQUESTS or host.long_pauses >= LONG_PAUSES_TO_PARK):
                host.parked = code
            return self._given_up(host)

    def give_up(self, name: str) -> list[Claim]:
        """The claims that came in for a host that is left alone."""
        with self._lock:
            return self._given_up(self._host(name))

    def parked(self, name: str) -> int | None:
        """The code of a host that is left alone for the rest of the run."""
        host = self._hosts.get(name)
        return None if host is None else host.parked

    def parked_hosts(self) -> list[tuple[str, int]]:
        """Hosts that are left alone and have claims waiting all the same, with their codes."""
        with self._lock:
            return [(host.name, host.parked) for host in self._hosts.values() if host.parked and host.waiting]

    def drain(self) -> list[Claim]:
        """Takes all waiting claims out."""
        with self._lock:
            claims = [claim for host in self._hosts.values() for _, claim in host.waiting]
            for host in self._hosts.values():
                host.waiting.clear()
            self._size = 0
            return claims

    def _given_up(self, host: _Host) -> list[Claim]:
        """What waits for a host that is left alone."""
        if host.parked is None:
            return []
        claims = [claim for _, claim in host.waiting]
        host.waiting.clear()
        self._size -= len(claims)
        return claims

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(name, self._delay_seconds)
        return host

    def _free(self, host: _Host) -> bool:
        return host.in_flight < self._places(host)

    def _places(self, host: _Host) -> int:
        return self._host_concurrency if host.met and not host.delay_seconds else 1

    def _kept_free(self, host: _Host) -> bool:
        """Whether the last free place of a host is for who asks for it."""
        return host.asking > 0 and not host.asked_last and host.in_flight >= self._places(host) - 1

    def _queue(self, host: _Host) -> None:
        """Puts a host where its next claim is found: it is ready, or waits for its delay."""
        if host.queued or not host.waiting or not self._free(host):
            return
        host.queued = True
        moment = max(host.next_at, host.waiting[0][0])
        if moment <= clock.monotonic():
            self._ready.append(host)
        else:
            self._serial += 1
            heapq.heappush(self._delayed, (moment, self._serial, host))
