"""Counts the requests to one IP address where they are sent (``fetch.address_concurrency``).

The window hands out no more pages of an address than that (``politeness.address_cap``). What is sent besides them is counted
here: a robots.txt, a redirect of a side request, a name whose address has changed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import yarl

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.name_lookups import NameLookups


class AddressSlots:
    """Lets at most ``most`` requests of this process be under way to one address; for the event loop."""

    def __init__(self, lookups: NameLookups, guard: AddressGuard, *, most: int) -> None:
        self._lookups = lookups
        self._guard = guard
        self._most = most
        #: by address, with the number of requests that have or want a slot
        self._slots: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def hold(self, url: str) -> AsyncIterator[None]:
        """Waits until one more request may be sent to the address of a URL, and holds its slot."""
        address = await self._find_address(url)
        if not address:
            yield
            return
        slots, count = self._slots.get(address) or (asyncio.Semaphore(self._most), 0)
        self._slots[address] = slots, count + 1
        try:
            async with slots:
                yield
        finally:
            slots, count = self._slots.pop(address)
            if count > 1:
                self._slots[address] = slots, count - 1

    async def _find_address(self, url: str) -> str:
        """The first address that may be reached; empty where there is none, which the request itself finds out."""
        try:
            host = yarl.URL(url, encoded=True).raw_host or ""
            return await self._lookups.find_first(host, self._guard)
        except (OSError, ValueError):
            return ""
