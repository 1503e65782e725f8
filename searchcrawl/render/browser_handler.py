"""scrapy-playwright as spiders in Python get it from us, with and without the address guard (L7).

Of scrapy-playwright one thing is not public: ``_launch``, for it begins when the engine does, and this one with the first
page.

Debian's Chromium is started in its sandbox, and as root under another user. With the guard the only way out of it is the
client of the plain requests of the spider.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, Error
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotSupported
from scrapy.http import Response
from scrapy_playwright.handler import Config, ScrapyPlaywrightDownloadHandler
from scrapy_playwright.provider import PlaywrightBrowserProvider

from searchcrawl.codes import REDIRECT_STATUSES
from searchcrawl.http.python_spider_handler import PythonSpiderHandler
from searchcrawl.http.visit_end import ForbiddenAddress
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, resolve
from searchcrawl.render.chromium import ChromiumFiles, explain_failure, find_program, kill_browser, list_flags
from searchcrawl.render.page_port import Authority, PagePort
from searchcrawl.render.rendered_page import BrowserUnavailable

logger = logging.getLogger(__name__)

#: An answer of the client: its status, its headers and its body without codings.
Sending = Callable[
    [str, str, Sequence[tuple[str, str]], bytes], Awaitable[tuple[int, Sequence[tuple[str, str]], bytes]]
]
#: Headers about one connection.
_OF_CONNECTION: Final = frozenset({
    "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
#: They go on for longer than an answer does, and each answer is whole before the browser gets it.
_ENDLESS: Final = frozenset({"websocket", "eventsource"})
_MAX_ENDS: Final = 2000
_MAX_REDIRECTS: Final = 25
#: So many refused hosts are named in the log.
_MAX_NAMED: Final = 50


class SpiderProxy:
    """Listens on loopback for one browser, and has ``send`` answer what its pages ask for. For the event loop.

    It has the certificates of ``authority``. ``send`` may raise anything: the page gets a network error, and ``find_failure`` has the reason. ``count_refused`` is
    called for each request that the address guard refused.
    """

    def __init__(self, send: Sending, count_refused: Callable[[], None]) -> None:
        self._send = send
        self._count_refused = count_refused
        self.authority = Authority()
        self._ports: dict[frozenset[int], tuple[PagePort, int]] = {}
        #: by identity of a URL: why there was no answer, or where it redirects to
        self._ends: OrderedDict[str, Exception | str] = OrderedDict()
        self._named: set[str] = set()

    async def open(self, users: Collection[int]) -> int:
        """The port that it listens on for a browser of one of ``users``."""
        known = self._ports.get(frozenset(users))
        if known is None:
            port = PagePort(self.authority, self._answer, users=users, note_refused=self._note_tunnel)
            known = self._ports[frozenset(users)] = port, await port.open()
        return known[1]

    async def close(self) -> None:
        """Ends all connections."""
        for port, _ in self._ports.values():
            await port.close()
        self._ports.clear()

    def find_failure(self, url: str) -> Exception | None:
        """Why there was no answer of a URL, or of that where its redirects led to; None if nothing is known."""
        end: Exception | str | None = url
        for _ in range(_MAX_REDIRECTS):
            if not isinstance(end, str):
                return end
            end = self._ends.get(resolve(end) or end)
        return None

    async def _answer(self, request: BrowserRequest) -> DecodedAnswer | None:
        url = resolve(request.url)
        if url is None or request.kind in _ENDLESS:
            return None
        headers = [
            (name, value)
            for name, value in request.headers
            if name not in _OF_CONNECTION and not name.startswith("proxy-")
        ]
        try:
            status, received, body = await self._send(request.method, request.url, headers, request.body)
        except Exception as error:  # noqa: BLE001  # whatever it is, the spider gets it
            logger.debug("the browser of a spider gets no answer of %s: %s", url, error)
            self._note(url, _strip(error))
            return None
        location = next((value for name, value in received if name.lower() == "location"), None)
        target = resolve(location, url) if location is not None and status in REDIRECT_STATUSES else None
        if target is None:
            self._ends.pop(url, None)
        else:
            self._note(url, target)
        return DecodedAnswer(url, status, received, body)

    def _note(self, url: str, end: Exception | str) -> None:
        self._ends[url] = end
        self._ends.move_to_end(url)
        if len(self._ends) > _MAX_ENDS:
            self._ends.popitem(last=False)
        if isinstance(end, Exception) and isinstance(end.__cause__, ForbiddenAddress):
            self._count_refused()
            reason = str(end)
            if reason not in self._named and len(self._named) < _MAX_NAMED:
                self._named.add(reason)
                logger.warning("the browser of a spider was refused an address: %s", reason)

    def _note_tunnel(self, reason: str) -> None:
        logger.debug("the browser of a spider was refused a tunnel: %s", reason)


def _strip(error: Exception) -> Exception:
    """An error without the frames that it went through, which hold bodies."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error


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
        self._proxy = SpiderProxy(client.answer_browser, functools.partial(self.stats.inc_value, _REFUSED_COUNT))
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


