"""One page in the browser as the crawl sees it: its requests are answered by the crawl, and its scripts are asked (L7)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from playwright.async_api import Error, Page, Request, Route

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.render.options import RenderOptions
from searchcrawl.render.rendered_page import RenderFailed
from searchcrawl.render.wall import Answer, resolve

#: The kinds of resource without which a page has no text; all others are refused.
_NEEDED: Final = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
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
#: How long the browser may take for what it does at once, unless a script holds it.
_ANSWER_SECONDS: Final = 5.0


class Patience:
    """Runs out ``seconds`` after a page was there: before that it waits for turns of its requests."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loaded: float | None = None

    def is_over(self, *, is_idle: bool, is_replaced: bool = False) -> bool:
        """Whether it has run out; asked again and again. With ``is_replaced`` another page is coming, and it begins anew."""
        if is_replaced:
            self._loaded = None
        elif self._loaded is None and is_idle:
            self._loaded = clock.monotonic()
        return self._loaded is not None and clock.monotonic() - self._loaded > self._seconds


class OpenPage(ABC):
    """One page of the browser, whose requests are answered one by one; used once, on the event loop."""

    def __init__(self, page: Page, *, options: RenderOptions) -> None:
        self._page = page
        self._options = options
        self._failure: RenderFailed | None = None
        self._ended = asyncio.Event()
        self._is_over = False
        self._answering: set[asyncio.Task[Any]] = set()
        self._requests = 0
        self._in_flight = 0
        #: when the last answer was given
        self._answered = clock.monotonic()
        self._received = 0
        self._refused: Counter[str] = Counter()
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
        page.on("crash", lambda _: self._fail("the page crashed", Code.CONVERSION_LIMIT))
        page.on("close", lambda _: self._fail("the page was closed", Code.CONVERSION_LIMIT))

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

    @abstractmethod
    def _find_refusal(self, request: Request) -> str | None:
        """Why the page may not have it; None if it may."""

    @abstractmethod
    async def _navigate(self, route: Route, request: Request) -> None:
        """Answers a request for the page itself."""

    @abstractmethod
    async def _load(self, route: Route, request: Request) -> None:
        """Answers a request for what the page loads."""

    async def _answer_or_refuse(self, route: Route, request: Request) -> None:
        self._requests += 1
        refusal = self._find_refusal_of_kind(request) or self._find_refusal(request)
        if refusal is not None:
            await self._refuse(route, refusal)
            return
        self._in_flight += 1
        try:
            if self._is_page_itself(request):
                await self._navigate(route, request)
            else:
                await self._load(route, request)
        finally:
            self._in_flight -= 1
            self._answered = clock.monotonic()

    def _find_refusal_of_kind(self, request: Request) -> str | None:
        kind = request.resource_type
        if resolve(request.url) is None:
            return "not an http or https URL"
        if self._requests > _MAX_REQUESTS:
            return f"more than {_MAX_REQUESTS} requests of one page"
        return f"kind {kind}" if kind not in _NEEDED or kind in self._options.block else None

    def _is_page_itself(self, request: Request) -> bool:
        return request.is_navigation_request() and request.frame == self._page.main_frame

    async def _refuse(self, route: Route, refusal: str) -> None:
        self._refused[refusal] += 1
        await route.abort("blockedbyclient")

    def _give_up_requests(self) -> None:
        """Waits for no answer any more: the page is closed next, and nobody reads it."""
        self._is_over = True
        for task in self._answering:
            task.cancel()

    def _fail(self, message: str, code: int) -> None:
        if self._failure is None:
            self._failure = RenderFailed(code, message)
        self._ended.set()

    def _has_been_quiet(self, quiet_ms: Any) -> bool:
        """Whether nothing is on its way, and the tree has not changed for long enough, which the page says itself."""
        if self._in_flight or not isinstance(quiet_ms, int | float):
            return False
        # A page that waited for an answer was quiet all the time: it needs a moment to make something of it.
        return min(quiet_ms, 1000 * (clock.monotonic() - self._answered)) >= self._options.quiet_ms

    async def _fulfil(self, route: Route, answer: Answer, more: Mapping[str, str] | None = None) -> None:
        self._received += len(answer.body)
        headers = {**_join_headers(answer.headers), **(more or {})}
        await route.fulfill(status=answer.status, headers=headers, body=answer.body)

    async def _ask(self, script: str, argument: Any = None) -> Any:
        """What a script in the page answers; an endless one of its own lets it answer never."""
        seconds = max(_ANSWER_SECONDS, self._options.max_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await self._page.evaluate(script, argument)
        except TimeoutError as error:
            raise RenderFailed(Code.TIMEOUT, f"its scripts held the browser for {seconds:g} s") from error


def choose_headers(request: Request, *, all_of_them: bool) -> dict[str, str]:
    """The headers of a request that are sent; ``all_of_them`` to hosts that may know what scripts say to their own."""
    return {
        name: value
        for name, value in request.headers.items()
        if name in _PASSED_TO_ALL
        or (all_of_them and name not in _KEPT_BACK and not name.startswith(("sec-", "proxy-")))
    }


def _join_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The headers that a page may see, each once."""
    joined: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower() not in _NOT_PASSED_ON:
            joined.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(values) for name, values in joined.items()}


def first_line(error: Error) -> str:
    """What the browser says of an error."""
    return error.message.partition("\n")[0][:300]
