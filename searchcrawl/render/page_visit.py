"""One page in the browser: what it asks for, when it is done, and what it is then (C10, L7)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from playwright.async_api import Error, Page

from searchcrawl import clock, urls
from searchcrawl.codes import REDIRECT_STATUSES, Code
from searchcrawl.render import page_scripts
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, FetchFailed, RequestRefused, resolve
from searchcrawl.render.budget import PageBudget
from searchcrawl.render.crawl_wall import PageRules
from searchcrawl.render.open_page import STAY, OpenPage, Patience, first_line
from searchcrawl.render.rendered_page import RenderedPage, RenderFailed
from searchcrawl.sources.fetch_tables import Render, RenderAction

_MAX_ROUTES: Final = 1000
_MAX_RELOADS: Final = 2
_LOOK_SECONDS: Final = 0.05
#: The status of a move by a script.
_MOVED: Final = 302
#: Has the browser send no form of a page or a frame (CSP).
NO_FORMS: Final = ("content-security-policy", "form-action 'none'")
#: The crawl has decided about these of the page itself.
_NOT_OF_PAGE: Final = frozenset({"content-disposition", "refresh"})


class PageVisit(OpenPage):
    """Renders one URL in one page of the browser; used once, on the event loop.

    A page that goes elsewhere is not followed: its redirect is what was seen, and the crawl decides about it as about
    any other. ``answer`` is the one of ``wall.url``, where it is known already; ``seconds`` is how long all of it may take,
    with the turns that its requests wait for. With ``hash_routes`` a fragment that is a route is part of the URLs that the
    page gives to the history.
    """

    def __init__(
        self,
        page: Page,
        *,
        wall: PageRules,
        options: Render,
        budget: PageBudget,
        max_bytes: int,
        seconds: float,
        hash_routes: bool = False,
        answer: DecodedAnswer | None = None,
    ) -> None:
        super().__init__(page, options=options, budget=budget)
        self._url = wall.url
        self._wall = wall
        self._max_bytes = max_bytes or (1 << 31)
        self._seconds = seconds
        self._hash_routes = hash_routes
        self._answer = answer
        self._target: tuple[str, int] | None = None
        self._moves = False
        #: whether it is there: where it goes from then on is a link of it
        self._is_there = False
        self._loads = 0
        self._lost_login = False
        self._gave_up: str | None = None
        self._routes: dict[str, None] = {}
        page.on("framenavigated", lambda frame: self._note_route(frame.url) if frame == page.main_frame else None)

    async def render(self) -> RenderedPage:
        """What became of the page; raises RenderFailed."""
        started = clock.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                await self._open()
                text = "" if self._target is not None else await self._read_when_done()
        except RenderFailed as error:
            # What went wrong first is why the rest did.
            raise self._failure or error from error
        except TimeoutError as error:
            failure = self._failure or RenderFailed(Code.TIMEOUT, f"not done within {self._seconds:g} s")
            raise failure from error
        except Error as error:
            failure = self._failure or RenderFailed(Code.CONVERSION_LIMIT, first_line(error))
            raise failure from error
        finally:
            self._give_up_requests()
        if self._failure is not None:
            raise self._failure
        return self._build(text, clock.monotonic() - started)

    def _note_route(self, url: str) -> None:
        route = resolve(url, routes=self._hash_routes)
        if route is None or route == self._url:
            return
        if urls.origin_of(route) == urls.origin_of(self._url):
            self._add_route(route)

    def _add_route(self, route: str) -> None:
        if len(self._routes) < _MAX_ROUTES:
            self._routes[route] = None

    def _note_move(self, url: str) -> None:
        if url == urls.without_route(self._url):
            return
        if self._is_there:
            self._add_route(url)
            return
        self._moves = self._moves or self._target is None
        self._leave(url, _MOVED)

    def _find_refusal(self, request: BrowserRequest, *, is_page: bool) -> str | None:
        if not is_page:
            return self._wall.check(request)
        return None if request.method == "GET" else f"method {request.method[:20]}"

    async def _answer_page(self, request: BrowserRequest) -> DecodedAnswer:
        """Answers the page itself; notes where it leads, by a redirect or by a script."""
        if resolve(request.url) != urls.without_route(self._url):
            # Where it goes is told by ``_note_move``.
            return STAY
        if self._is_there:
            # A click has it loaded again.
            return STAY
        self._loads += 1
        if self._loads > 1 + _MAX_RELOADS:
            self._refuse("loads itself again")
            return STAY
        try:
            if self._answer is None:
                self._answer = await self._wall.fetch(request, self._budget)
            else:
                self._budget.take(len(self._answer.body))
        except RequestRefused as error:
            self._fail(str(error), Code.OUTSIDE_BOUNDARY)
            return STAY
        except FetchFailed as error:
            self._budget.check()
            self._fail(str(error), error.code)
            return STAY
        answer = self._answer
        location = dict(answer.headers).get("location")
        if answer.status in REDIRECT_STATUSES and location:
            self._leave(location, answer.status)
            return STAY
        kept = tuple(pair for pair in answer.headers if pair[0].lower() not in _NOT_OF_PAGE)
        return replace(answer, headers=(*kept, NO_FORMS))

    def _leave(self, url: str, status: int) -> None:
        target = resolve(url, self._url)
        if target is None:
            self._fail("it redirects to what is no URL", Code.NO_LOCATION)
        elif self._target is None:
            self._target = (target, status)
        self._ended.set()

    async def _fetch(self, request: BrowserRequest) -> DecodedAnswer:
        answer = await self._wall.fetch(request, self._budget)
        self._lost_login = self._lost_login or answer.lost_login
        return replace(answer, headers=(*answer.headers, NO_FORMS)) if request.is_navigation else answer

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
        """Waits for ``wait_for``, or until the tree is quiet after the last answer; then for what actions and scrolling bring.

        Each wait takes no longer than ``max_seconds``. They count from when the first requests of the page were answered:
        before that it waits for turns.
        """
        if not await self._wait_for_quiet(self._options.wait_for):
            return
        self._is_there = True
        for action in self._options.list_actions(self._url):
            if not await self._act(action):
                return
        await self._scroll(self._options.scroll)

    async def _act(self, action: RenderAction) -> bool:
        """Carries out an action, and waits until the page is done with it; False where the page gave up."""
        if action.action == "scroll":
            return await self._scroll(action.scroll or 0)
        element = self._page.locator(f"css={action.selector}").first
        milliseconds = self._options.max_seconds * 1000
        try:
            if action.action == "wait":
                await element.wait_for(state="visible", timeout=milliseconds)
            else:
                await element.click(timeout=milliseconds)
        except Error as error:
            if self._ended.is_set():
                return False
            self._gave_up = f"render.actions: {action.action} {action.selector}: {first_line(error)}"
            return False
        return await self._wait_for_quiet(None)

    async def _scroll(self, times: int) -> bool:
        for _ in range(times):
            if not await self._ask(page_scripts.SCROLL):
                break
            if not await self._wait_for_quiet(None):
                return False
        return True

    async def _wait_for_quiet(self, wait_for: str | None) -> bool:
        """Waits until the page looks done; False where its time was over or it went elsewhere."""
        patience = Patience(self._options.max_seconds)
        while not self._ended.is_set():
            is_idle = not self._in_flight
            if patience.is_over(is_idle=is_idle):
                self._gave_up = self._describe_missing(wait_for)
                return self._gave_up is None
            if await self._looks_done(is_idle, wait_for):
                return True
            await asyncio.sleep(_LOOK_SECONDS)
        return False

    def _describe_missing(self, wait_for: str | None) -> str | None:
        """What the page still waits for once its time is over; None where it only goes on changing."""
        seconds = f"{self._options.max_seconds:g} s (render.max_seconds)"
        if wait_for is not None:
            return f"no element of render.wait_for ({wait_for}) within {seconds}"
        waiting = next(iter(self._in_flight.values()), None)
        return None if waiting is None else f"no answer of {urls.without_query(waiting.url)[:300]} within {seconds}"

    async def _looks_done(self, is_idle: bool, wait_for: str | None) -> bool:
        quiet = await self._ask_quiet_ms()
        if quiet is None:
            return False
        if wait_for is not None:
            return await self._page.query_selector(wait_for) is not None
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
            received_bytes=self._budget.received,
            refused=dict(self._refused),
            lost_login=self._lost_login,
            body=b"" if answer is None else answer.body,
            parts=self._list_parts(),
            moves=self._moves,
            gave_up=self._gave_up,
        )
