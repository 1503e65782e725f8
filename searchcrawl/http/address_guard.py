"""Which IP addresses may be reached: globally reachable unicast, and what the source lists (L7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from searchcrawl.rules.decision import ALLOWED, Decision
from searchcrawl.sources.fetch_tables import Fetch

_KEY: Final = "fetch.private_networks"
_OUTSIDE: Final = f"outside the boundary {_KEY} counts for the ports 80, 443 and those of start.urls only"
#: IANA's special-purpose addresses, multicast, reserved space, and a metadata service whose address looks public.
_FORBIDDEN_V4: Final = tuple(
    (IPv4Network(cidr), name)
    for cidr, name in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "metadata service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_UNICAST_V6: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_FORBIDDEN_V6: Final = tuple(
    (IPv6Network(cidr), name)
    for cidr, name in (
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
    )
)


class AddressGuard:
    """The policy on addresses of one source.

    ``private_networks`` are CIDRs that may be reached besides the public ones. ``resolve`` maps
    ``host`` or ``*.host`` (the hosts below it) to the address used instead of asking DNS; that
    address is subject to ``decide`` like any other. ``proxy_host``, a name or an address, may be connected to
    whatever its address is. ``reason`` is what refusals say besides the network.
    """

    def __init__(
        self,
        *,
        private_networks: Iterable[object],
        resolve: Mapping[str, object],
        proxy_host: str | None = None,
        reason: str = _KEY,
    ) -> None:
        self._reason = reason
        self._proxy_host = None if proxy_host is None else _normalise_host(proxy_host)
        self._of_proxy = set() if proxy_host is None else {proxy_host}
        self._listed = tuple(ip_network(str(cidr), strict=False) for cidr in private_networks)
        self._resolve = {_normalise_host(host): str(address) for host, address in resolve.items()}
        self._decide = lru_cache(maxsize=4096)(self._evaluate)

    def explain(self, address: str) -> str:
        """Why ``address``, which is refused, may not be reached."""
        return f"{address} may not be reached ({self.decide(address).rule}; {self._reason})"

    def decide(self, address: str) -> Decision:
        """Decides whether a connection to ``address`` (an IP address as text) may be opened; names the rule."""
        return self._decide(address)

    def may_connect(self, host: str | None, address: str) -> bool:
        """Whether a connection to ``address`` of ``host`` may be opened; ``host`` is None where the socket is opened."""
        if self._proxy_host is None:
            return self.decide(address).allowed
        if host is not None and _normalise_host(host) == self._proxy_host:
            self._of_proxy.add(address)
        # All connections lead to the proxy.
        return address in self._of_proxy

    def addresses_for(self, host: str) -> list[str] | None:
        """The addresses that ``resolve`` names for ``host``; None if DNS is to be asked."""
        if not self._resolve:
            return None
        name = _normalise_host(host)
        found = self._resolve.get(name)
        while found is None and "." in name:
            name = name.partition(".")[2]
            found = self._resolve.get(f"*.{name}")
        return None if found is None else [found]

    def _evaluate(self, address: str) -> Decision:
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return _build_refusal("not an IP address")
        if self._is_listed(ip):
            return ALLOWED
        return _decide(ip, _FORBIDDEN_V4) if isinstance(ip, IPv4Address) else self._decide_v6(ip)

    def _is_listed(self, ip: IPv4Address | IPv6Address) -> bool:
        if any(ip.version == network.version and ip in network for network in self._listed):
            return True
        mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
        return mapped is not None and self._is_listed(mapped)

    def _decide_v6(self, ip: IPv6Address) -> Decision:
        embedded = _find_embedded_v4(ip)
        for inner in embedded:
            decision = self._evaluate(str(inner))
            if not decision.allowed:
                return decision
        if embedded:
            return ALLOWED
        if ip.ipv4_mapped is not None:
            return _build_refusal("::ffff:0:0/96 IPv4-mapped")
        return _decide(ip, _FORBIDDEN_V6) if ip in _UNICAST_V6 else _build_refusal("outside 2000::/3")


def build_guard(fetch: Fetch) -> AddressGuard:
    """The policy on addresses of a source."""
    host = urlsplit(fetch.proxy).hostname if fetch.proxy else None
    return AddressGuard(private_networks=fetch.private_networks, resolve=fetch.resolve, proxy_host=host)


class PublicGuard(AddressGuard):
    """The policy for targets of redirects that may be reached at public addresses only."""


def build_public_guard(fetch: Fetch) -> PublicGuard:
    """The same policy as ``build_guard`` without ``fetch.private_networks``."""
    host = urlsplit(fetch.proxy).hostname if fetch.proxy else None
    return PublicGuard(private_networks=(), resolve=fetch.resolve, proxy_host=host, reason=_OUTSIDE)


def _decide(ip: IPv4Address | IPv6Address, forbidden: Iterable[tuple[IPv4Network | IPv6Network, str]]) -> Decision:
    found = next((f"{network} {name}" for network, name in forbidden if ip in network), None)
    return ALLOWED if found is None else _build_refusal(found)


def _find_embedded_v4(ip: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses to which a transition mechanism finally sends (RFC 3056, 4380, 6052)."""
    if ip.sixtofour is not None:
        return (ip.sixtofour,)
    if ip.teredo is not None:
        return ip.teredo
    return (IPv4Address(int(ip) & 0xFFFFFFFF),) if ip in _NAT64 else ()


def _build_refusal(rule: str) -> Decision:
    return Decision(False, rule, key=_KEY)


def _normalise_host(host: str) -> str:
    return host.lower().removesuffix(".")
