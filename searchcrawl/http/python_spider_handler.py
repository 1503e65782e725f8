"""The download handler for spiders in Python that ask for the address guard."""

from __future__ import annotations

from typing import Final, Self

import yarl
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.download_handler import FOR_PROXY, GuardedHandler
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.visit_end import ForbiddenAddress
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.own_origins import OwnOrigins
from searchcrawl.sources.fetch_table import TlsFiles

#: By whom spiders in Python are refused an address.
_BY_SETTING: Final = "refused by the address guard of searchcrawl: SEARCHCRAWL_GUARD"


class PythonSpiderHandler(GuardedHandler):
    """The handler for spiders in Python with SEARCHCRAWL_GUARD = True: they reach public addresses only.

    Such spiders rely on what the handlers of Scrapy do: bodies of errors are whole, types of answers are guessed,
    requests may name a proxy, and errors are those of Scrapy.
    """

    _wants_every_body = True

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        guard = AddressGuard(private_networks=(), resolve={}, reason=_BY_SETTING)
        return cls(
            crawler,
            guard=guard,
            public_guard=guard,
            rate_limiter=RateLimiter(),
            timeout_seconds=settings.getfloat("DOWNLOAD_TIMEOUT"),
            max_bytes=settings.getint("DOWNLOAD_MAXSIZE"),
            verify=settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"),
            tls_files=TlsFiles(),
            own_origins=OwnOrigins(()),
            lookups=NameLookups(),
        )

    async def download_request(self, request: Request) -> Response:
        try:
            return await super().download_request(request)
        except ForbiddenAddress as error:
            raise CannotResolveHostError(str(error)) from error

    def _choose_proxy(self, request: Request) -> tuple[yarl.URL | None, str | None]:
        url = request.meta.get("proxy")
        secret = request.headers.get(FOR_PROXY)
        return (yarl.URL(url), secret.decode("latin-1") if secret else None) if url else (None, None)

    def _choose_limit(self, request: Request) -> int:
        limit: int = request.meta.get("download_maxsize", self._max_bytes)
        return limit

    def _choose_type(self, headers: Headers, url: str, body: bytes) -> type[Response]:
        return responsetypes.from_args(headers=headers, url=url, body=body)
