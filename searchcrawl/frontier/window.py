"""The claims that are in memory: which of them may go now, by host.

All methods are quick and thread-safe; times are monotonic seconds.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from searchcrawl import clock
from searchcrawl.items import Claim
from searchcrawl.politeness.host_registry import HostBoard, Wish
from searchcrawl.politeness.host_state import HostNews, HostState
from searchcrawl.politeness.site_slots import SiteSlots

#: Rows held ahead of need: of a host without delay, of a host with one, of all together.
HOST_ROWS: Final = 192
DELAYED_HOST_ROWS: Final = 2
WINDOW_ROWS: Final = 384
#: Who asks for a place asks so often, and not more seldom.
_PLACE_SECONDS: Final = 0.05
_LONGEST_LOOK_SECONDS: Final = 1.0


class Window:
    """Claims by host, handed out within the limits on concurrency and delay.

    ``host_concurrency`` requests go to one host at once, one where a delay is in force (C2) and as
    long as nobody knows whether its robots.txt asks for one. A delay counts from the end of the
    answer before: how long a request is under way must not shorten the pause that a host sees.

    ``sites`` caps the hosts that are asked at once (0: no cap, C3). ``pace`` answers the delay of the moment
    where it changes with the hour. Once ``share`` was called, each request under a delay needs a turn that
    is booked in the host table (``wishes``, ``give``).
    """

    def __init__(
        self,
        *,
        host_concurrency: int,
        delay_seconds: float,
        sites: int = 0,
        pace: Callable[[], float] | None = None,
    ) -> None:
        self._host_concurrency = host_concurrency
        self._board = HostBoard(delay_seconds=delay_seconds, pace=pace)
        self._slots = SiteSlots(sites) if sites else None
        #: hosts that wait for a slot
        self._kept: deque[HostState] = deque()
        self._flying: dict[int, HostState] = {}
        self._ready: deque[HostState] = deque()
        self._delayed: list[tuple[float, int, HostState]] = []
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

    def share(self, on_wish: Callable[[], None]) -> None:
        """From now on turns are booked in the host table; ``on_wish`` is called when there is something to do for it."""
        self._board.on_wish = on_wish

    def delay_seconds(self, name: str) -> float:
        """The delay in force for a host."""
        self._board.keep_pace()
        return self._board.delay(self._board.find(name))

    def set_delay(self, name: str, seconds: float) -> None:
        """Slows a host down (crawl-delay of its robots.txt), from now on."""
        with self._lock:
            self._board.host(name).crawl_delay_seconds = seconds
        self.rest(name)

    def rest(self, name: str) -> None:
        """The host has just answered, or failed to: its delay begins now."""
        host = self._board.find(name)
        if host is not None and (delay := self._board.delay(host)):
            with self._lock:
                host.next_at = max(host.next_at, clock.monotonic() + delay)

    def wanted(self, name: str) -> int:
        """How many more rows of a host are wanted now."""
        with self._lock:
            host = self._board.find(name)
            waiting = len(host.waiting) if host else 0
            slow = bool(self.delay_seconds(name)) and self.parked(name) is None
            most = DELAYED_HOST_ROWS if slow else HOST_ROWS
            # Few at a time are not worth a transaction.
            return 0 if waiting > most // 2 else min(most - waiting, WINDOW_ROWS - self._size)

    def fill(self, name: str, claims: Iterable[Claim]) -> None:
        """Takes claims of a host in."""
        with self._lock:
            host = self._board.host(name)
            before = len(host.waiting)
            host.waiting.extend(claims)
            self._size += len(host.waiting) - before
            self._queue(host)

    def fill_first(self, name: str, claim: Claim) -> None:
        """Takes a claim in that was redirected here: it goes before all others."""
        with self._lock:
            host = self._board.host(name)
            host.waiting.appendleft(claim)
            self._size += 1
            self._queue(host)

    def pop(self, now: float) -> tuple[str, Claim] | None:
        """The next claim that may go now, with its host; None where none may."""
        with self._lock:
            self._board.keep_pace()
            while self._delayed and self._delayed[0][0] <= now:
                self._ready.append(heapq.heappop(self._delayed)[2])
            if self._kept:
                self._let_in(now)
            while self._ready:
                host = self._ready.popleft()
                host.queued = False
                if not host.waiting or not self._free(host) or self._kept_free(host):
                    continue
                moment = self._board.moment(host, now)
                if moment is None or moment > now:
                    # By the same clock: one that went on meanwhile would find it ready again, for ever.
                    self._queue(host, now)
                    continue
                if self._slots is not None and not self._slots.take(host.name, now):
                    host.queued = True
                    self._kept.append(host)
                    continue
                return host.name, self._take(host, now)
            return None

    def _take(self, host: HostState, now: float) -> Claim:
        claim = host.waiting.popleft()
        self._size -= 1
        self._flying[claim.url_id] = host
        self._enter(host, now)
        host.booked = None
        host.asked_last = False
        self._queue(host, now)
        return claim

    def _enter(self, host: HostState, now: float) -> None:
        host.in_flight += 1
        host.next_at = now + self._board.delay(host)

    def next_moment(self) -> float | None:
        """When the next claim that waits for its delay may go; None where none waits for that."""
        with self._lock:
            moment = self._delayed[0][0] if self._delayed else None
            free = self._slots.next_free() if self._slots is not None and self._kept else None
            return min((one for one in (moment, free) if one is not None), default=None)

    def book(self, name: str, moment: float) -> float:
        """Books one request to a host outside the claims (robots.txt), not before ``moment``; when it may go."""
        with self._lock:
            host = self._board.host(name)
            at = max(moment, host.next_at)
            host.next_at = at + self._board.delay(host)
            return at

    def next_at(self, name: str) -> float:
        """The moment before which nothing is asked of a host."""
        host = self._board.find(name)
        return 0.0 if host is None else host.next_at

    def wishes(self) -> list[Wish]:
        """The turns to be booked; each is told once, and answered with ``give``."""
        with self._lock:
            return self._board.wishes()

    def give(self, name: str, moment: float) -> None:
        """The turn that was booked for a host."""
        with self._lock:
            self._queue(self._board.given(name, moment))

    def take_turn(self, name: str) -> float | None:
        """The turn that was booked for the next claim of a host, for a request outside the claims; None: there is none."""
        with self._lock:
            host = self._board.host(name)
            booked, host.booked = host.booked, None
            return booked

    def news(self) -> dict[str, HostNews]:
        """What the host table is to be told, each once."""
        with self._lock:
            return self._board.news()

    def pause(self, name: str, seconds: float) -> None:
        """Nothing is asked of a host for so long; the host table is told."""
        with self._lock:
            host = self._board.host(name)
            host.pause(clock.monotonic() + seconds)
            self._board.tell(host)

    def close_until(self, closed: Mapping[str, tuple[float, int]]) -> None:
        """Takes in which hosts all processes leave alone: until when, and the code that is the reason."""
        with self._lock:
            self._board.close_until(closed)

    def ask(self, name: str) -> None:
        """A request outside the claims (a sitemap) wants a place at a host: ``enter`` until it has one."""
        with self._lock:
            self._board.host(name).asking += 1

    def enter(self, name: str, now: float) -> float:
        """Takes a place for who asked for one: 0, or the seconds after which to try again.

        Claims and such requests take turns where both wait, so that neither keeps the other away.
        """
        with self._lock:
            host = self._board.host(name)
            if not self._free(host) or (host.waiting and host.asked_last and host.parked is None):
                return _PLACE_SECONDS
            if host.next_at > now:
                return min(host.next_at - now, _LONGEST_LOOK_SECONDS)
            if self._slots is not None and not self._slots.take(name, now):
                return _PLACE_SECONDS
            host.asking -= 1
            self._enter(host, now)
            host.asked_last = True
            self._queue(host)
            return 0.0

    def arrive(self, name: str, now: float) -> float:
        """A robots.txt is wanted that perhaps no claim waits for: 0, or the seconds until the next try for a slot."""
        if self._slots is None:
            return 0.0
        with self._lock:
            if not self._slots.take(name, now):
                return _PLACE_SECONDS
            self._board.host(name).guests += 1
            return 0.0

    def depart(self, name: str) -> None:
        """That robots.txt was had."""
        if self._slots is not None:
            with self._lock:
                host = self._board.host(name)
                host.guests -= 1
                self._release(host)

    def ask_no_more(self, name: str) -> None:
        """Who asked for a place does not want it any more."""
        with self._lock:
            host = self._board.host(name)
            host.asking -= 1
            self._queue(host)

    def leave(self, name: str) -> None:
        """Gives a place back that ``enter`` gave."""
        with self._lock:
            host = self._board.host(name)
            host.in_flight -= 1
            self._release(host)
            self._queue(host)

    def ended(self, url_id: int) -> None:
        """A handed-out claim left its host: settled, or redirected to another."""
        with self._lock:
            host = self._flying.pop(url_id, None)
            if host is not None:
                host.in_flight -= 1
                host.met = True
                self._release(host)
                self._queue(host)

    def name_of(self, url_id: int) -> str | None:
        """The host that a handed-out claim is at."""
        host = self._flying.get(url_id)
        return None if host is None else host.name

    def answered(self, name: str) -> None:
        """The host gave an answer."""
        host = self._board.find(name)
        if host is not None and (host.failures or host.long_pauses or not host.good):
            with self._lock:
                host.answered()
                self._board.tell(host)

    def failed(self, name: str, code: int, *, connected: bool = False) -> list[Claim]:
        """The host failed with ``code`` (``HostState.failed``); the claims to give up where it is parked now."""
        with self._lock:
            host = self._board.host(name)
            host.failed(code, connected=connected, delay_seconds=self._board.delay(host))
            self._board.tell(host)
            return self._given_up(host)

    def told_to_wait(self, name: str, code: int, seconds: float) -> list[Claim]:
        """The host answered ``code`` with a Retry-After; the claims to give up where it is left alone now.

        All requests to it wait, up to a minute. A longer pause means the rest of the run: at once
        after 429, which is about us; after 503 once no page came between two of them, as one page
        that is always under repair must not cost the others.
        """
        with self._lock:
            host = self._board.host(name)
            host.told_to_wait(code, seconds)
            self._board.tell(host)
            return self._given_up(host)

    def give_up(self, name: str) -> list[Claim]:
        """The claims that came in for a host that is left alone."""
        with self._lock:
            return self._given_up(self._board.host(name))

    def parked(self, name: str) -> int | None:
        """The code of a host that is left alone for the rest of the run."""
        host = self._board.find(name)
        if host is None and self._board.is_closed(name):
            with self._lock:
                host = self._board.host(name)
        return None if host is None else host.parked

    def parked_hosts(self) -> list[tuple[str, int]]:
        """Hosts that are left alone and have claims waiting all the same, with their codes."""
        with self._lock:
            return [(host.name, host.parked) for host in self._board.all() if host.parked and host.waiting]

    def drain(self) -> list[Claim]:
        """Takes all waiting claims out."""
        with self._lock:
            claims = [claim for host in self._board.all() for claim in host.waiting]
            for host in self._board.all():
                host.waiting.clear()
            self._size = 0
            return claims

    def _given_up(self, host: HostState) -> list[Claim]:
        """What waits for a host that is left alone."""
        if host.parked is None:
            return []
        claims = list(host.waiting)
        host.waiting.clear()
        self._size -= len(claims)
        return claims

    def _free(self, host: HostState) -> bool:
        return host.in_flight < self._places(host)

    def _places(self, host: HostState) -> int:
        return self._host_concurrency if host.met and not host.failures and not self._board.delay(host) else 1

    def _kept_free(self, host: HostState) -> bool:
        """Whether the last free place of a host is for who asks for it."""
        return host.asking > 0 and not host.asked_last and host.in_flight >= self._places(host) - 1

    def _let_in(self, now: float) -> None:
        """Those that waited longest for a slot have their try."""
        if self._slots is not None:
            for _ in range(min(self._slots.free(now), len(self._kept))):
                self._ready.append(self._kept.popleft())

    def _release(self, host: HostState) -> None:
        if self._slots is not None and not host.in_flight and not host.guests:
            self._slots.release(host.name, host.next_at if self._board.delay(host) else 0.0)

    def _queue(self, host: HostState, now: float | None = None) -> None:
        """Puts a host where its next claim is found: it is ready, or waits for its delay."""
        if host.queued or not host.waiting or not self._free(host):
            return
        if now is None:
            now = clock.monotonic()
        moment = self._board.moment(host, now)
        if moment is None:
            return
        host.queued = True
        if moment <= now:
            self._ready.append(host)
        else:
            self._serial += 1
            heapq.heappush(self._delayed, (moment, self._serial, host))
