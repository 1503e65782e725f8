"""Turns at a host: requests outside the claims (robots.txt) keep the same delay (C2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from searchcrawl import clock
from searchcrawl.codes import BUSY
from searchcrawl.exceptions import HostBlocked
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.hosts import host_table


class HostClock(Protocol):
    """When a host may be asked, within this process (frontier.window)."""

    def delay_seconds(self, name: str) -> float:
        """The delay in force."""

    def set_delay(self, name: str, seconds: float) -> None:
        """Slows a host down."""

    def rest(self, name: str) -> None:
        """The delay begins now."""

    def book(self, name: str, moment: float) -> float:
        """Books one request, not before ``moment`` (monotonic); when it may go."""

    def ask(self, name: str) -> None:
        """Wants a place among the requests to a host."""

    def next_at(self, name: str) -> float:
        """The moment (monotonic) before which nothing is asked of a host."""

    def parked(self, name: str) -> int | None:
        """The code of a host that is left alone for the rest of the run."""

    def take_turn(self, name: str) -> float | None:
        """A turn (monotonic) that was booked for a host and is free to take."""

    def pause(self, name: str, seconds: float) -> None:
        """Nothing is asked of a host for so long."""

    def arrive(self, name: str, now: float) -> float:
        """Takes a slot for a host's robots.txt: 0, or the seconds until the next try."""

    def depart(self, name: str) -> None:
        """That robots.txt was had."""

    def enter(self, name: str, now: float) -> float:
        """Takes that place: 0, or the seconds until the next try."""

    def ask_no_more(self, name: str) -> None:
        """Wants it no more."""

    def leave(self, name: str) -> None:
        """Gives it back."""


class RateLimiter:
    """Limits the requests to a host (``host:port``) that are no claimed page: robots.txt, sitemaps, logins, probes.

    This one limits nothing. All methods are for the event loop.
    """

    async def wait_until_allowed(self, host: str) -> None:
        """Waits until the delay of the host allows one more request, and reserves its slot."""

    async def acquire_request(self, host: str) -> None:
        """Waits as ``wait_until_allowed``, and for one of the concurrent requests to the host, until ``release_request``.

        Raises HostBlocked for a host that asked for a long pause.
        """

    def release_request(self, host: str) -> None:
        """The request of ``acquire_request`` has ended."""

    async def acquire_host(self, host: str) -> None:
        """Waits until the host may be one of those that are requested at once (``fetch.sites``), until ``release_host``.

        Raises HostBlocked as ``acquire_request`` does.
        """

    def release_host(self, host: str) -> None:
        """The request of ``acquire_host`` has ended."""

    def set_crawl_delay(self, host: str, *, delay_seconds: float) -> None:
        """From now on the delay is at least this long (crawl-delay of robots.txt)."""

    def start_delay(self, host: str) -> None:
        """A request to the host has just ended: its delay starts now."""

    def pause(self, host: str, *, seconds: float) -> None:
        """Sends nothing to the host for so long, in all processes (Retry-After)."""


class SharedRateLimiter(RateLimiter):
    """Reserves slots in the host table, which all processes share, and in this process.

    ``changed`` is called when a request may have become free that a claim can take.
    """

    def __init__(self, database: Database, clock_of_hosts: HostClock, *, changed: Callable[[], None]) -> None:
        self._database = database
        self._hosts = clock_of_hosts
        self._changed = changed

    async def wait_until_allowed(self, host: str) -> None:
        """Waits until one more request to ``host`` (``host:port``) is allowed, and books it."""
        delay = self._hosts.delay_seconds(host)
        moment = clock.monotonic()
        if delay:
            moment = await self._booked(host, delay, self._hosts.next_at(host))
        pause = self._hosts.book(host, moment) - clock.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)

    async def enter(self, host: str) -> None:
        """Waits for a turn and for a place among the requests to ``host``; ``leave`` gives it back.

        Raises HostBlocked for a host that asked for a long pause.
        """
        hosts = self._hosts
        self._check(host)
        hosts.ask(host)
        try:
            # The window is shared with threads, which set no event of this loop.
            while pause := hosts.enter(host, clock.monotonic()):
                await asyncio.sleep(pause)
                self._check(host)
        except (asyncio.CancelledError, HostBlocked):
            hosts.ask_no_more(host)
            raise
        finally:
            self._changed()
        delay = hosts.delay_seconds(host)
        if not delay:
            return
        try:
            moment = hosts.take_turn(host)
            if moment is None or moment < clock.monotonic():
                moment = await self._booked(host, delay, 0.0)
            await asyncio.sleep(max(moment - clock.monotonic(), 0))
        except BaseException:
            self.leave(host)
            raise

    def leave(self, host: str) -> None:
        """A request that entered is over."""
        self._hosts.leave(host)
        self._changed()

    def set_crawl_delay(self, host: str, *, delay_seconds: float) -> None:
        """Keeps at least this delay to a host from now on."""
        self._hosts.set_delay(host, delay_seconds)

    def rest(self, host: str) -> None:
        """A request to the host is over: its delay begins now."""
        self._hosts.rest(host)

    async def arrive(self, host: str) -> None:
        """Waits until a robots.txt of ``host`` may be asked for under the cap on sites; ``depart`` ends it.

        Raises HostBlocked as ``enter`` does.
        """
        self._check(host)
        while pause := self._hosts.arrive(host, clock.monotonic()):  # noqa: ASYNC110
            await asyncio.sleep(pause)

    def depart(self, host: str) -> None:
        """A robots.txt that arrived is over."""
        self._hosts.depart(host)
        self._changed()

    def pause(self, host: str, *, seconds: float) -> None:
        """Asks nothing of a host for so long (Retry-After), in all processes."""
        self._hosts.pause(host, seconds)

    def _check(self, host: str) -> None:
        code = self._hosts.parked(host)
        if code in BUSY:
            raise HostBlocked(f"{host} is left alone, as it asked ({code})", code=code)

    async def _booked(self, host: str, delay_seconds: float, not_before: float) -> float:
        """When the turn is that the host table gives, in monotonic seconds as ``not_before``."""
        wait_ms = round((not_before - clock.monotonic()) * 1000)
        first_ms = await asyncio.to_thread(self._book, host, round(delay_seconds * 1000), wait_ms)
        return clock.monotonic() + (first_ms - clock.now_ms()) / 1000

    def _book(self, host: str, delay_ms: int, wait_ms: int) -> int:
        def book(transaction: Transaction) -> int:
            host_id = host_table.ids(transaction, [host])[host]
            now_ms = clock.now_ms()
            turn = host_table.book(
                transaction, host_id, now_ms=now_ms, delay_ms=delay_ms, not_before_ms=now_ms + wait_ms
            )
            return turn.first_ms

        return self._database.write(book)
