"""Sends everything through the proxy of the source: pages, robots files, sitemaps, logins (C10, X-N3)."""

from __future__ import annotations

import logging
from urllib.parse import unquote, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from w3lib.http import basic_auth_header

from searchcrawl import urls
from searchcrawl.http.address_guard import AddressGuard, build_guard, build_public_guard
from searchcrawl.http.visit_end import PUBLIC_ONLY, ForbiddenAddress
from searchcrawl.sources.fetch_tables import Fetch
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)


class ProxyRoute:
    """``http://[USER:PASSWORD@]HOST:PORT`` in its parts.

    The proxy resolves names: only literal addresses, and names that ``fetch.resolve`` lists, can be
    checked here. The proxy itself may be anywhere: its address comes from the source file.
    """

    def __init__(self, url: str, guard: AddressGuard, public_guard: AddressGuard) -> None:
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        #: without user and password
        self.url = f"http://{host}:{parts.port}"
        #: the value of Proxy-Authorization (RFC 7617); None without user and password
        self.authorization: str | None = None
        if parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
            self.authorization = basic_auth_header(user, password, encoding="utf-8").decode("ascii")
        self._guard = guard
        self._public_guard = public_guard

    def find_refusal(self, url: str, *, public_only: bool = False) -> str | None:
        """Why ``url``, a normalised one, may not be requested through the proxy; None if it may."""
        guard = self._public_guard if public_only else self._guard
        host = urls.parse(url).host.strip("[]")
        # A normalised URL has only one spelling of an address.
        literal = [host] if ":" in host or host.replace(".", "").isdigit() else []
        for address in guard.addresses_for(host) or literal:
            if not guard.decide(address).allowed:
                return guard.explain(address)
        return None


def build_proxy_route(fetch: Fetch) -> ProxyRoute | None:
    """The proxy of a source; None where there is none."""
    if not fetch.proxy:
        return None
    # Without the proxy's own host, which may be anywhere.
    plain = fetch.model_copy(update={"proxy": None})
    return ProxyRoute(fetch.proxy, build_guard(plain), build_public_guard(plain))


class ProxyMiddleware:
    """Checks addresses, as far as possible, before the proxy gets a request; off without ``fetch.proxy``.

    The download handler sends the requests through the proxy.
    """

    def __init__(self, route: ProxyRoute) -> None:
        self._route = route
        logger.warning(
            "everything goes through the proxy %s, which resolves names: of addresses only literal ones, and those in "
            "fetch.resolve, are checked",
            route.url,
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ProxyMiddleware:
        route = stages_of(crawler).find(ProxyRoute)
        if route is None:
            raise NotConfigured
        return cls(route)

    def process_request(self, request: Request) -> None:
        refusal = self._route.find_refusal(request.url, public_only=request.meta.get(PUBLIC_ONLY, False))
        if refusal is not None:
            raise ForbiddenAddress(f"{request.url[:200]} may not be asked for: {refusal}")
