"""The hosts of a run: which may get a request now, by delay, concurrency, back-off and the cap on hosts.

HostRegistry counts the requests of this process, and knows which hosts are its own. HostLeases takes hosts from other
processes and hands them over, ``frontier.window`` asks which claim may go, and in SharedRateLimiter all other requests wait.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from searchcrawl import clock
from searchcrawl.codes import BUSY, OVERLOADED, UNREACHABLE
from searchcrawl.exceptions import CrawlEnds, StoreError
from searchcrawl.items import Document, Outcome
from searchcrawl.politeness.address_cap import AddressCap
from searchcrawl.politeness.host_cap import HostCap
from searchcrawl.politeness.host_names import HostNames
from searchcrawl.politeness.host_state import HostState
from searchcrawl.rules.week_window import WeekWindow, parse_days, parse_minute
from searchcrawl.sources.fetch_tables import FetchWindow
from searchcrawl.store.host_owners import TakenHost
from searchcrawl.store.host_table import HostReport

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayWindow(WeekWindow):
    """A delay that is in force in a time of the week."""

    delay_seconds: float


class DelaySchedule:
    """The windows of a source. Where several are in force the longest delay counts, so their order does not matter.

    ``zone`` is the time zone of the windows; None means that of the machine.
    """

    def __init__(self, windows: Sequence[DelayWindow], *, zone: tzinfo | None, otherwise_seconds: float) -> None:
        self._windows = tuple(windows)
        self._zone = zone
        self._otherwise_seconds = otherwise_seconds

    def delay_seconds(self, moment: datetime) -> float:
        """The delay at an aware ``moment``."""
        local = moment.astimezone(self._zone)
        weekday, minute = local.weekday(), local.hour * 60 + local.minute
        delays = [window.delay_seconds for window in self._windows if window.covers(weekday, minute)]
        return max(delays, default=self._otherwise_seconds)


def build_delay_schedule(
    windows: Sequence[FetchWindow], zone: str | None, *, otherwise_seconds: float
) -> DelaySchedule | None:
    """The schedule of a source; None where one delay is always in force."""
    if not windows:
        return None
    plain = [
        DelayWindow(
            days=parse_days(window.days),
            from_minute=parse_minute(window.from_),
            to_minute=parse_minute(window.to),
            delay_seconds=window.delay_seconds,
        )
        for window in windows
    ]
    return DelaySchedule(plain, zone=ZoneInfo(zone) if zone else None, otherwise_seconds=otherwise_seconds)


#: How many idle hosts are kept in memory, and how many of those dropped that say something for the rest of the run.
_MOST_HOSTS: Final = 10_000
_MOST_REMEMBERED: Final = 100_000
#: How many hosts are named that get no request for the rest of the run.
_MOST_NAMED: Final = 100
#: How many hosts are looked at for each new one, as some are in use.
_LOOKED_AT: Final = 4
#: A member of the run that comes to send a request so many seconds after its turn waits for another one.
LATE_SECONDS: Final = 0.05
#: For so many requests a process keeps a host that another one wants; for so many seconds at least, and at most.
_TURN_REQUESTS: Final = 4
_TURN_SECONDS: Final = (1.0, 5.0)
#: Seconds until the next try of a side request that waits for the cap on hosts.
_RETRY_SECONDS: Final = 0.05
#: The longest wait of other side requests before they try again; they are woken before, where there is a reason.
_LONGEST_WAIT_SECONDS: Final = 1.0


class HostChanges(NamedTuple):
    """What the store is to be told: hosts to take, each with its delay; hosts to give back, by id, each with the seconds in
    which it is not to be asked; longer delays of hosts, by id; reports. A host that is given back may be asked for again.
    """

    asked: dict[str, float]
    dropped: dict[int, float]
    slowed: dict[int, float]
    reports: dict[str, HostReport]


class HostRegistry:
    """The hosts of a run by name (``host:port``): all in use, and the last used ones. Times are monotonic seconds.

    ``host_concurrency`` requests go to one host at once; only one where a delay is in force (C2), after a failure, and
    as long as nobody knows whether its robots.txt asks for a delay. A delay counts from the end of the answer before:
    the time that a request takes must not shorten the pause that a host sees. ``schedule`` is given where the delay
    changes with the hour. ``sites`` caps the hosts that are requested at once (0: no cap, C3),
    ``address_concurrency`` the requests to one address (0: no cap).

    All methods are quick. Any thread may call those that take a ``name``; those that take a HostState are called by the
    window, which holds ``lock``.
    """

    def __init__(
        self,
        *,
        delay_seconds: float,
        host_concurrency: int,
        sites: int = 0,
        address_concurrency: int = 0,
        schedule: DelaySchedule | None = None,
        most_hosts: int = _MOST_HOSTS,
    ) -> None:
        self._schedule = schedule
        self._delay_seconds = delay_seconds
        self._host_concurrency = host_concurrency
        #: by last use
        self._hosts: OrderedDict[str, HostState] = OrderedDict()
        #: hosts that were dropped from ``_hosts``, and whose delay, failures or block still count
        self._remembered: OrderedDict[str, HostState] = OrderedDict()
        self._most_hosts = most_hosts
        self._warned = 0
        self._asked: list[HostState] = []
        self._dropped: dict[int, float] = {}
        self._reporting: dict[str, HostState] = {}
        #: hosts whose longer delay the store does not know, by id
        self._slowed: dict[int, float] = {}
        self._failure: Exception | None = None
        self._wake: Callable[[], None] | None = None
        self._lease_until_ms: Callable[[], float] = lambda: math.inf
        #: re-entrant: the window holds it while it calls methods that take it
        self.lock = threading.RLock()
        self.cap = HostCap(sites)
        #: whether any host was there
        self.any_there = False
        self.names = HostNames()
        self.addresses = AddressCap(address_concurrency, lambda host: self.names.find_address(host))  # noqa: PLW0108  # others follow
        #: called under the lock with a host whose next claim may be allowed now
        self.on_free: Callable[[HostState], None] = lambda host: None
        self.update_delay()

    def share(self, wake: Callable[[], None], *, lease_until_ms: Callable[[], float]) -> None:
        """From now on only hosts are asked that this process owns, until its lease ends by the boot clock.

        ``wake`` is called under the lock when there is a host to take, or a report to write.
        """
        self._wake = wake
        self._lease_until_ms = lease_until_ms

    def find_or_add(self, name: str) -> HostState:
        """The host, new or known; under the lock."""
        host = self._hosts.get(name)
        if host is None:
            self._drop_idle()
            # Other threads find it in one of both at any moment.
            host = self._hosts[name] = self._remembered.get(name) or HostState(name)
            self._remembered.pop(name, None)
        return host

    def count_hosts(self) -> int:
        """How many hosts are in memory."""
        return len(self._hosts) + len(self._remembered)

    def update_delay(self) -> None:
        """Sets the delay of the source by the hour, where it has a schedule."""
        if self._schedule is not None:
            self._delay_seconds = self._schedule.delay_seconds(clock.now())

    def delay(self, host: HostState | None) -> float:
        """The delay in force for a host, in seconds, as of the last ``update_delay``."""
        if host is None or host.crawl_delay_seconds <= self._delay_seconds:
            return self._delay_seconds
        return host.crawl_delay_seconds

    def delay_seconds(self, name: str) -> float:
        """The delay in force for a host now."""
        self.update_delay()
        return self.delay(self._find(name))

    def set_crawl_delay(self, name: str, seconds: float, *, starts: bool = True) -> None:
        """Sets the delay that robots.txt asks for; it counts from now if it ``starts``."""
        with self.lock:
            host = self.find_or_add(name)
            host.crawl_delay_seconds = seconds
            if host.owned and self._wake is not None and self.delay(host) == seconds > 0:
                self._slowed[host.id] = seconds
                self._wake()
        if starts:
            self.start_delay(name)

    def start_delay(self, name: str) -> None:
        """Starts the delay of a host, which has just answered or failed."""
        host = self._find(name)
        if host is not None and (delay := self.delay(host)):
            with self.lock:
                host.next_at = max(host.next_at, clock.monotonic() + delay)

    def next_at(self, name: str) -> float:
        """The moment before which no request is sent to a host."""
        host = self._find(name)
        return 0.0 if host is None else host.next_at

    def blocked_code(self, name: str) -> int | None:
        """The code for which a host is blocked for the rest of the run; None where it is not blocked."""
        host = self._find(name)
        return None if host is None else host.blocked_code

    # What the answers of a host say about it.

    def blocked_seconds(self, name: str) -> float:
        """How long the block lasts yet that another process was asked for."""
        host = self._find(name)
        return 0.0 if host is None else max(host.blocked_until - clock.monotonic(), 0.0)

    def record_visit(self, name: str, item: Document | Outcome) -> bool:
        """Notes what the end of a visit says about its host; True if it counts against it and the host is blocked."""
        code, pause = item.code, item.retry_after_seconds if isinstance(item, Outcome) else None
        if code in UNREACHABLE:
            self.record_failure(name, code)
        elif code in BUSY and pause:
            self.record_retry_after(name, code, pause)
        elif code in OVERLOADED:
            self.record_failure(name, code, connected=True)
        else:
            self.record_answer(name)
            return False
        return self.blocked_code(name) is not None

    def record_answer(self, name: str) -> None:
        """See HostState.record_answer."""
        host = self._find(name)
        if host is not None and (host.failures or host.long_pauses or host.pauses or not host.has_answered):
            with self.lock:
                host.record_answer()
                self._queue_report(host)

    def note_there(self, name: str) -> None:
        """Notes that an answer of a host began, whatever comes of it."""
        host = self._find(name)
        if host is not None and not host.is_there:
            with self.lock:
                host.is_there = self.any_there = True

    def may_come(self, name: str, *, least_failures: int = 1) -> bool:
        """Whether a host may answer in this run: it is not blocked, and was there, or has not failed so often in a row."""
        host = self._find(name)
        if host is None:
            return True
        return host.blocked_code is None and (host.is_there or host.failures < least_failures)

    def give_up(self, names: Iterable[str], codes: Mapping[str, int]) -> dict[str, int]:
        """Blocks hosts that were never there, unless they are blocked; returns them with the codes of their last failures.

        Where no visit has failed that is the one of ``codes``.
        """
        given_up: dict[str, int] = {}
        with self.lock:
            for host in map(self.find_or_add, names):
                code = host.failure_code or codes.get(host.name)
                if host.blocked_code is None and code is not None:
                    host.give_up(code)
                    given_up[host.name] = code
        return given_up

    def is_given_up(self, name: str) -> bool:
        """Whether a host gets no request any more because of ``give_up``."""
        host = self._find(name)
        return host is not None and host.is_given_up

    def record_failure(self, name: str, code: int, *, connected: bool = False) -> None:
        """See HostState.record_failure."""
        with self.lock:
            host = self.find_or_add(name)
            host.record_failure(code, connected=connected, delay_seconds=self.delay(host))
            self._queue_report(host)

    def record_retry_after(self, name: str, code: int, seconds: float) -> None:
        """See HostState.record_retry_after."""
        with self.lock:
            host = self.find_or_add(name)
            was_open = host.blocked_code is None
            host.record_retry_after(code, seconds)
            is_new = was_open and host.blocked_code is not None
            self._queue_report(host)
        if is_new:
            self._warn(name, code, f"it asked for a pause of {seconds:.0f} s")

    def pause(self, name: str, seconds: float) -> None:
        """Sends nothing to a host for this long, in all processes."""
        with self.lock:
            host = self.find_or_add(name)
            host.pause(seconds)
            self._queue_report(host)

    # Requests: those of claims, and side requests.

    def count_free(self, host: HostState) -> int:
        """How many more requests to a host may be under way."""
        alone = not host.visited or host.failures or self.delay(host)
        return (1 if alone else self._host_concurrency) - host.in_flight

    def find_start(self, host: HostState) -> float | None:
        """When the next claim of a host may go; None where this process does not own it yet: it is asked for."""
        return host.next_at if host.blocked_code is not None or self._may_ask(host) else None

    def _may_ask(self, host: HostState) -> bool:
        """Whether this process owns a host, and its turn is not over; else it is asked for."""
        if self._wake is None:
            return True
        if not host.owned and not host.asked_for:
            host.asked_for = True
            self._asked.append(host)
            self._wake()
        return host.owned and not host.leaving

    def may_send(self, name: str, since: float = math.inf) -> bool:
        """Whether a request may be sent now that began before ``since``: a process that was stopped may have lost its hosts to
        others, and may have them back by now.
        """
        host = self._find(name)
        return self._holds_lease() and (host is None or not (host.lost or host.owned_since > since))

    def _holds_lease(self) -> bool:
        return clock.boot_ms() <= self._lease_until_ms()

    def begin_request(self, host: HostState, now: float, *, side: bool) -> None:
        """Notes that a request is sent to a host: a side request or that of a claim."""
        host.in_flight += 1
        self._hosts.move_to_end(host.name)
        host.turn = host.next_at, now + self.delay(host)
        host.next_at = host.turn[1]
        host.side_was_last = side
        host.requests += 1

    def give_turn_back(self, name: str) -> None:
        """Notes that the last request that began is not sent yet: another one may go in its place."""
        host = self._find(name)
        if host is not None:
            with self.lock:
                before, end = host.turn
                if host.next_at == end:
                    host.next_at = before

    def end_request(self, host: HostState) -> None:
        """Notes that a request to a host has ended."""
        host.in_flight -= 1
        self.addresses.release(host.name)
        self._release_cap(host)
        self._free(host)

    def announce_side_request(self, name: str) -> None:
        """Announces a side request; ``try_acquire_request`` follows until it returns 0, or ``cancel_side_request``."""
        with self.lock:
            self.find_or_add(name).side_waiting += 1

    def try_acquire_request(self, name: str, now: float, wake: Callable[[], None] = lambda: None) -> float:
        """Begins a side request that was announced: 0, or the seconds until the next try; ``wake`` is called where it may be earlier.

        Where claims and side requests wait they alternate, so that both make progress.
        """
        with self.lock:
            host = self.find_or_add(name)
            claim_is_next = host.has_claims and host.side_was_last and host.blocked_code is None
            self.addresses.withdraw_side(name)
            may_send = self.names.is_known(name) and self._may_send(host)
            if not may_send or self.count_free(host) <= 0 or claim_is_next:
                host.waiters.append(wake)
                return _LONGEST_WAIT_SECONDS
            if host.next_at > now:
                return min(host.next_at - now, _LONGEST_WAIT_SECONDS)
            if not self.addresses.acquire_side(name):
                return _RETRY_SECONDS
            if not self.cap.acquire(name, now):
                self.addresses.release(name)
                return _RETRY_SECONDS
            host.side_waiting -= 1
            self.begin_request(host, now, side=True)
            self._free(host)
            return 0.0

    def _may_send(self, host: HostState) -> bool:
        if isinstance(self._failure, CrawlEnds):
            raise self._failure
        if self._failure is not None:
            raise StoreError(f"no host can be asked any more: {self._failure}")
        return self._may_ask(host) and self._holds_lease()

    def cancel_side_request(self, name: str) -> None:
        """Withdraws a side request that was announced."""
        with self.lock:
            host = self.find_or_add(name)
            host.side_waiting -= 1
            self.addresses.withdraw_side(name)
            self._free(host)

    def release_request(self, name: str) -> None:
        """Notes the end of the side request of ``try_acquire_request``."""
        with self.lock:
            self.end_request(self.find_or_add(name))

    def try_acquire_host(self, name: str, now: float, wake: Callable[[], None] = lambda: None) -> float:
        """Takes a host into use under the cap, for its robots.txt: 0, or the seconds until the next try, as for a request.

        The number of requests to the host does not limit it: a claim that is under way waits for that robots.txt.
        """
        with self.lock:
            host = self.find_or_add(name)
            if not self.names.is_known(name) or not self._may_send(host):
                host.waiters.append(wake)
                return _LONGEST_WAIT_SECONDS
            if not self.cap.acquire(name, now):
                return _RETRY_SECONDS
            host.robots_requests += 1
            return 0.0

    def release_host(self, name: str) -> None:
        """Notes that the robots.txt of ``try_acquire_host`` was read."""
        with self.lock:
            host = self.find_or_add(name)
            host.robots_requests -= 1
            self._release_cap(host)

    def note_names(self, names: Iterable[str]) -> None:
        """Notes that DNS has answered for hosts whose requests waited for that."""
        with self.lock:
            for host in filter(None, map(self._hosts.get, names)):
                self._free(host)

    def reserve(self, name: str, now: float, wake: Callable[[], None] = lambda: None) -> float | None:
        """Reserves one request to a host; returns when it may go. None: it is not owned yet, and ``wake`` is called once it is."""
        with self.lock:
            host = self.find_or_add(name)
            if not self._may_send(host):
                host.waiters.append(wake)
                return None
            start = max(now, host.next_at)
            host.next_at = start + self.delay(host)
            host.requests += 1
            return start

    # What all processes share: who owns a host, its failures and pauses.

    def take_changes(self) -> HostChanges:
        """Takes out what the store is to be told; ``grant`` or ``disown`` follow for each host that was asked for."""
        with self.lock:
            asked, self._asked = self._asked, []
            dropped, self._dropped = self._dropped, {}
            slowed, self._slowed = self._slowed, {}
            delays = {host.name: self.delay(host) for host in asked}
            return HostChanges(delays, dropped, slowed, self._take_reports())

    def grant(self, name: str, host_id: int, taken: TakenHost, since: float) -> None:
        """Takes over a host; ``since`` is the moment from which its waits count."""
        wait, pause = taken.wait_ms / 1000, taken.pause_ms / 1000
        with self.lock:
            host = self.find_or_add(name)
            host.id, host.owned, host.asked_for, host.leaving, host.lost = host_id, True, False, False, False
            host.owned_since, host.requests = clock.monotonic(), 0
            host.next_at = max(host.next_at, since + wait)
            is_new = pause > 0 and host.keep_pause(since + pause - clock.monotonic(), taken.pause_code)
            self._free(host)
        if is_new and taken.pause_code in BUSY:
            why = f"it asked another run for a pause, which lasts {pause:.0f} s more"
            self._warn(name, taken.pause_code, why)

    def find_leaving(self, names: Iterable[str], now: float) -> dict[int, float]:
        """Ends the turns of hosts that other processes want; returns those that may go now, by id, as ``HostChanges.dropped``.

        A turn is over once nothing is due, after a few requests, or where the host could be asked for long and was not; what is
        under way ends before.
        """
        gone: dict[int, float] = {}
        with self.lock:
            for host in filter(None, map(self._hosts.get, names)):
                host.leaving = host.leaving or not host.is_used or self._had_turn(host, now)
                # Whoever gets it has to learn of the pause that it asked for.
                is_busy = host.in_flight or host.robots_requests or host.report is not None
                if host.owned and host.leaving and not is_busy:
                    gone[host.id] = max(host.next_at - now, 0.0)
                    host.owned = host.leaving = False
        return gone

    def _had_turn(self, host: HostState, now: float) -> bool:
        least, most = _TURN_SECONDS
        if host.requests:
            # By requests, so that a process which is slower, or begins with robots.txt, has its part as well.
            return now - host.owned_since >= (least if host.requests >= _TURN_REQUESTS else most)
        # It may wait for the cap on hosts.
        return now - max(host.owned_since, host.next_at) >= most

    def ask_again(self, names: Iterable[str]) -> None:
        """Asks for hosts that were handed over, where something waits for them."""
        with self.lock:
            for host in filter(None, map(self._hosts.get, names)):
                if host.has_claims or host.side_waiting or host.waiters:
                    self._may_ask(host)

    def disown_all(self) -> None:
        """Notes that the lease was lost: each host has to be taken anew."""
        with self.lock:
            names = [name for name, host in self._hosts.items() if host.owned]
            for name in names:
                host = self._hosts[name]
                host.owned, host.leaving, host.lost = False, False, True
            self._dropped.clear()
            self._slowed.clear()
        self.ask_again(names)

    def fail(self, error: Exception) -> None:
        """Notes that no host is taken any more: those that wait for one learn of it."""
        with self.lock:
            self._failure = self._failure or error
            for host in [*self._hosts.values()]:
                self._wake_waiters(host)

    def end_ownership(self, now: float) -> dict[int, float]:
        """Takes out all hosts that are owned; returns them as ``HostChanges.dropped``."""
        with self.lock:
            owned = [host for host in self._hosts.values() if host.owned]
            for host in owned:
                host.owned = False
            waits = {host.id: max(host.next_at - now, 0.0) for host in owned}
            return self._dropped | waits

    def _take_reports(self) -> dict[str, HostReport]:
        hosts, self._reporting = self._reporting, {}
        reports = {name: host.report for name, host in hosts.items() if host.report is not None}
        for host in hosts.values():
            host.report = None
        return reports

    def _find(self, name: str) -> HostState | None:
        return self._hosts.get(name) or self._remembered.get(name)

    def _drop_idle(self) -> None:
        """Drops hosts that were not used for longest, where there are too many; few are looked at."""
        now = clock.monotonic()
        for _ in range(_LOOKED_AT):
            if len(self._hosts) < self._most_hosts:
                return
            name, host = next(iter(self._hosts.items()))
            if not host.is_idle(now):
                self._hosts.move_to_end(name)
                continue
            if host.owned:
                host.owned = host.leaving = False
                self._dropped[host.id] = 0.0
            if host.counts_later:
                self._remembered[name] = host
                if len(self._remembered) > _MOST_REMEMBERED:
                    self._remembered.popitem(last=False)
            del self._hosts[name]

    def _free(self, host: HostState) -> None:
        """Tells those that wait that a request to a host may go now."""
        self._wake_waiters(host)
        self.on_free(host)

    def _wake_waiters(self, host: HostState) -> None:
        waiters, host.waiters = host.waiters, []
        for wake in waiters:
            wake()

    def _warn(self, name: str, code: int, why: str) -> None:
        """Says once for each host that its pages have to wait for another run; the first hosts are named."""
        self._warned += 1
        if self._warned <= _MOST_NAMED:
            logger.warning("%s gets no request for the rest of this run (%d): %s", name, code, why)
        elif self._warned == _MOST_NAMED + 1:
            logger.warning("more hosts that get no request for the rest of this run are not named")

    def _queue_report(self, host: HostState) -> None:
        if host.report is not None and self._wake is not None:
            self._reporting[host.name] = host
            self._wake()

    def _release_cap(self, host: HostState) -> None:
        if not host.in_flight and not host.robots_requests:
            self.cap.release(host.name, host.next_at if self.delay(host) else 0.0)
