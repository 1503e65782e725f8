"""One page in the browser as the crawl sees it: its requests come to a proxy of the crawl, and its scripts are asked (L7, L13)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, Final

from playwright.async_api import Error, Page, Request

from searchcrawl import clock
from searchcrawl.codes import REDIRECT_STATUSES, Code
from searchcrawl.render import page_scripts
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, FetchFailed, RequestRefused, resolve
from searchcrawl.render.budget import MAX_IN_FLIGHT, BudgetSpent, PageBudget
from searchcrawl.render.rendered_page import RenderFailed
from searchcrawl.render.resource_cache import SHARED_TYPES
from searchcrawl.rules.rendering import Part
from searchcrawl.sources.fetch_tables import Render

#: The kinds without which a page has no text; all others are refused. ``unknown`` is a script or data.
_NEEDED: Final = frozenset({"document", "frame", "script", "stylesheet", "data", "unknown"})
_PART_KINDS: Final = {"document": "frame", "frame": "frame", "script": "script", "stylesheet": "style", "data": "data"}
_FIRST_FAILURE: Final = 400
#: How Chromium says that a script stopped a request, or may not read its answer (CORS); and of what scripts ask for.
_NOT_GIVEN: Final = frozenset({"net::ERR_ABORTED", "net::ERR_FAILED"})
_DATA_TYPES: Final = frozenset({"fetch", "xhr"})
#: How long the browser may take for what it does at once, unless a script holds it.
_ANSWER_SECONDS: Final = 5.0
#: What Playwright says where a page was replaced while it was asked, and how often it is asked then.
_REPLACED: Final = "Execution context was destroyed"
_MOST_ASKED: Final = 4
#: How long a request waits for word of what frame it is of; one of a window that the page opened gets none.
_TOLD_SECONDS: Final = 2.0
_MAX_NAVIGATIONS: Final = 1000
#: What the browser asks the proxy for; others are made in the page itself, and may have no end.
_SENT: Final = ("http://", "https://")
#: A page that takes so long to answer is given so many times that until it counts as quiet: its scripts wait as well.
_LAGS: Final = 5
#: What a frame or a page that stays as it is is answered: Chromium goes nowhere then.
STAY: Final = DecodedAnswer("", 204, (), b"")


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

    def __init__(self, page: Page, *, options: Render, budget: PageBudget) -> None:
        self._page = page
        self._options = options
        self._budget = budget
        self._failure: RenderFailed | None = None
        self._ended = asyncio.Event()
        self._is_over = False
        self._has_begun = False
        self._places = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._in_flight: dict[int, BrowserRequest] = {}
        #: when the last answer was given, and when the browser had it
        self._answered = clock.monotonic()
        #: what the browser waits for, with what it has not sent yet
        self._awaited: set[Request] = set()
        #: how long the page took of late to say anything, in seconds
        self._lag = 0.0
        self._refused: Counter[str] = Counter()
        #: as many as requests at most
        self._parts: list[Part] = []
        self._not_given: Counter[str] = Counter()
        #: by URL, whether a navigation is that of the page itself, and not of a frame; the browser tells it beside the request
        self._navigations: dict[str, bool] = {}
        self._told = asyncio.Event()
        page.on("request", self._note_told)
        page.on("requestfinished", self._note_done)
        page.on("requestfailed", self._note_failed)
        page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
        page.on("crash", lambda _: self._fail("the page crashed", Code.CONVERSION_LIMIT))
        page.on("close", lambda _: self._fail("the page was closed", Code.CONVERSION_LIMIT))

    async def answer(self, request: BrowserRequest) -> DecodedAnswer | None:
        """What becomes of a request of the page; None is a network error to it."""
        if self._is_over:
            return None
        number = id(request)
        self._in_flight[number] = request
        try:
            self._budget.check()
            return await self._answer_or_refuse(request)
        except BudgetSpent as error:
            self._fail(str(error), Code.CONVERSION_LIMIT)
            return None
        finally:
            del self._in_flight[number]
            self._answered = clock.monotonic()

    def note_refused(self, reason: str) -> None:
        """Counts what was refused before it was a request."""
        self._refused[reason] += 1

    @abstractmethod
    def _find_refusal(self, request: BrowserRequest, *, is_page: bool) -> str | None:
        """Why the page may not have it; None if it may."""

    @abstractmethod
    async def _answer_page(self, request: BrowserRequest) -> DecodedAnswer:
        """Answers a request for the page itself; raises RequestRefused and FetchFailed."""

    @abstractmethod
    async def _fetch(self, request: BrowserRequest) -> DecodedAnswer:
        """Answers a request for what the page loads; raises RequestRefused and FetchFailed."""

    async def _answer_or_refuse(self, request: BrowserRequest) -> DecodedAnswer | None:
        is_page = await self._is_page_itself(request)
        if is_page is None:
            self._refuse("a window of its own")
            return STAY
        refusal = self._find_refusal_of_kind(request) or self._find_refusal(request, is_page=is_page)
        if refusal is not None:
            self._refuse(refusal)
            return STAY if is_page else None
        self._budget.count_request()
        if is_page:
            return await self._answer_page(request)
        async with self._places:
            return await self._load(request)

    async def _load(self, request: BrowserRequest) -> DecodedAnswer | None:
        try:
            answer = await self._fetch(request)
        except RequestRefused as error:
            if error.code is not None:
                self._note_part(request, error.code)
            self._refuse(str(error))
            return None
        except FetchFailed as error:
            self._budget.check()
            self._note_part(request, error.code)
            return None
        fields = dict(answer.headers)
        media_type = fields.get("content-type", "").partition(";")[0].strip().lower()[:100]
        leads_on = answer.status in REDIRECT_STATUSES and "location" in fields
        is_empty = not answer.body and request.method != "HEAD" and not leads_on
        self._note_part(request, answer.status, media_type, is_empty=is_empty)
        return answer

    def _note_part(self, request: BrowserRequest, code: int, media_type: str = "", *, is_empty: bool = False) -> None:
        if request.is_preflight and code < _FIRST_FAILURE:
            return
        # On plain http a type alone tells scripts from data.
        guessed = "script" if media_type in SHARED_TYPES and not request.is_preflight else "data"
        kind = _PART_KINDS.get(request.kind, guessed)
        self._parts.append(Part(request.url.partition("#")[0], kind, int(code), media_type, is_empty))

    def _note_failed(self, request: Request) -> None:
        """Notes data that the page itself did not wait for, or was not given."""
        self._note_done(request)
        if request.failure in _NOT_GIVEN and request.resource_type in _DATA_TYPES:
            self._not_given[request.url.partition("#")[0]] += 1

    def _note_done(self, request: Request) -> None:
        self._awaited.discard(request)
        self._answered = clock.monotonic()

    def _list_parts(self) -> tuple[Part, ...]:
        """The parts in their order; of data that the page never got, only that."""
        asked = Counter(part.url for part in self._parts)
        lost = {url for url, count in self._not_given.items() if count >= asked[url]}
        kept = [part for part in self._parts if part.url not in lost or part.code >= _FIRST_FAILURE]
        failed = {part.url for part in kept}
        return (*kept, *(Part(url, "data", 0) for url in lost if url not in failed))

    def _find_refusal_of_kind(self, request: BrowserRequest) -> str | None:
        if resolve(request.url) is None:
            return "not an http or https URL"
        kind = request.kind
        return f"kind {kind}" if kind not in _NEEDED or kind in self._options.block else None

    def _refuse(self, reason: str) -> None:
        self._refused[reason] += 1
        self._budget.count_refused()

    async def _is_page_itself(self, request: BrowserRequest) -> bool | None:
        """Whether a request is for the page itself; None where it is for a window that the page has opened."""
        if request.kind != "document":
            return False
        if not self._has_begun:
            self._has_begun = True
            return True
        url = resolve(request.url)
        try:
            async with asyncio.timeout(_TOLD_SECONDS):
                while url not in self._navigations:
                    await self._told.wait()
        except TimeoutError:
            return None
        return self._navigations[url]

    def _note_told(self, request: Request) -> None:
        if request.url.startswith(_SENT):
            self._awaited.add(request)
        try:
            if not request.is_navigation_request():
                return
            is_page = request.frame == self._page.main_frame
        except Error:
            # Its frame is not there yet, or not any more.
            return
        url = resolve(request.url)
        if url is None or (len(self._navigations) >= _MAX_NAVIGATIONS and url not in self._navigations):
            return
        self._navigations[url] = is_page
        self._told.set()
        self._told = asyncio.Event()
        if is_page:
            self._note_move(url)

    @abstractmethod
    def _note_move(self, url: str) -> None:
        """Is called with each identity that the page itself goes to, the first one too."""

    def _give_up_requests(self) -> None:
        """Waits for no answer any more: the page is closed next, and nobody reads it."""
        self._is_over = True

    def _fail(self, message: str, code: int) -> None:
        if self._failure is None:
            self._failure = RenderFailed(code, message)
        self._ended.set()

    def _has_been_quiet(self, quiet_ms: Any) -> bool:
        """Whether nothing is on its way, and the tree has not changed for long enough, which the page says itself."""
        if self._in_flight or self._awaited or not isinstance(quiet_ms, int | float):
            return False
        # A page that waited for an answer was quiet all the time: it needs a moment to make something of it.
        quiet = min(quiet_ms, 1000 * (clock.monotonic() - self._answered))
        return quiet >= max(self._options.quiet_ms, 1000 * _LAGS * self._lag)

    async def _ask_quiet_ms(self) -> Any:
        """For how long the tree has not changed, as the page says; None where it is watched from now on."""
        begun = clock.monotonic()
        quiet_ms = await self._ask(page_scripts.QUIET_MS)
        self._lag = max(clock.monotonic() - begun, self._lag / 2)
        if quiet_ms is None:
            await self._ask(page_scripts.WATCH)
        return quiet_ms

    async def _ask(self, script: str, argument: Any = None) -> Any:
        """What a script in the page answers; an endless one of its own lets it answer never."""
        seconds = max(_ANSWER_SECONDS, self._options.max_seconds)
        try:
            async with asyncio.timeout(seconds):
                for _ in range(_MOST_ASKED - 1):
                    try:
                        return await self._page.evaluate(script, argument)
                    except Error as error:
                        # The page has loaded itself again meanwhile.
                        if _REPLACED not in error.message:
                            raise
                return await self._page.evaluate(script, argument)
        except TimeoutError as error:
            raise RenderFailed(Code.TIMEOUT, f"its scripts held the browser for {seconds:g} s") from error


def first_line(error: Error) -> str:
    """What the browser says of an error."""
    return error.message.partition("\n")[0][:300]
