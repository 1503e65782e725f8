"""Lets side requests wait until their host allows them: robots.txt, sitemaps, logins, probes (C2, C3).

The requests of claims do not wait here: the window hands them out when they may go. Those of ``test`` and ``explain --live``
have no window; they take turns with crawls and with each other (C5, L5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import BUSY
from searchcrawl.exceptions import HostBlocked
from searchcrawl.politeness.backoff import MAX_RETRY_PAUSE_SECONDS
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.politeness.slot_reservations import SlotReservations
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database, Transaction


class RateLimiter:
    """The limits on requests to a host (``host:port``). This one limits nothing. All methods are for the event loop."""

    async def wait_until_allowed(self, host: str) -> None:
        """Waits until the delay of the host allows one more request, and reserves its slot."""

    async def acquire_request(self, host: str) -> None:
        """Waits as ``wait_until_allowed``, and until the number of requests to the host allows one more.

        Raises HostBlocked for a host that asked for a long pause.
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

    def pause(self, host: str, *, seconds: float) -> None:
        """Sends nothing to the host for this long, in all processes (Retry-After)."""


class SharedRateLimiter(RateLimiter):
    """Keeps the limits of ``hosts``, and reserves slots in the host table that all processes share.

    ``changed`` is called when a claim may perhaps go that had to wait for a side request.
    """

    def __init__(self, database: Database, hosts: HostRegistry, *, changed: Callable[[], None]) -> None:
        self._database = database
        self._hosts = hosts
        self._changed = changed

    async def wait_until_allowed(self, host: str) -> None:
        delay = self._hosts.delay_seconds(host)
        start = clock.monotonic()
        if delay:
            start = await self._reserve(host, delay, self._hosts.next_at(host))
        pause = self._hosts.reserve_locally(host, start) - clock.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)

    async def acquire_request(self, host: str) -> None:
        await self._begin_request(host)
        delay = self._hosts.delay_seconds(host)
        if not delay:
            return
        try:
            start = self._hosts.take_slot(host)
            if start is None or start < clock.monotonic():
                start = await self._reserve(host, delay, 0.0)
            await asyncio.sleep(max(start - clock.monotonic(), 0))
        except BaseException:
            self.release_request(host)
            raise

    def release_request(self, host: str) -> None:
        self._hosts.release_request(host)
        self._changed()

    async def acquire_host(self, host: str) -> None:
        self._refuse_blocked(host)
        # The registry is shared with threads, which set no event of this loop.
        while pause := self._hosts.try_acquire_host(host, clock.monotonic()):  # noqa: ASYNC110  # see above
            await asyncio.sleep(pause)

    def release_host(self, host: str) -> None:
        self._hosts.release_host(host)
        self._changed()

    def set_crawl_delay(self, host: str, *, delay_seconds: float, starts: bool = True) -> None:
        self._hosts.set_crawl_delay(host, delay_seconds, starts=starts)

    def start_delay(self, host: str) -> None:
        self._hosts.start_delay(host)

    def pause(self, host: str, *, seconds: float) -> None:
        self._hosts.pause(host, seconds)

    async def _begin_request(self, host: str) -> None:
        self._refuse_blocked(host)
        self._hosts.announce_side_request(host)
        try:
            # The registry is shared with threads, which set no event of this loop.
            while pause := self._hosts.try_acquire_request(host, clock.monotonic()):
                await asyncio.sleep(pause)
                self._refuse_blocked(host)
        except (asyncio.CancelledError, HostBlocked):
            self._hosts.cancel_side_request(host)
            raise
        finally:
            self._changed()

    def _refuse_blocked(self, host: str) -> None:
        code = self._hosts.blocked_code(host)
        if code in BUSY:
            raise HostBlocked(f"{host} is blocked for this run, as it asked ({code})", code=code)

    async def _reserve(self, host: str, delay_seconds: float, not_before: float) -> float:
        """Reserves a slot in the host table: its start, in monotonic seconds as ``not_before``."""
        return await asyncio.to_thread(self._write_reservation, host, round(delay_seconds * 1000), not_before)

    def _write_reservation(self, host: str, delay_ms: int, not_before: float) -> float:
        def reserve(transaction: Transaction) -> float:
            host_id = host_table.find_or_add(transaction, [host])[host]
            # Both at one moment: the clock may be set at any other.
            now_ms, now = clock.now_ms(), clock.monotonic()
            not_before_ms = now_ms + round((not_before - now) * 1000)
            slot = host_table.reserve_slot(
                transaction, host_id, now_ms=now_ms, delay_ms=delay_ms, not_before_ms=not_before_ms
            )
            return now + (slot.start_ms - now_ms) / 1000

        return self._database.write(reserve)


logger = logging.getLogger(__name__)

#: Longer waits are logged: somebody waits for the answer.
_LONG_SECONDS: Final = 2.0


class DryRunRateLimiter(SharedRateLimiter):
    """Reserves a slot in the host table for each request, for pages as well: no window hands them out.

    It does so also where no delay is known and another process has reserved one that is not over.
    """

    def __init__(self, database: Database, hosts: HostRegistry) -> None:
        super().__init__(database, hosts, changed=lambda: None)
        self._database = database
        self._reservations = SlotReservations(database, hosts, wake=lambda: None)

    async def wait_until_allowed(self, host: str) -> None:
        """Waits for the turn of one request; raises HostBlocked for a host that asked for a long pause."""
        # Told before the wait, since a signal may end it.
        await self.finish()
        await self._wait_while_closed(host)
        while True:
            start = await self._find_turn(host)
            pause = self._hosts.reserve_locally(host, start) - clock.monotonic()
            if pause > _LONG_SECONDS:
                logger.info("waits %.0f s for its turn at %s", pause, host)
            await asyncio.sleep(max(pause, 0.0))
            # A crawl may have been asked for a pause meanwhile.
            if not await self._wait_while_closed(host):
                return

    def note_busy(self, host: str, *, code: int, seconds: float) -> None:
        """Notes that a page was answered with 429 or 503 and a Retry-After."""
        self._hosts.record_retry_after(host, code, seconds)

    async def finish(self) -> None:
        """Tells other processes of the pauses that hosts have asked for; raises StoreError."""
        await asyncio.to_thread(self._reservations.write)

    async def _find_turn(self, host: str) -> float:
        """When the next request may go, in monotonic seconds."""
        delay, next_at = self._hosts.delay_seconds(host), self._hosts.next_at(host)
        if not delay:
            allowed_ms = await asyncio.to_thread(
                self._database.read, lambda transaction: host_table.find_allowed_ms(transaction, host)
            )
            if allowed_ms <= clock.now_ms():
                return clock.monotonic()
        return await self._reserve(host, delay, next_at)

    async def _wait_while_closed(self, host: str) -> bool:
        """Waits until no pause of the host is left, which any process was asked for; returns whether there was one."""
        waited = False
        while block := await asyncio.to_thread(
            self._database.read, lambda transaction: host_table.find_block(transaction, host, clock.now_ms())
        ):
            seconds = (block.until_ms - clock.now_ms()) / 1000
            if seconds > MAX_RETRY_PAUSE_SECONDS:
                raise HostBlocked(f"{host} gets no request for {seconds:.0f} s, as it asked", code=block.code)
            await asyncio.sleep(max(seconds, 0.0))
            waited = True
        return waited
