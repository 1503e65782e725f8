"""The download handler for spiders in Python that ask for the address guard."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Self

import yarl
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from searchcrawl import urls
from searchcrawl.bodies import Body, read_whole
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.content_coding import decode_body, parse_codings
from searchcrawl.http.download_handler import FOR_PROXY, GuardedHandler
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.visit_end import ForbiddenAddress
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.redirects import OwnOrigins
from searchcrawl.sources.fetch_tables import TlsFiles

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

    async def answer_browser(
        self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> tuple[int, Sequence[tuple[str, str]], bytes]:
        """Status, headers and decoded body of what a browser asks for, a redirect too; raises what ``download_request`` does.

        Raises BrokenCoding and DecodedTooLarge as well.
        """
        meta = {"verbatim_url": True, "download_slot": urls.host_and_port(url)}
        request = Request(url, method=method, body=body, meta=meta, dont_filter=True)
        for name, value in headers:
            request.headers.appendlist(name, value.encode("latin-1"))
        response = await self.download_request(request)
        codings = parse_codings(response.headers.getlist(b"Content-Encoding"))
        content = response.body
        if codings and content:
            content = await asyncio.to_thread(decode_body, content, codings, max_bytes=self._max_bytes)
        pairs = ((name.decode("latin-1"), values) for name, values in dict.items(response.headers))
        return response.status, [(name, value.decode("latin-1")) for name, values in pairs for value in values], content

    def _choose_proxy(self, request: Request) -> tuple[yarl.URL | None, str | None]:
        url = request.meta.get("proxy")
        secret = request.headers.get(FOR_PROXY)
        return (yarl.URL(url), secret.decode("latin-1") if secret else None) if url else (None, None)

    def _choose_limit(self, request: Request) -> int:
        limit: int = request.meta.get("download_maxsize", self._max_bytes)
        return limit

    def _choose_type(self, headers: Headers, url: str, body: Body) -> type[Response]:
        return responsetypes.from_args(headers=headers, url=url, body=read_whole(body))
