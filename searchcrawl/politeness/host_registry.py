"""The hosts of a run by name: their delays, and what the host table is to be told and asked about them.

Not thread-safe: the window's lock guards it. Times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.politeness.backoff import MAX_RETRY_PAUSE_SECONDS
from searchcrawl.politeness.host_state import HostNews, HostState

#: A booked turn that is not taken by then is booked anew, so that no two processes come close to each other.
_LATE_SECONDS: Final = 0.05


class Wish(NamedTuple):
    """A turn to be booked in the host table: not before a moment, and whether the last one went by unused."""

    name: str
    not_before: float
    delay_seconds: float
    missed: bool


class HostBoard:
    """All hosts met, and the delay of the source, which ``pace`` answers where it changes with the hour.

    Once ``on_wish`` is set, each request under a delay needs a turn that is booked in the host table; it is
    called when there is something to book or to tell.
    """

    def __init__(self, *, delay_seconds: float, pace: Callable[[], float] | None) -> None:
        self._pace = pace
        self._delay_seconds = delay_seconds if pace is None else pace()
        self._hosts: dict[str, HostState] = {}
        self._wished: list[HostState] = []
        self._newsworthy: dict[str, HostState] = {}
        self._closed: Mapping[str, tuple[float, int]] = {}
        self.on_wish: Callable[[], None] | None = None

    def host(self, name: str) -> HostState:
        """A host, new or known."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = HostState(name)
            if name in self._closed:
                self._close(host)
        return host

    def find(self, name: str) -> HostState | None:
        """A known host."""
        return self._hosts.get(name)

    def is_closed(self, name: str) -> bool:
        """Whether others were told to leave a host alone, be it known or not."""
        return name in self._closed

    def all(self) -> list[HostState]:
        """All known hosts."""
        return list(self._hosts.values())

    def keep_pace(self) -> None:
        """Looks at the clock, where the delay of the source changes with it."""
        if self._pace is not None:
            self._delay_seconds = self._pace()

    def delay(self, host: HostState | None) -> float:
        """The delay in force for a host, in seconds."""
        if host is None or host.crawl_delay_seconds <= self._delay_seconds:
            return self._delay_seconds
        return host.crawl_delay_seconds

    def moment(self, host: HostState, now: float) -> float | None:
        """When the next claim of a host may go; None where a turn has to be booked first."""
        if self.on_wish is None or host.parked is not None or not self.delay(host):
            return host.next_at
        if host.booked is not None and now - host.booked > _LATE_SECONDS:
            host.booked, host.missed = None, True
        if host.booked is not None:
            return max(host.next_at, host.booked)
        if not host.wished:
            host.wished = True
            self._wished.append(host)
            self.on_wish()
        return None

    def wishes(self) -> list[Wish]:
        """The turns to be booked; each is told once, and answered with ``given``."""
        hosts, self._wished = self._wished, []
        return [Wish(host.name, host.next_at, self.delay(host), host.missed) for host in hosts]

    def given(self, name: str, moment: float) -> HostState:
        """Notes the turn that was booked for a host."""
        host = self.host(name)
        host.booked, host.missed, host.wished = moment, False, False
        return host

    def tell(self, host: HostState) -> None:
        """There may be news of a host for the host table."""
        if host.news is not None and self.on_wish is not None:
            self._newsworthy[host.name] = host
            self.on_wish()

    def news(self) -> dict[str, HostNews]:
        """What the host table is to be told, each once."""
        hosts, self._newsworthy = self._newsworthy, {}
        found = {name: host.news for name, host in hosts.items() if host.news is not None}
        for host in hosts.values():
            host.news = None
        return found

    def close_until(self, closed: Mapping[str, tuple[float, int]]) -> None:
        """Takes in which hosts all processes leave alone: until when, and the code that is the reason."""
        self._closed = closed
        for name in closed:
            host = self._hosts.get(name)
            if host is not None:
                self._close(host)

    def _close(self, host: HostState) -> None:
        until, code = self._closed[host.name]
        bound = clock.monotonic() + MAX_RETRY_PAUSE_SECONDS
        host.next_at = max(host.next_at, min(until, bound))
        if host.parked is None and until > bound:
            host.parked = code
