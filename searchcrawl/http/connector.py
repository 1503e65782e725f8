"""aiohttp's connections, only to addresses that may be reached; one DNS lookup a host (L7, C12)."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Sequence
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from searchcrawl import clock
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.library_internals import LimitedConnector

#: An answer is used no longer than this, whatever its own time to live, which the system's resolver does not tell.
DNS_SECONDS: Final = 60.0
_DNS_HOSTS: Final = 10_000


class Forbidden(OSError):
    """An address was refused; an OSError, so that aiohttp tries the next address."""


class DnsCache:
    """Addresses by host, for ``DNS_SECONDS``, of the last ``most_hosts`` that were asked for.

    They are as DNS gave them: whether one may be reached is decided anew with each connection.
    """

    def __init__(self, *, most_hosts: int) -> None:
        self._most_hosts = most_hosts
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def find(self, host: str) -> tuple[str, ...] | None:
        """The addresses of ``host``; None where DNS is to be asked."""
        known = self._known.get(host)
        return known[1] if known is not None and clock.monotonic() < known[0] else None

    def keep(self, host: str, addresses: Sequence[str]) -> None:
        """Remembers an answer; an empty one is asked for again."""
        self._known.pop(host, None)
        if not addresses or self._most_hosts <= 0:
            return
        if len(self._known) >= self._most_hosts:
            del self._known[next(iter(self._known))]
        self._known[host] = (clock.monotonic() + DNS_SECONDS, tuple(addresses))


class GuardedResolver(AbstractResolver):
    """Asks ``resolve`` of the source, then DNS, and leaves out what may not be reached.

    Requests that need the same host at the same time share one lookup.
    """

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._dns = ThreadedResolver()
        self._known = DnsCache(most_hosts=_DNS_HOSTS)
        self._under_way: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found: Sequence[str] | None = self._guard.addresses_for(host) or self._known.find(host)
        if found is None:
            found = await self._asked(host, family)
        allowed = [address for address in found if self._guard.may_connect(host, address)]
        if found and not allowed:
            raise forbidden(self._guard, found[0])
        return [_resolved(host, address, port) for address in allowed]

    async def close(self) -> None:
        for task in list(self._under_way.values()):
            task.cancel()
        await self._dns.close()

    async def _asked(self, host: str, family: socket.AddressFamily) -> tuple[str, ...]:
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.ensure_future(self._ask(host, family))
            task.add_done_callback(functools.partial(self._answered, host))
        # One request that is cancelled must not take the answer from the others.
        return await asyncio.shield(task)

    async def _ask(self, host: str, family: socket.AddressFamily) -> tuple[str, ...]:
        addresses = tuple(dict.fromkeys(result["host"] for result in await self._dns.resolve(host, 0, family)))
        self._known.keep(host, addresses)
        return addresses

    def _answered(self, host: str, task: asyncio.Task[tuple[str, ...]]) -> None:
        del self._under_way[host]
        if not task.cancelled():
            # Looked at, so that asyncio does not complain where nobody waits any more.
            task.exception()


class GuardedConnector(LimitedConnector):
    """Connects where the guard allows it; at most ``limit`` connections at once."""

    def __init__(self, guard: AddressGuard, *, limit: int) -> None:
        # The resolver remembers answers, and checks them each time.
        super().__init__(
            limit=limit,
            resolver=GuardedResolver(guard),
            use_dns_cache=False,
            socket_factory=functools.partial(_socket_for, guard),
        )


def forbidden(guard: AddressGuard, address: str) -> Forbidden:
    """The error of an address that was refused."""
    return Forbidden(f"{address} may not be reached ({guard.decide(address).rule}; fetch.private_networks)")


def _socket_for(guard: AddressGuard, address: aiohttp.AddrInfoType) -> socket.socket:
    """Makes the socket of each connection; raises Forbidden for an address that may not be reached."""
    family, kind, protocol, _, peer = address
    if not guard.may_connect(None, str(peer[0])):
        raise forbidden(guard, str(peer[0]))
    return socket.socket(family, kind, protocol)


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
