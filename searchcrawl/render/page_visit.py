"""One page in the browser: what it asks for, when it is done, and what it is then (C10, L7)."""

from __future__ import annotations

import asyncio
from typing import Final

from playwright.async_api import Error, Page, Request, Route

from searchcrawl import clock, urls
from searchcrawl.codes import REDIRECT_STATUSES, Code, facts_of, is_retried
from searchcrawl.render import page_scripts
from searchcrawl.render.open_page import OpenPage, Patience, choose_headers, first_line
from searchcrawl.render.options import RenderOptions
from searchcrawl.render.rendered_page import FailedPart, RenderedPage, RenderFailed
from searchcrawl.render.wall import Answer, FetchFailed, Refused, Wall, resolve

_MAX_ROUTES: Final = 1000
_MAX_RELOADS: Final = 2
_LOOK_SECONDS: Final = 0.05
#: The kinds of resource that write the text of a page.
_WRITING: Final = frozenset({"script", "xhr", "fetch"})
#: The status of a move by a script.
_MOVED: Final = 302


class PageVisit(OpenPage):
    """Renders one URL in one page of the browser; used once, on the event loop.

    A page that goes elsewhere is not followed: its redirect is what was seen, and the crawl decides about it as about
    any other. ``answer`` is the one of ``url``, where it is known already; ``seconds`` is how long all of it may take,
    with the turns that its requests wait for.
    """

    def __init__(
        self,
        page: Page,
        url: str,
        *,
        wall: Wall,
        options: RenderOptions,
        max_bytes: int,
        seconds: float,
        answer: Answer | None = None,
    ) -> None:
        super().__init__(page, options=options)
        self._url = url
        self._wall = wall
        self._max_bytes = max_bytes or (1 << 31)
        self._seconds = seconds
        self._answer = answer
        self._target: tuple[str, int] | None = None
        self._loads = 0
        self._lost_login = False
        self._failed: FailedPart | None = None
        self._routes: dict[str, None] = {}
        page.on("framenavigated", lambda frame: self._note_route(frame.url) if frame == page.main_frame else None)

    async def render(self) -> RenderedPage:
        """What became of the page; raises RenderFailed."""
        started = clock.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                await self._open()
                text = "" if self._target is not None else await self._read_when_done()
        except TimeoutError as error:
            raise RenderFailed(Code.TIMEOUT, f"not done within {self._seconds:g} s") from error
        except Error as error:
            failure = self._failure or RenderFailed(Code.CONVERSION_LIMIT, first_line(error))
            raise failure from error
        finally:
            self._give_up_requests()
        if self._failure is not None:
            raise self._failure
        return self._build(text, clock.monotonic() - started)

    def _note_route(self, url: str) -> None:
        route = resolve(url, routes=self._options.hash_routes)
        if route is None or route == self._url:
            return
        if len(self._routes) < _MAX_ROUTES and urls.origin_of(route) == urls.origin_of(self._url):
            self._routes[route] = None

    def _find_refusal(self, request: Request) -> str | None:
        if request.method != "GET":
            return f"method {request.method[:20]}"
        if not request.is_navigation_request():
            return self._wall.check_resource(request.url, request.resource_type)
        if self._is_page_itself(request):
            return None
        if urls.origin_of(urls.resolve(request.url)) != urls.origin_of(self._url):
            return "a frame of another origin"
        return self._wall.check_navigation(request.url)

    async def _navigate(self, route: Route, request: Request) -> None:
        """Answers the page itself; notes where it leads, by a redirect or by a script."""
        known = urls.resolve(request.url)
        # The browser sends no fragment, and a page that changes its own stays where it is.
        if known != urls.without_route(self._url):
            await self._leave(route, known, _MOVED)
            return
        self._loads += 1
        if self._loads > 1 + _MAX_RELOADS:
            self._refused["loads itself again"] += 1
            await route.abort("aborted")
            return
        try:
            if self._answer is None:
                self._answer = await self._wall.fetch(self._url, "document", {})
        except Refused as error:
            self._fail(str(error), Code.OUTSIDE_BOUNDARY)
            await route.abort("blockedbyclient")
            return
        except FetchFailed as error:
            self._fail(str(error), error.code)
            await route.abort("failed")
            return
        location = dict(self._answer.headers).get("location")
        if self._answer.status in REDIRECT_STATUSES and location:
            await self._leave(route, location, self._answer.status)
            return
        await self._fulfil(route, self._answer)

    async def _leave(self, route: Route, url: str, status: int) -> None:
        target = resolve(url, self._url)
        if target is None:
            self._fail("it redirects to what is no URL", Code.NO_LOCATION)
        elif self._target is None:
            self._target = (target, status)
        self._ended.set()
        await route.abort("aborted")

    async def _load(self, route: Route, request: Request) -> None:
        kind = request.resource_type
        try:
            answer = await self._wall.fetch(
                request.url, kind, choose_headers(request, all_of_them=self._is_to_itself(request))
            )
        except Refused as error:
            if error.code is not None:
                self._note_failed(request, error.code)
            await self._refuse(route, str(error))
            return
        except FetchFailed as error:
            if facts_of(error.code).retried:
                self._note_failed(request, error.code)
            await route.abort("failed")
            return
        if is_retried(answer.status):
            self._note_failed(request, answer.status)
        self._lost_login = self._lost_login or answer.lost_login
        if kind == "document" and urls.origin_of(answer.url) != urls.origin_of(self._url):
            await self._refuse(route, "a frame of another origin")
            return
        await self._fulfil(route, answer)

    def _note_failed(self, request: Request, code: int) -> None:
        if request.resource_type in _WRITING and (self._failed is None or self._is_to_itself(request)):
            self._failed = FailedPart(request.url, code)

    def _is_to_itself(self, request: Request) -> bool:
        return urls.origin_of(urls.resolve(request.url)) == urls.origin_of(self._url)

    async def _open(self) -> None:
        opening = asyncio.ensure_future(self._page.goto(self._url, wait_until="commit", timeout=0))
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((opening, ending), return_when=asyncio.FIRST_COMPLETED)
            if self._failure is not None:
                raise self._failure
            if self._target is None:
                await opening
        finally:
            ending.cancel()
            opening.cancel()
            await asyncio.gather(opening, ending, return_exceptions=True)

    async def _read_when_done(self) -> str:
        await self._wait_until_done()
        if self._target is not None or self._failure is not None:
            return ""
        text = await self._ask(page_scripts.READ, self._max_bytes)
        if not isinstance(text, str):
            raise RenderFailed(Code.CONVERSION_LIMIT, f"more than {self._max_bytes} characters rendered")
        return text

    async def _wait_until_done(self) -> None:
        """Waits for ``wait_for``, or until the tree is quiet after the last answer; no longer than ``max_seconds``.

        They count from when the first requests of the page were answered: before that it waits for turns.
        """
        patience = Patience(self._options.max_seconds)
        scrolled = 0
        while not self._ended.is_set():
            is_idle = not self._in_flight
            if patience.is_over(is_idle=is_idle):
                return
            if await self._looks_done(is_idle):
                if scrolled >= self._options.scroll or not await self._ask(page_scripts.SCROLL):
                    return
                scrolled += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _looks_done(self, is_idle: bool) -> bool:
        quiet = await self._ask(page_scripts.QUIET_MS)
        if quiet is None:
            await self._ask(page_scripts.WATCH)
            return False
        if self._options.wait_for is not None:
            return await self._page.query_selector(self._options.wait_for) is not None
        return is_idle and self._has_been_quiet(quiet)

    def _build(self, text: str, seconds: float) -> RenderedPage:
        answer = self._answer
        return RenderedPage(
            url=self._url if self._target is None else self._target[0],
            status=200 if answer is None else answer.status,
            headers=() if answer is None else answer.headers,
            html=text,
            routes=tuple(self._routes),
            redirects=() if self._target is None else ((self._url, self._target[1]),),
            seconds=seconds,
            received_bytes=self._received,
            refused=dict(self._refused),
            lost_login=self._lost_login,
            body=b"" if answer is None else answer.body,
            failed=self._failed,
        )