#: Options that name a browser: with one of them it is started as scrapy-playwright does it.
_NAMING: Final = ("executable_path", "channel")


class ChromiumProvider(PlaywrightBrowserProvider):  # type: ignore[misc]  # it has no type hints
    """What starts browsers where a project names none: Debian's, and any other as scrapy-playwright does."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.config: Config = config
        self._given: Mapping[str, Any] = config.launch_options
        self._files: ChromiumFiles | None = None

    async def start(self) -> None:
        """Starts what drives browsers; raises BrowserUnavailable."""
        try:
            await super().start()
        except (Error, OSError) as error:
            raise BrowserUnavailable(f"the driver of the browser does not start: {error}") from error

    async def launch_browser(self) -> Browser:
        """Starts the browser, or another one where it died; raises BrowserUnavailable."""
        await self._end_browser()
        try:
            self.config = dataclasses.replace(self.config, launch_options=await self._build_options())
            browser: Browser = await super().launch_browser()
        except (Error, OSError) as error:
            is_ours = self._files is not None
            await self._end_browser()
            raise BrowserUnavailable(explain_failure(str(error)) if is_ours else _shorten(error)) from error
        return browser

    async def launch_persistent_context(self, context_kwargs: dict[str, Any]) -> BrowserContext:
        """Starts a browser with a folder of the project's own; raises BrowserUnavailable."""
        options: dict[str, Any] = {}
        if self._is_found_by_us(context_kwargs):
            options = {"executable_path": find_program(), "chromium_sandbox": True}
            if os.geteuid() == 0 and "chromium_sandbox" not in context_kwargs:
                raise BrowserUnavailable(
                    "user_data_dir: the browser has no sandbox as root: crawl as another user, or say chromium_sandbox = False"
                )
        options = await self._send_through(options | context_kwargs, {os.geteuid()})
        try:
            context: BrowserContext = await super().launch_persistent_context(options)
        except Error as error:
            raise BrowserUnavailable(_shorten(error)) from error
        return context

    async def close(self) -> None:
        """Ends what drives browsers, and all that it started."""
        try:
            # There is nothing to end where it did not begin.
            if self.playwright is not None:
                await super().close()
        finally:
            await self._end_browser()

    async def _build_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        users = {os.geteuid()}
        if self._is_found_by_us(self._given):
            self._files = files = ChromiumFiles()
            users.add(files.user_id)
            options = {
                "executable_path": files.script,
                "chromium_sandbox": True,
                # Another user may write nowhere else.
                "downloads_path": files.profile,
                # Ctrl-C ends the crawl, which still wants its pages.
                **dict.fromkeys(("handle_sigint", "handle_sigterm", "handle_sighup"), False),
            }
        return await self._send_through({**options, **self._given}, users)

    def _is_found_by_us(self, options: Mapping[str, Any]) -> bool:
        is_elsewhere = self.config.cdp_url or self.config.connect_url
        is_named = any(options.get(name) for name in _NAMING)
        return self.config.browser_type_name == "chromium" and not is_elsewhere and not is_named

    async def _send_through(self, options: dict[str, Any], users: Collection[int]) -> dict[str, Any]:
        """The options of a browser that runs as one of ``users``, with its way to a network."""
        return options

    async def _end_browser(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            await asyncio.to_thread(kill_browser, files)


def _shorten(error: Exception) -> str:
    """What Playwright says of a browser that it did not start; its command line, which follows, says nothing of why."""
    return f"the browser does not start: {str(error).partition('Browser logs:')[0].strip()[:400]}"


class GuardedProvider(ChromiumProvider):
    """Starts browsers whose only way to a network is ``proxy``."""

    def __init__(self, config: Config, *, proxy: SpiderProxy) -> None:
        super().__init__(config)
        self._proxy = proxy

    async def _send_through(self, options: dict[str, Any], users: Collection[int]) -> dict[str, Any]:
        port = await self._proxy.open(users)
        return {
            **options,
            # The last argument of a name counts.
            "args": [*options.get("args", ()), *list_flags(port, None, self._proxy.authority.key_digest)],
            # The driver sends requests too (``page.request``), and knows no arguments.
            "proxy": {"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"},
        }
