"""aiohttp's connections, only to addresses that may be reached (L7)."""

from __future__ import annotations

import functools
import socket
from collections.abc import Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.connection_internals import LimitedConnector
from searchcrawl.http.name_lookups import NameLookups


class AddressForbidden(OSError):
    """An address was refused; an OSError, so that aiohttp tries the next address."""


class GuardedResolver(AbstractResolver):
    """Asks ``resolve`` of the source, then ``lookups``, and leaves out addresses that may not be reached.

    Whoever gave an address, DNS or another process, it is checked here, and once more where the socket is opened.
    """

    def __init__(self, guard: AddressGuard, lookups: NameLookups) -> None:
        self._guard = guard
        self._lookups = lookups

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found: Sequence[str] = self._guard.addresses_for(host) or await self._lookups.find(host)
        allowed = [address for address in found if self._guard.may_connect(host, address)]
        if not allowed:
            raise build_refusal(self._guard, found[0])
        return [_build_result(host, address, port) for address in allowed]

    async def close(self) -> None:
        """Does nothing: others use the lookups as well."""


class GuardedConnector(LimitedConnector):
    """Connects to addresses that the guard allows; at most ``limit`` connections at once."""

    def __init__(self, guard: AddressGuard, lookups: NameLookups, *, limit: int) -> None:
        # The lookups have a cache of their own, and the resolver checks the answers each time.
        super().__init__(
            limit=limit,
            resolver=GuardedResolver(guard, lookups),
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
