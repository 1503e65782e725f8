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

#: The longest use of a DNS answer. Its own time to live is unknown: the resolver of the system does not tell it.
DNS_SECONDS: Final = 60.0
_DNS_HOSTS: Final = 10_000


class AddressForbidden(OSError):
    """An address was refused; an OSError, so that aiohttp tries the next address."""


class DnsCache:
    """The addresses of the last ``most_hosts`` hosts, each for ``DNS_SECONDS``.

    They are stored as DNS named them: for each connection the guard decides whether an address may be reached.
    """

    def __init__(self, *, most_hosts: int) -> None:
        self._most_hosts = most_hosts
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def find(self, host: str) -> tuple[str, ...] | None:
        """The addresses of ``host``; None where DNS is to be asked."""
        known = self._known.get(host)
        return known[1] if known is not None and clock.monotonic() < known[0] else None

    def store(self, host: str, addresses: Sequence[str]) -> None:
        """Stores an answer; after an empty one DNS is asked again."""
        self._known.pop(host, None)
        if not addresses or self._most_hosts <= 0:
            return
        if len(self._known) >= self._most_hosts:
            del self._known[next(iter(self._known))]
        self._known[host] = (clock.monotonic() + DNS_SECONDS, tuple(addresses))


class GuardedResolver(AbstractResolver):
    """Asks ``resolve`` of the source, then DNS, and leaves out addresses that may not be reached.

    Requests that need the same host at the same time share one lookup.
    """

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._dns = ThreadedResolver()
        self._known = DnsCache(most_hosts=_DNS_HOSTS)
        self._lookups: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found: Sequence[str] | None = self._guard.addresses_for(host) or self._known.find(host)
        if found is None:
            found = await self._look_up(host, family)
        allowed = [address for address in found if self._guard.may_connect(host, address)]
        if found and not allowed:
            raise build_refusal(self._guard, found[0])
        return [_build_result(host, address, port) for address in allowed]

    async def close(self) -> None:
        for task in list(self._lookups.values()):
            task.cancel()
        await self._dns.close()

    async def _look_up(self, host: str, family: socket.AddressFamily) -> tuple[str, ...]:
        task = self._lookups.get(host)
        if task is None:
            task = self._lookups[host] = asyncio.ensure_future(self._ask_dns(host, family))
            task.add_done_callback(functools.partial(self._forget_lookup, host))
        # If one request is cancelled, the others still need the answer.
        return await asyncio.shield(task)

    async def _ask_dns(self, host: str, family: socket.AddressFamily) -> tuple[str, ...]:
        addresses = tuple(dict.fromkeys(result["host"] for result in await self._dns.resolve(host, 0, family)))
        self._known.store(host, addresses)
        return addresses

    def _forget_lookup(self, host: str, task: asyncio.Task[tuple[str, ...]]) -> None:
        del self._lookups[host]
        if not task.cancelled():
            # Read the error: otherwise asyncio logs one that nobody waits for.
            task.exception()


class GuardedConnector(LimitedConnector):
    """Connects to addresses that the guard allows; at most ``limit`` connections at once."""

    def __init__(self, guard: AddressGuard, *, limit: int) -> None:
        # The resolver has a cache of its own, and checks the answers each time.
        super().__init__(
            limit=limit,
            resolver=GuardedResolver(guard),
            use_dns_cache=False,
            socket_factory=functools.partial(_open_socket, guard),
        )


def build_refusal(guard: AddressGuard, address: str) -> AddressForbidden:
    """Builds the error for an address that was refused."""
    return AddressForbidden(guard.explain(address))


def _open_socket(guard: AddressGuard, address: aiohttp.AddrInfoType) -> socket.socket:
    """Makes the socket of each connection; raises AddressForbidden for an address that may not be reached."""
    family, kind, protocol, _, peer = address
    if not guard.may_connect(None, str(peer[0])):
        raise build_refusal(guard, str(peer[0]))
    return socket.socket(family, kind, protocol)


def _build_result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
