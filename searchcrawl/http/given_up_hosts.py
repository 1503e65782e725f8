"""Ends the requests to hosts that are given up (``frontier.last_retries``): those under way, and those that wait for a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from searchcrawl.http.visit_end import HostGivenUp
from searchcrawl.politeness.backoff import explain_given_up


class GivenUpHosts:
    """The hosts (``host:port``) that get no request any more in this process; for the event loop, but for ``give_up``."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._under_way: dict[str, set[asyncio.Timeout]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def give_up(self, codes: Mapping[str, int]) -> None:
        """Ends all requests to hosts, each with its code; any thread may call it."""
        self._codes |= codes
        # Before the first request nothing is under way.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end, list(codes))

    @asynccontextmanager
    async def watch(self, host: str) -> AsyncIterator[None]:
        """What is done within is a request to the host; raises HostGivenUp once it is given up."""
        self._refuse(host)
        self._loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        under_way = self._under_way.setdefault(host, set())
        under_way.add(limit)
        try:
            async with limit:
                yield
        except TimeoutError:
            self._refuse(host)
            raise
        finally:
            under_way.discard(limit)
            if not under_way and self._under_way.get(host) is under_way:
                del self._under_way[host]

    def _refuse(self, host: str) -> None:
        if (code := self._codes.get(host)) is not None:
            raise HostGivenUp(explain_given_up(host), code=code)

    def _end(self, hosts: list[str]) -> None:
        for host in hosts:
            for limit in self._under_way.get(host, ()):
                limit.reschedule(self._loop.time() if self._loop is not None else 0.0)
