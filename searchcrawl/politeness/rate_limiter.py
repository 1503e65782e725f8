"""Lets side requests wait until their host allows them: robots.txt, sitemaps, logins, probes (C2, C3).

The requests of claims do not wait here: the window hands them out when they may go. Those of ``test`` and ``explain --live``
have no window; they take turns with crawls and with each other (C5, L5).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import BUSY
from searchcrawl.exceptions import HostBlocked
from searchcrawl.politeness.backoff import explain_given_up
from searchcrawl.politeness.host_leases import HostLeases
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.store.engine.database import Database


class RateLimiter:
    """The limits on requests to a host (``host:port``). This one limits nothing. All methods are for the event loop."""

    async def wait_until_allowed(self, host: str) -> None:
        """Waits until the delay of the host allows one more request, and reserves its slot."""

    async def acquire_request(self, host: str) -> None:
        """Waits as ``wait_until_allowed``, and until the number of requests to the host allows one more.

        Raises HostBlocked for a host that asked for a long pause, or is given up.
        """

    def release_request(self, host: str) -> None:
        """Notes the end of the request of ``acquire_request``."""

    async def acquire_host(self, host: str) -> None:
        """Waits until the host may be among those that are requested at once (``fetch.sites``), for its robots.txt.

        Raises HostBlocked as ``acquire_request`` does.
        """

    def release_host(self, host: str) -> None:
        """Notes the end of the request of ``acquire_host``."""

    def set_crawl_delay(self, host: str, *, delay_seconds: float, starts: bool = True) -> None:
        """From now on the delay is at least this long (crawl-delay of robots.txt); it ``starts`` now."""

    def start_delay(self, host: str) -> None:
        """Starts the delay of the host: a request to it has just ended."""

    def note_there(self, host: str) -> None:
        """Notes that an answer of the host began, whatever comes of it."""

    def pause(self, host: str, *, seconds: float) -> None:
        """Sends nothing to the host for this long, in all processes (Retry-After)."""

    def has_delay(self, host: str) -> bool:
        """Whether requests to the host have to wait for each other."""
        return False

    def give_turn_back(self, host: str) -> None:
        """Has another request of the host go in the place of a page that is not sent yet."""

    def may_send(self, host: str, since: float = math.inf) -> bool:
        """Whether a request may be sent whose turn has come, before ``since`` (monotonic seconds); not where this process was
        stopped for so long that others may ask the host, or have asked it.
        """
        return True


class _Turn:
    """Waits in the event loop for what other threads change."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Ends the wait; any thread may call it."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> None:
        """Waits so long at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        self._event.clear()


#: So long a request waits for its host before it asks for it again, without being woken, and looks whether it is given up.
_ASK_SECONDS: Final = 1.0


class SharedRateLimiter(RateLimiter):
    """Keeps the limits of ``hosts``, which this process takes for its own before it asks them.

    ``changed`` is called when a claim may perhaps go that had to wait for a side request.
    """

    def __init__(self, hosts: HostRegistry, *, changed: Callable[[], None]) -> None:
        self._hosts = hosts
        self._changed = changed

    async def wait_until_allowed(self, host: str) -> None:
        turn = _Turn()
        # To a host that is given up nothing is sent (``http.given_up_hosts``).
        while (start := self._hosts.reserve(host, clock.monotonic(), turn.wake)) is None:
            await self._wait(turn, _ASK_SECONDS)
            if self._hosts.is_given_up(host):
                return
        while (pause := start - clock.monotonic()) > 0 and not self._hosts.is_given_up(host):
            await turn.wait(min(pause, _ASK_SECONDS))

    async def acquire_request(self, host: str) -> None:
        self._refuse_blocked(host)
        self._hosts.announce_side_request(host)
        turn = _Turn()
        try:
            while pause := self._hosts.try_acquire_request(host, clock.monotonic(), turn.wake):
                await self._wait(turn, pause)
                self._refuse_blocked(host)
        except BaseException:
            self._hosts.cancel_side_request(host)
            raise
        finally:
            self._changed()

    def release_request(self, host: str) -> None:
        self._hosts.release_request(host)
        self._changed()

    async def acquire_host(self, host: str) -> None:
        self._refuse_blocked(host)
        turn = _Turn()
        while pause := self._hosts.try_acquire_host(host, clock.monotonic(), turn.wake):
            await self._wait(turn, pause)
            self._refuse_blocked(host)

    def release_host(self, host: str) -> None:
        self._hosts.release_host(host)
        self._changed()

    def set_crawl_delay(self, host: str, *, delay_seconds: float, starts: bool = True) -> None:
        self._hosts.set_crawl_delay(host, delay_seconds, starts=starts)

    def start_delay(self, host: str) -> None:
        self._hosts.start_delay(host)

    def note_there(self, host: str) -> None:
        self._hosts.note_there(host)

    def pause(self, host: str, *, seconds: float) -> None:
        self._hosts.pause(host, seconds)

    def has_delay(self, host: str) -> bool:
        return self._hosts.delay_seconds(host) > 0

    def give_turn_back(self, host: str) -> None:
        self._hosts.give_turn_back(host)

    def may_send(self, host: str, since: float = math.inf) -> bool:
        return self._hosts.may_send(host, since)

    async def _wait(self, turn: _Turn, seconds: float) -> None:
        """Waits for a host, or its next turn."""
        await turn.wait(seconds)

    def _refuse_blocked(self, host: str) -> None:
        code = self._hosts.blocked_code(host)
        if code in BUSY:
            raise HostBlocked(f"{host} is blocked for this run, as it asked ({code})", code=code)
        if code is not None and self._hosts.is_given_up(host):
            raise HostBlocked(explain_given_up(host), code=code)


logger = logging.getLogger(__name__)

#: Longer waits are logged: somebody waits for the answer.
_LONG_SECONDS: Final = 2.0
#: So often it is looked whether a host was handed over, or another process wants one.
_UPDATE_SECONDS: Final = 0.25


class DryRunRateLimiter(SharedRateLimiter):
    """Takes the host of each request as a crawl does, for pages as well: no window hands them out."""

    def __init__(self, database: Database, hosts: HostRegistry) -> None:
        super().__init__(hosts, changed=lambda: None)
        self._leases = HostLeases(database, hosts)

    async def wait_until_allowed(self, host: str) -> None:
        """Waits for the turn of one request; raises HostBlocked for a host that asked for a long pause."""
        # As a request that waits: a host with one is handed over to nobody.
        self._hosts.announce_side_request(host)
        try:
            start, told = await self._find_turn(host), False
            while (pause := start - clock.monotonic()) > 0:
                if pause > _LONG_SECONDS and not told:
                    logger.info("waits %.0f s for its turn at %s", pause, host)
                    told = True
                await asyncio.sleep(min(pause, _LONG_SECONDS))
                await self._update()
        finally:
            self._hosts.cancel_side_request(host)

    async def acquire_request(self, host: str) -> None:
        # No run renews the lease.
        await self._update()
        await super().acquire_request(host)

    async def acquire_host(self, host: str) -> None:
        await self._update()
        await super().acquire_host(host)

    def note_busy(self, host: str, *, code: int, seconds: float) -> None:
        """Notes that a page was answered with 429 or 503 and a Retry-After."""
        self._hosts.record_retry_after(host, code, seconds)

    async def finish(self) -> None:
        """Gives the hosts back, and tells other processes of the pauses that were asked for; raises StoreError."""
        await asyncio.to_thread(self._leases.stop)

    async def _find_turn(self, host: str) -> float:
        """When the next request may go, in monotonic seconds, once this process owns the host."""
        began, told, turn = clock.monotonic(), False, _Turn()
        while True:
            # Told before the wait, since a signal may end it.
            await self._update()
            code = self._hosts.blocked_code(host)
            if code is not None:
                seconds = self._hosts.blocked_seconds(host)
                raise HostBlocked(f"{host} gets no request for {seconds:.0f} s, as it asked", code=code)
            start = self._hosts.reserve(host, clock.monotonic(), turn.wake)
            if start is not None:
                return start
            if not told and clock.monotonic() - began > _LONG_SECONDS:
                logger.info("waits for its turn at %s, which another process asks", host)
                told = True
            await self._wait(turn, _UPDATE_SECONDS)

    async def _wait(self, turn: _Turn, seconds: float) -> None:
        # There is no thread for it.
        await self._update()
        await turn.wait(min(seconds, _UPDATE_SECONDS))

    async def _update(self) -> None:
        await asyncio.to_thread(self._leases.update)
