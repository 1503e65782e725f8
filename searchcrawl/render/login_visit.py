"""A login in one page of the browser: its steps, one after the other (C10)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from playwright.async_api import Error, Locator, Page

from searchcrawl import urls
from searchcrawl.codes import REDIRECT_STATUSES, Code
from searchcrawl.render import page_scripts
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, FetchFailed, RequestRefused, resolve
from searchcrawl.render.budget import PageBudget
from searchcrawl.render.login_steps import LoginEnd, LoginSteps, StepFailed, list_cookies
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.open_page import STAY, OpenPage, Patience, first_line
from searchcrawl.render.rendered_page import RenderFailed
from searchcrawl.sources.fetch_tables import LoginStep, Render

_LOOK_SECONDS: Final = 0.05
#: Redirects and moves of one login.
_MAX_PAGES: Final = 30
_MAX_NAME_CHARACTERS: Final = 200


class LoginVisit(OpenPage):
    """Carries out the steps of a login; used once, on the event loop.

    Unlike a page that is rendered it follows redirects and moves, sends forms, and begins without a cookie.
    ``seconds`` is how long all of it may take.
    """

    def __init__(
        self,
        page: Page,
        login: LoginSteps,
        *,
        wall: LoginWall,
        options: Render,
        budget: PageBudget,
        seconds: float,
    ) -> None:
        super().__init__(page, options=options, budget=budget)
        self._login = login
        self._wall = wall
        self._seconds = seconds
        self._pages_under_way = 0
        self._pages = 0
        self._status = 0
        #: what the wall refused: where a page led last, else the first part of one
        self._told_refusal = ""
        self._form_url: str | None = None
        self._password_field: str | None = None

    async def carry_out(self) -> LoginEnd:
        """Where the steps have led; raises StepFailed, and RenderFailed where a page cannot be had."""
        login = self._login
        try:
            async with asyncio.timeout(self._seconds):
                await self._go_to(login.url)
                for number, step in enumerate(login.steps, 1):
                    await self._take(step, f"login.steps[{number - 1}] ({step.action} {step.selector})")
                await self._wait_until_quiet()
                return await self._build_end()
        except TimeoutError as error:
            raise RenderFailed(Code.TIMEOUT, f"not logged in within {self._seconds:g} s") from error
        except Error as error:
            failure = self._failure or RenderFailed(Code.CONVERSION_LIMIT, _describe(error))
            raise failure from error
        finally:
            self._give_up_requests()

    async def _go_to(self, url: str) -> None:
        try:
            await self._page.goto(url, wait_until="commit", timeout=0)
        except Error as error:
            self._check_failure()
            if self._told_refusal:
                raise StepFailed("no page is shown", self._status, self._told_refusal) from error
            raise

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _take(self, step: LoginStep, name: str) -> None:
        element = self._page.locator(f"css={step.selector}").first
        await self._wait_for(element, name)
        milliseconds = self._options.max_seconds * 1000
        try:
            if step.action == "fill":
                self._check_origin(name)
                self._wall.note_typing()
                await self._note_password(element)
                await element.fill(step.value or "", timeout=milliseconds)
            elif step.action == "click":
                await element.click(timeout=milliseconds)
        except Error as error:
            self._check_failure()
            covered = "intercepts pointer events" in error.message
            # The rest of its message has the value.
            reason = "another element covers it" if covered else _describe(error)
            raise self._build_failure(name, reason) from error
        except TimeoutError as error:
            raise self._build_failure(name, "a script holds the page") from error

    def _check_origin(self, name: str) -> None:
        """Raises StepFailed where another origin shows the page: what is typed would be its."""
        known = resolve(self._page.url)
        if known is None or not self._wall.is_own(known):
            raise self._build_failure(name, "its page is of an origin that is none of the login")

    def _build_failure(self, name: str, reason: str) -> StepFailed:
        return StepFailed(f"{name}: {reason}", self._status, self._told_refusal)

    async def _wait_for(self, element: Locator, name: str) -> None:
        """Waits until an element is seen and the scripts of its page have run, for ``max_seconds`` from when it was there.

        What is clicked before its script has run does nothing. A page whose scripts never come is used without them.
        """
        patience = Patience(self._options.max_seconds)
        while not (is_seen := await self._is_seen(element)) or not await self._is_parsed():
            self._check_failure()
            if self._has_run_out(patience):
                if is_seen:
                    return
                raise self._build_failure(name, "no such element is seen")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _is_parsed(self) -> bool:
        """Whether the page was read to its end, with the scripts that belong to it; False where none answers."""
        try:
            async with asyncio.timeout(self._options.max_seconds):
                return await self._page.evaluate(page_scripts.IS_PARSED) is True
        except (Error, TimeoutError):
            return False

    def _has_run_out(self, patience: Patience) -> bool:
        return patience.is_over(is_idle=not self._in_flight, is_replaced=self._pages_under_way > 0)

    async def _is_seen(self, element: Locator) -> bool:
        try:
            async with asyncio.timeout(self._options.max_seconds):
                return await element.is_visible()
        except (Error, TimeoutError):
            # Its page is being replaced, or is held by a script.
            return False

    async def _note_password(self, element: Locator) -> None:
        async with asyncio.timeout(self._options.max_seconds):
            name = await element.evaluate(page_scripts.FIELD_NAME)
        if isinstance(name, str) and self._form_url is None:
            is_usable = name.isprintable() and len(name) <= _MAX_NAME_CHARACTERS
            self._form_url, self._password_field = resolve(self._page.url), (name or None) if is_usable else None

    async def _wait_until_quiet(self) -> None:
        patience = Patience(self._options.max_seconds)
        while not self._has_run_out(patience):
            self._check_failure()
            with suppress(Error):
                # Its page may be replaced meanwhile.
                if self._has_been_quiet(await self._ask_quiet_ms()):
                    return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _ask_or_none(self, script: str, argument: Any = None) -> Any:
        try:
            return await self._ask(script, argument)
        except Error:
            # Its page was replaced.
            return None

    async def _build_end(self) -> LoginEnd:
        login = self._login
        shows_check = login.check is not None and await self._shows(login.check)
        if login.check is not None and not shows_check and login.start is not None:
            await self._go_to(login.start)
            await self._wait_until_quiet()
            shows_check = await self._shows(login.check)
        return LoginEnd(
            status=self._status,
            asks_again=await self._ask_or_none(page_scripts.SHOWS_FORM) is True,
            shows_check=shows_check,
            refused=self._told_refusal,
            form_url=self._form_url,
            password_field=self._password_field,
            cookies=await list_cookies(self._page.context, https=self._wall.is_https),
        )

    async def _shows(self, text: str) -> bool:
        return await self._ask_or_none(page_scripts.SHOWS, text) is True

    def _find_refusal(self, request: BrowserRequest, *, is_page: bool) -> str | None:
        refusal = self._wall.check(request)
        if refusal is not None:
            # Whether it was needed shows only by what fails later.
            origin = urls.origin_of(urls.resolve(request.url))
            what = "it led to" if is_page else "it asked for a part of"
            text = self._login.hide(f"; {what} {origin}, refused: {refusal}")
            self._told_refusal = text if is_page else self._told_refusal or text
        return refusal

    def _note_move(self, url: str) -> None:
        """A login goes wherever the wall lets it."""

    async def _answer_page(self, request: BrowserRequest) -> DecodedAnswer:
        self._pages_under_way += 1
        self._pages += 1
        try:
            if self._pages > _MAX_PAGES:
                raise RequestRefused(f"more than {_MAX_PAGES} pages of one login")
            answer = await self._wall.fetch(request, self._budget)
        except RequestRefused as error:
            self._fail(self._login.hide(str(error)), Code.OUTSIDE_BOUNDARY)
            return STAY
        except FetchFailed as error:
            self._fail(self._login.hide(str(error)), error.code)
            return STAY
        finally:
            self._pages_under_way -= 1
        self._status = answer.status
        location = dict(answer.headers).get("location")
        if answer.status in REDIRECT_STATUSES and location is not None and resolve(location, answer.url) is None:
            self._fail("the login redirects to what is no URL", Code.NO_LOCATION)
        return answer

    async def _fetch(self, request: BrowserRequest) -> DecodedAnswer:
        return await self._wall.fetch(request, self._budget)


def _describe(error: Error) -> str:
    """What the browser says of an error, without URLs: a page may have put into one what was typed."""
    return " ".join("…" if "/" in word else word for word in first_line(error).split(" "))
