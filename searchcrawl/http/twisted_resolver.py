"""The address guard for downloads through Twisted: the TWISTED_DNS_RESOLVER of a process (L7).

Twisted asks its resolver for every host, literals too, and connects to nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution, IResolutionReceiver
from zope.interface import implementer

from searchcrawl.http.address_guard import AddressGuard, build_guard
from searchcrawl.http.dns_cache import DnsCache


class _Runner(Protocol):
    """What Scrapy hands to a resolver: a CrawlerProcess, although it calls it a crawler."""

    @property
    def settings(self) -> BaseSettings: ...
    @property
    def crawlers(self) -> Iterable[Crawler]: ...


# Twisted's interfaces as types: mypy does not understand zope's.
class _Receiver(Protocol):
    def resolutionBegan(self, resolution: object) -> None: ...
    def addressResolved(self, address: object) -> None: ...
    def resolutionComplete(self) -> None: ...


class _Resolver(Protocol):
    def resolveHostName(
        self,
        resolutionReceiver: _Receiver,
        hostName: str,
        portNumber: int = ...,
        addressTypes: Sequence[type] | None = ...,
        transportSemantics: str = ...,
    ) -> object: ...


class _Reactor(Protocol):
    @property
    def nameResolver(self) -> _Resolver: ...
    def installNameResolver(self, resolver: _Resolver) -> object: ...


@implementer(IHostnameResolver)
class GuardedResolver:
    """Answers with the addresses that the policies of all sources in this process allow.

    A process without a source of ours, or with a spider of another make, has the strictest
    policy. DNS answers are kept for a while, at most ``cache_size`` of them; who asks for a host that is being looked
    up waits for that answer (C12).
    """

    def __init__(
        self,
        reactor: _Reactor,
        guards: Callable[[], Sequence[AddressGuard]],
        *,
        cache_size: int,
    ) -> None:
        self._reactor = reactor
        self._dns: _Resolver = reactor.nameResolver
        self._guards = guards
        self._known = DnsCache(most_hosts=cache_size)
        self._waiting: dict[str, list[tuple[_Receiver, int]]] = {}

    @classmethod
    def from_crawler(cls, crawler: _Runner, reactor: _Reactor) -> GuardedResolver:
        return cls(reactor, _PoliciesOf(crawler), cache_size=crawler.settings.getint("DNSCACHE_SIZE"))

    def install_on_reactor(self) -> None:
        """Makes the reactor ask here; called by Scrapy."""
        self._reactor.installNameResolver(self)

    def resolveHostName(
        self,
        resolutionReceiver: _Receiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type] | None = None,
        transportSemantics: str = "TCP",
    ) -> object:
        """Tells ``resolutionReceiver`` the addresses of ``hostName`` that may be reached."""
        guards = self._guards()
        addresses = self._without_dns(hostName, guards)
        if addresses is None and hostName not in self._waiting:
            self._waiting[hostName] = []
            receiver = _GuardedReceiver(resolutionReceiver, hostName, guards, self._answered)
            return self._dns.resolveHostName(receiver, hostName, portNumber, addressTypes, transportSemantics)
        resolution = _Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        if addresses is None:
            self._waiting[hostName].append((resolutionReceiver, portNumber))
        else:
            _tell(resolutionReceiver, hostName, portNumber, addresses, guards)
        return resolution

    def _without_dns(self, host: str, guards: Sequence[AddressGuard]) -> Sequence[str] | None:
        for guard in guards:
            named = guard.addresses_for(host)
            if named is not None:
                return named
        return self._known.find(host)

    def _answered(self, host: str, addresses: tuple[str, ...]) -> None:
        self._known.keep(host, addresses)
        for receiver, port in self._waiting.pop(host, ()):
            _tell(receiver, host, port, addresses, self._guards())


class _PoliciesOf:
    """The policies of the sources that a process crawls just now."""

    def __init__(self, runner: _Runner) -> None:
        self._runner = runner
        self._strict = AddressGuard(private_networks=(), resolve={})
        self._guards: WeakKeyDictionary[Crawler, AddressGuard] = WeakKeyDictionary()

    def __call__(self) -> Sequence[AddressGuard]:
        guards = [self._guard(crawler) for crawler in self._runner.crawlers if crawler.spider is not None]
        return guards or [self._strict]

    def _guard(self, crawler: Crawler) -> AddressGuard:
        guard = self._guards.get(crawler)
        if guard is None:
            spider: Any = crawler.spider
            guard = build_guard(spider.run.source.fetch) if hasattr(spider, "run") else self._strict
            self._guards[crawler] = guard
        return guard


@implementer(IResolutionReceiver)
class _GuardedReceiver:
    """Passes on the allowed addresses of one lookup, and remembers all of them."""

    def __init__(
        self,
        receiver: _Receiver,
        host: str,
        guards: Sequence[AddressGuard],
        answered: Callable[[str, tuple[str, ...]], None],
    ) -> None:
        self._receiver = receiver
        self._host = host
        self._guards = guards
        self._answered = answered
        self._found: list[str] = []

    def resolutionBegan(self, resolution: object) -> None:
        self._receiver.resolutionBegan(resolution)

    def addressResolved(self, address: object) -> None:
        if not isinstance(address, IPv4Address | IPv6Address):
            return
        self._found.append(address.host)
        if _allowed(self._guards, self._host, address.host):
            self._receiver.addressResolved(address)

    def resolutionComplete(self) -> None:
        self._answered(self._host, tuple(self._found))
        self._receiver.resolutionComplete()


@implementer(IHostResolution)
class _Resolution:
    """A lookup that was over before it began."""

    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """Does nothing: there is nothing under way."""


def _tell(receiver: _Receiver, host: str, port: int, addresses: Sequence[str], guards: Sequence[AddressGuard]) -> None:
    for address in addresses:
        if _allowed(guards, host, address):
            receiver.addressResolved(_twisted_address(address, port))
    receiver.resolutionComplete()


def _allowed(guards: Sequence[AddressGuard], host: str, address: str) -> bool:
    return all(guard.may_connect(host, address) for guard in guards)


def _twisted_address(address: str, port: int) -> IPv4Address | IPv6Address:
    return IPv6Address("TCP", address, port) if ":" in address else IPv4Address("TCP", address, port)
