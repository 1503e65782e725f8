"""The handler of http and https for spiders in Python: a request with ``playwright`` in its meta is a page in a browser."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import Any, Final, Protocol, Self

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import NotSupported
from scrapy.http import Response
from scrapy.utils.misc import build_from_crawler, load_object

from searchcrawl.exceptions import NO_BROWSER
from searchcrawl.render.rendered_page import BrowserUnavailable

logger = logging.getLogger(__name__)

#: By name: a spider that asks for no page in a browser has nothing of them loaded.
_BROWSER: Final = "searchcrawl.render.browser_handler"
_GUARDED: Final = "searchcrawl.http.python_spider_handler.PythonSpiderHandler"


class _Handler(Protocol):
    async def download_request(self, request: Request) -> Response: ...
    async def close(self) -> None: ...


class PlaywrightSpiderHandler(BaseDownloadHandler):
    """Has scrapy-playwright answer the requests that ask for it, and Scrapy's own handler all others.

    With SEARCHCRAWL_GUARD it is ours that answers the others, and through which the browser sends what it asks for.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._crawler = crawler
        self._is_guarded = crawler.settings.getbool("SEARCHCRAWL_GUARD")
        self._plain: _Handler | None = None
        self._browser: _Handler | None = None
        self._refusal: str | None = None
        self._beginning = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """The answer of the web, or the page that a browser made of it."""
        if not request.meta.get("playwright"):
            return await self._find_plain(request).download_request(request)
        try:
            browser = await self._find_browser(request)
            return await browser.download_request(request)
        except BrowserUnavailable as error:
            self._end_spider(str(error))
            # The log shows where each request failed: a line of its own said why.
            raise NotSupported(str(error)) from None

    async def close(self) -> None:
        """Ends the browser and all connections."""
        # A browser that is being started is ended as well.
        async with self._beginning:
            for handler in (self._browser, self._plain):
                if handler is not None:
                    await handler.close()

    def _find_plain(self, request: Request) -> _Handler:
        if self._plain is None:
            scheme = request.url.partition(":")[0]
            base = self._crawler.settings.getdict("DOWNLOAD_HANDLERS_BASE").get(scheme)
            handler = _GUARDED if self._is_guarded else base
            if handler is None:
                raise NotSupported(f"Unsupported URL scheme '{scheme}': DOWNLOAD_HANDLERS_BASE has no handler")
            self._plain = build_from_crawler(load_object(handler), self._crawler)
        return self._plain

    async def _find_browser(self, request: Request) -> _Handler:
        async with self._beginning:
            if self._refusal is not None:
                # Each try would start the same programs, to end the same way.
                raise BrowserUnavailable(self._refusal)
            if self._browser is None:
                module = _load()
                client: Any = self._find_plain(request) if self._is_guarded else None
                self._browser = await module.open_browser(self._crawler, client)
            return self._browser

    def _end_spider(self, reason: str) -> None:
        """What all its pages need is missing: none of the requests that wait would be answered."""
        if self._refusal is None:
            self._refusal = reason
            logger.error("a page in a browser: %s", reason)
            if self._crawler.engine is not None:
                self._ending = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=NO_BROWSER))


def _load() -> Any:
    try:
        return importlib.import_module(_BROWSER)
    except ImportError as error:
        raise BrowserUnavailable(
            f"scrapy-playwright is not installed: pip install 'searchcrawl[playwright]' ({error})"
        ) from error
