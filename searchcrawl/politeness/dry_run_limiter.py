"""Lets the requests of ``test`` and ``explain --live`` take turns with crawls and with each other (C2, C5, L5)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from searchcrawl import clock
from searchcrawl.exceptions import HostBlocked
from searchcrawl.politeness.backoff import MAX_RETRY_PAUSE_SECONDS
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.politeness.rate_limiter import SharedRateLimiter
from searchcrawl.politeness.slot_reservations import SlotReservations
from searchcrawl.store.engine.database import Database
from searchcrawl.store.hosts import host_table

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
        if not delay and not await asyncio.to_thread(self._is_reserved, host):
            return clock.monotonic()
        return await self._reserve(host, delay, next_at)

    def _is_reserved(self, host: str) -> bool:
        allowed_ms = self._database.read(lambda transaction: host_table.find_allowed_ms(transaction, host))
        return allowed_ms > clock.now_ms()

    async def _wait_while_closed(self, host: str) -> bool:
        """Waits until no pause of the host is left, which any process was asked for; returns whether there was one."""
        waited = False
        while (block := await asyncio.to_thread(self._read_block, host)) is not None:
            seconds = (block.until_ms - clock.now_ms()) / 1000
            if seconds > MAX_RETRY_PAUSE_SECONDS:
                raise HostBlocked(f"{host} gets no request for {seconds:.0f} s, as it asked", code=block.code)
            await asyncio.sleep(max(seconds, 0.0))
            waited = True
        return waited

    def _read_block(self, host: str) -> host_table.HostBlock | None:
        return self._database.read(lambda transaction: host_table.find_block(transaction, host, clock.now_ms()))
