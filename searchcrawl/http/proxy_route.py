"""The proxy of a source, and what may be asked through it (C10; architecture, decision 16)."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote, urlsplit

from searchcrawl import urls
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.rules.decision import ALLOWED, Decision
from searchcrawl.sources.fetch_table import Fetch


class ProxyRoute:
    """``http://[USER:PASSWORD@]HOST:PORT`` in its parts.

    The proxy resolves names: only literal addresses, and names that ``fetch.resolve`` lists, can be
    checked here. The proxy itself may be anywhere: its address comes from the source file.
    """

    def __init__(self, url: str, guard: AddressGuard) -> None:
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        #: without user and password
        self.url = f"http://{host}:{parts.port}"
        self.username = None if parts.username is None else unquote(parts.username)
        self.password = unquote(parts.password or "")
        self._guard = guard

    @property
    def authorization(self) -> bytes | None:
        """The value of Proxy-Authorization (RFC 7617)."""
        if self.username is None:
            return None
        return b"Basic " + b64encode(f"{self.username}:{self.password}".encode())

    def decide(self, url: str) -> Decision:
        """Whether the proxy may be asked for ``url``, an identity."""
        host = urls.parse(url).host.strip("[]")
        for address in self._guard.addresses_for(host) or _literal(host):
            decision = self._guard.decide(address)
            if not decision.allowed:
                return decision
        return ALLOWED


def build_proxy_route(fetch: Fetch) -> ProxyRoute | None:
    """The proxy of a source; None where there is none."""
    if not fetch.proxy:
        return None
    return ProxyRoute(fetch.proxy, AddressGuard(private_networks=fetch.private_networks, resolve=fetch.resolve))


def _literal(host: str) -> list[str]:
    """The host where it is an address: in an identity it has its one spelling."""
    return [host] if ":" in host or host.replace(".", "").isdigit() else []
