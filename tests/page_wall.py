"""Pages for a real browser, from memory: a wall that answers what a test gives it, and writes down what was asked for."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, Self
from urllib.parse import urlsplit

import pytest

from searchcrawl.codes import Code
from searchcrawl.render.browser import Browser
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, FetchFailed, RequestRefused
from searchcrawl.render.budget import PageBudget
from searchcrawl.render.login_steps import BrowserCookie
from searchcrawl.render.rendered_page import RenderedPage
from searchcrawl.sources.fetch_tables import Render

SITE: Final = "http://site.test"
#: Scripts may be loaded from here.
SCRIPTS: Final = "http://scripts.test"
#: As a page: whether it may be asked for is not known now.
UNKNOWN_ROBOTS: Final = "robots.txt fails"
#: As a page: it cannot be fetched.
NO_ANSWER: Final = "no answer"
_SECONDS: Final = 60
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}


class PageWall:
    """``pages`` by URL: a body, or a ``DecodedAnswer``, or a list of seconds to wait and a body, or what makes a body."""

    def __init__(self) -> None:
        self.pages: dict[str, str | DecodedAnswer | tuple[float, str] | Callable[[], str]] = {}
        self.asked: list[tuple[str, str]] = []
        #: how many answers are under way
        self.waiting = 0
        self.headers: dict[str, Mapping[str, str]] = {}
        self.cookies: list[BrowserCookie] = []
        #: what the browser had after the last page
        self.kept: list[BrowserCookie] = []

    def admit(self, url: str) -> PageOfWall:
        return PageOfWall(self, url)

    def paths(self) -> set[str]:
        """The paths of the site that were asked for."""
        return {url.removeprefix(SITE) for _, url in self.asked if url.startswith(SITE)}


class PageOfWall:
    """The rules for one page."""

    def __init__(self, wall: PageWall, url: str) -> None:
        self.url = url
        self._wall = wall

    def list_cookies(self) -> Sequence[BrowserCookie]:
        return self._wall.cookies

    def keep_cookies(self, cookies: Sequence[BrowserCookie]) -> None:
        self._wall.kept = list(cookies)

    def check_navigation(self, url: str) -> str | None:
        return None if url.startswith(f"{SITE}/") and "/private/" not in url else "outside"

    def check(self, request: BrowserRequest) -> str | None:
        if request.method not in {"GET", "OPTIONS"}:
            return f"method {request.method}"
        if request.url.startswith(f"{SCRIPTS}/") and request.kind in {"script", "unknown"}:
            return None
        return self.check_navigation(request.url)

    async def fetch(self, request: BrowserRequest, budget: PageBudget) -> DecodedAnswer:
        wall, url = self._wall, request.url.partition("#")[0]
        wall.asked.append((request.kind, url))
        wall.headers[url] = request.fields
        page = wall.pages.get(url)
        if page is None:
            return DecodedAnswer(url, 404, (("content-type", "text/plain"),), b"not here")
        if callable(page):
            page = page()
        if isinstance(page, tuple):
            wall.waiting += 1
            try:
                await asyncio.sleep(page[0])
            finally:
                wall.waiting -= 1
            page = page[1]
        if page == UNKNOWN_ROBOTS:
            raise RequestRefused("robots.txt of its host: 503", code=Code.ROBOTS)
        if page == NO_ANSWER:
            raise FetchFailed("not here", code=Code.IO_ERROR)
        if not isinstance(page, DecodedAnswer):
            kind = _TYPES.get(PurePosixPath(urlsplit(url).path).suffix, "text/html; charset=utf-8")
            page = DecodedAnswer(url, 200, (("content-type", kind),), page.encode())
        budget.take(len(page.body))
        return page


class RunningBrowser:
    """A browser on an event loop of its own, for tests that are not asynchronous."""

    def __init__(self, options: Render | None = None, *, max_bytes: int = 4_000_000, seconds: float = 3.0) -> None:
        need_browser()
        self.wall = PageWall()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.browser = Browser(
            options or Render(quiet_ms=150, max_seconds=2.0, pages=4),
            self.wall,
            user_agent="searchcrawl-test",
            timeout_seconds=seconds,
            max_bytes=max_bytes,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self.browser.start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.browser.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine returns or raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def render(self, path: str, html: str, **settings: Any) -> RenderedPage:
        """The page of a path of the site, with this answer."""
        self.wall.pages[SITE + path] = html
        page: RenderedPage = self.run(self.browser.render(SITE + path, **settings))
        return page


def need_browser() -> None:
    """Skips where there is no browser; fails in CI."""
    if shutil.which("chromium-headless-shell") is None:
        assert os.environ.get("CI") != "true", "chromium-headless-shell is not installed"
        pytest.skip("chromium-headless-shell is not installed")
