"""One page in the browser: what it asks for, when it is done, and what it is then (C10, L7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from playwright.async_api import Error, Page, Request, Route

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.render import page_scripts
from searchcrawl.render.options import RenderOptions
from searchcrawl.render.rendered_page import RenderedPage, RenderFailed
from searchcrawl.render.wall import Answer, FetchFailed, Refused, Wall

#: The kinds of resource without which a page has no text; all others are refused.
_NEEDED: Final = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: They describe the bytes that were sent, set what the crawler keeps itself, or have the browser ask for more.
_NOT_PASSED_ON: Final = frozenset({
    "clear-site-data", "connection", "content-disposition", "content-encoding", "content-length",
    "content-security-policy-report-only", "keep-alive", "link", "nel", "refresh", "report-to", "reporting-endpoints",
    "set-cookie", "strict-transport-security", "transfer-encoding",
})  # fmt: skip
#: What a script may say with a request to any host; to the host of its page also other headers, but for those below.
_PASSED_TO_ALL: Final = frozenset({"accept", "accept-language", "origin"})
_KEPT_BACK: Final = frozenset({
    "accept-encoding", "connection", "content-length", "cookie", "host", "if-match", "if-modified-since", "if-none-match",
    "if-range", "if-unmodified-since", "range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip
_MAX_REQUESTS: Final = 500
_MAX_ROUTES: Final = 1000
_MAX_RELOADS: Final = 2
_LOOK_SECONDS: Final = 0.05
#: How long the browser may take for what it does at once, unless a script holds it.
_ANSWER_SECONDS: Final = 5.0
#: The status of a move by a script.
_MOVED: Final = 302


class PageVisit:
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
        self._page = page
        self._url = url
        self._wall = wall
        self._options = options
        self._max_bytes = max_bytes or (1 << 31)
        self._seconds = seconds
        self._answer = answer
        self._failure: RenderFailed | None = None
        self._target: tuple[str, int] | None = None
        self._ended = asyncio.Event()
        self._is_over = False
        self._answering: set[asyncio.Task[Any]] = set()
        self._requests = 0
        self._in_flight = 0
        self._loads = 0
        self._received = 0
        self._refused: Counter[str] = Counter()
        self._routes: dict[str, None] = {}
        self._watch_page()

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
            failure = self._failure or RenderFailed(Code.CONVERSION_LIMIT, _first_line(error))
            raise failure from error
        finally:
            self._give_up_requests()
        if self._failure is not None:
            raise self._failure
        return self._build(text, clock.monotonic() - started)

    def _give_up_requests(self) -> None:
        """Waits for no answer any more: the page is closed next, and nobody reads it."""
        self._is_over = True
        for task in self._answering:
            task.cancel()

    async def handle(self, route: Route, request: Request) -> None:
        """Answers a request of the page, or refuses it."""
        task = asyncio.current_task()
        if self._is_over or task is None:
            # Playwright would wait for an answer for ever if this just returned.
            raise asyncio.CancelledError
        self._answering.add(task)
        try:
            await self._answer_or_refuse(route, request)
        finally:
            self._answering.discard(task)

    async def _answer_or_refuse(self, route: Route, request: Request) -> None:
        self._requests += 1
        refusal = self._find_refusal(request)
        if refusal is not None:
            self._refused[refusal] += 1
            await route.abort("blockedbyclient")
            return
        self._in_flight += 1
        try:
            if request.is_navigation_request() and request.frame == self._page.main_frame:
                await self._navigate(route, request)
            else:
                await self._load(route, request)
        finally:
            self._in_flight -= 1

    def _watch_page(self) -> None:
        page = self._page
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
        page.on("crash", lambda _: self._fail("the page crashed", Code.CONVERSION_LIMIT))
        page.on("close", lambda _: self._fail("the page was closed", Code.CONVERSION_LIMIT))
        page.on("framenavigated", lambda frame: self._note_route(frame.url) if frame == page.main_frame else None)

    def _fail(self, message: str, code: int) -> None:
        if self._failure is None:
            self._failure = RenderFailed(code, message)
        self._ended.set()

    def _note_route(self, url: str) -> None:
        route = _resolve(url)
        if route is None or route == self._url:
            return
        if len(self._routes) < _MAX_ROUTES and urls.origin_of(route) == urls.origin_of(self._url):
            self._routes[route] = None

    def _find_refusal(self, request: Request) -> str | None:
        kind = request.resource_type
        known = _resolve(request.url)
        if known is None:
            return "not an http or https URL"
        if self._requests > _MAX_REQUESTS:
            return f"more than {_MAX_REQUESTS} requests of one page"
        if kind not in _NEEDED or kind in self._options.block:
            return f"kind {kind}"
        if request.method != "GET":
            return f"method {request.method[:20]}"
        if not request.is_navigation_request():
            return self._wall.check_resource(request.url, kind)
        if request.frame == self._page.main_frame:
            return None
        if urls.origin_of(known) != urls.origin_of(self._url):
            return "a frame of another origin"
        return self._wall.check_navigation(request.url)

    async def _navigate(self, route: Route, request: Request) -> None:
        """Answers the page itself; notes where it leads, by a redirect or by a script."""
        known = urls.resolve(request.url)
        if known != self._url:
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
        if self._answer.status in _REDIRECTS and location:
            await self._leave(route, location, self._answer.status)
            return
        await self._fulfil(route, self._answer)

    async def _leave(self, route: Route, url: str, status: int) -> None:
        target = _resolve(url, self._url)
        if target is None:
            self._fail("it redirects to what is no URL", Code.NO_LOCATION)
        elif self._target is None:
            self._target = (target, status)
        self._ended.set()
        await route.abort("aborted")

    async def _load(self, route: Route, request: Request) -> None:
        kind = request.resource_type
        try:
            answer = await self._wall.fetch(request.url, kind, self._choose_headers(request))
        except Refused as error:
            self._refused[str(error)] += 1
            await route.abort("blockedbyclient")
            return
        except FetchFailed:
            await route.abort("failed")
            return
        if kind == "document" and urls.origin_of(answer.url) != urls.origin_of(self._url):
            self._refused["a frame of another origin"] += 1
            await route.abort("blockedbyclient")
            return
        await self._fulfil(route, answer)

    def _choose_headers(self, request: Request) -> dict[str, str]:
        to_itself = urls.origin_of(urls.resolve(request.url)) == urls.origin_of(self._url)
        return {
            name: value
            for name, value in request.headers.items()
            if name in _PASSED_TO_ALL
            or (to_itself and name not in _KEPT_BACK and not name.startswith(("sec-", "proxy-")))
        }

    async def _fulfil(self, route: Route, answer: Answer) -> None:
        self._received += len(answer.body)
        if self._received > 4 * self._max_bytes:
            self._fail(f"more than {4 * self._max_bytes} bytes loaded by one page", Code.CONVERSION_LIMIT)
            await route.abort("failed")
            return
        headers = _join_headers(answer.headers)
        await route.fulfill(status=answer.status, headers=headers, body=answer.body)

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
        """Waits for ``wait_for``, or until the tree is quiet and nothing is on its way; no longer than ``max_seconds``.

        They count from when the first requests of the page were answered: before that it waits for turns.
        """
        loaded: float | None = None
        scrolled = 0
        while not self._ended.is_set():
            is_idle = not self._in_flight
            if loaded is None and is_idle:
                loaded = clock.monotonic()
            if loaded is not None and clock.monotonic() - loaded > self._options.max_seconds:
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
        return is_idle and not self._in_flight and isinstance(quiet, int | float) and quiet >= self._options.quiet_ms

    async def _ask(self, script: str, argument: Any = None) -> Any:
        """What a script in the page answers; an endless one of its own lets it answer never."""
        seconds = max(_ANSWER_SECONDS, self._options.max_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await self._page.evaluate(script, argument)
        except TimeoutError as error:
            raise RenderFailed(Code.TIMEOUT, f"its scripts held the browser for {seconds:g} s") from error

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
        )


def _join_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The headers that a page may see, each once."""
    joined: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower() not in _NOT_PASSED_ON:
            joined.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(values) for name, values in joined.items()}


def _resolve(text: str, base: str | None = None) -> str | None:
    """The identity of a URL; None where it is none of http or https."""
    try:
        return urls.resolve(text, base)
    except InvalidUrl:
        return None


def _first_line(error: Error) -> str:
    return error.message.partition("\n")[0][:300]
