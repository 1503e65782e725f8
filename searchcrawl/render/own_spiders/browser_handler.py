"""scrapy-playwright as spiders in Python get it from us, with and without the address guard (L7).

Of scrapy-playwright one thing is not public: ``_launch``, for it begins when the engine does, and this one with the first
page.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from playwright.async_api import Error
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotSupported
from scrapy.http import Response
from scrapy_playwright.handler import Config, ScrapyPlaywrightDownloadHandler

from searchcrawl.http.python_spider_handler import PythonSpiderHandler
from searchcrawl.render.own_spiders.browser_provider import ChromiumProvider, GuardedProvider
from searchcrawl.render.own_spiders.spider_proxy import SpiderProxy
from searchcrawl.render.rendered_page import BrowserUnavailable

_GUARD: Final = "SEARCHCRAWL_GUARD"
#: What leads a browser past a proxy of ours, and has no place with the guard.
_ELSEWHERE: Final = ("PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL")
_REFUSED_COUNT: Final = "playwright/refused_by_guard"


class BrowserHandler(ScrapyPlaywrightDownloadHandler):  # type: ignore[misc]  # it has no type hints
    """scrapy-playwright, with our browser where the project names no other."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not crawler.settings.get("PLAYWRIGHT_BROWSER_PROVIDER"):
            self.browser_provider_cls: Callable[[Config], ChromiumProvider] = ChromiumProvider

    async def begin(self) -> None:
        """Starts what drives browsers, and the contexts that the settings name; raises BrowserUnavailable."""
        await self._launch()


class GuardedBrowserHandler(BrowserHandler):
    """The same behind a proxy that has ``client`` send what pages ask for, so that they reach public addresses only."""

    def __init__(self, crawler: Crawler, client: PythonSpiderHandler) -> None:
        _check_settings(crawler.settings)
        super().__init__(crawler)
        self._proxy = SpiderProxy(client.answer_browser, self._count_refused)
        self.browser_provider_cls = functools.partial(GuardedProvider, proxy=self._proxy)

    async def download_request(self, request: Request) -> Response:
        """The page of a request; raises what a plain request for it would, where the network is to blame."""
        if "proxy" in (request.meta.get("playwright_context_kwargs") or {}):
            raise NotSupported(f"playwright_context_kwargs: {_GUARD} has a proxy of its own")
        try:
            response: Response = await super().download_request(request)
        except Error as error:
            failure = self._proxy.find_failure(request.url)
            if failure is None:
                raise
            raise failure from error
        return response

    async def close(self) -> None:
        """Ends the browser and its way out."""
        try:
            await super().close()
        finally:
            await self._proxy.close()

    def _count_refused(self) -> None:
        self.stats.inc_value(_REFUSED_COUNT)


async def open_browser(crawler: Crawler, client: PythonSpiderHandler | None) -> BrowserHandler:
    """What answers requests for pages in a browser, ready for use; raises BrowserUnavailable.

    With a ``client`` all that pages ask for is sent by it.
    """
    handler = BrowserHandler(crawler) if client is None else GuardedBrowserHandler(crawler, client)
    try:
        await handler.begin()
    except BaseException:
        await handler.close()
        raise
    return handler


def _check_settings(settings: Any) -> None:
    """Raises BrowserUnavailable for a setting with which the browser would not be behind the proxy."""
    for name in (*_ELSEWHERE, "PLAYWRIGHT_BROWSER_PROVIDER"):
        if settings.get(name):
            raise BrowserUnavailable(f"{name}: {_GUARD} covers a browser of its own alone")
    if settings.get("PLAYWRIGHT_BROWSER_TYPE") not in {None, "", "chromium"}:
        raise BrowserUnavailable(f"PLAYWRIGHT_BROWSER_TYPE: {_GUARD} covers chromium alone")
    given = {"PLAYWRIGHT_LAUNCH_OPTIONS": settings.getdict("PLAYWRIGHT_LAUNCH_OPTIONS")}
    contexts = settings.getdict("PLAYWRIGHT_CONTEXTS")
    given |= {f"PLAYWRIGHT_CONTEXTS: {name}": options or {} for name, options in contexts.items()}
    for name, options in given.items():
        if "proxy" in options:
            raise BrowserUnavailable(f"{name}: proxy: {_GUARD} has a proxy of its own")
