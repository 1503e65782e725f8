"""Sends everything through the proxy of the source: pages, robots files, sitemaps, logins (C10, X-N3)."""

from __future__ import annotations

import logging

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl.http.proxy_route import ProxyRoute
from searchcrawl.http.visit_end import ForbiddenAddress
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)


class ProxyMiddleware:
    """Checks what can be checked of an address before the proxy is asked for it; off without ``fetch.proxy``.

    The aiohttp handler knows the proxy itself; Scrapy's handlers are told with each request.
    """

    def __init__(self, route: ProxyRoute, *, tells_handler: bool) -> None:
        self._route = route
        self._tells_handler = tells_handler
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
        handler = str(crawler.settings["DOWNLOAD_HANDLERS"].get("https"))
        return cls(route, tells_handler=not handler.endswith("GuardedHandler"))

    def process_request(self, request: Request) -> None:
        decision = self._route.decide(request.url)
        if not decision.allowed:
            raise ForbiddenAddress(f"{request.url[:200]} may not be asked for ({decision.rule}; {decision.key})")
        if self._tells_handler:
            request.meta["proxy"] = self._route.url
            if self._route.authorization is not None:
                request.headers[b"Proxy-Authorization"] = self._route.authorization
