"""The browser of one source: started once, renewed before it has grown too large, replaced when it died (C10, X-O7).

What Playwright writes of a page for its viewer is kept without what lets somebody in (X-N7, X-N10).
"""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, Playwright, StorageState, async_playwright

from searchcrawl.codes import Code
from searchcrawl.render import page_scripts
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer
from searchcrawl.render.budget import PageBudget, SharedBudget
from searchcrawl.render.chromium import ChromiumFiles, RefusingProxy, explain_failure, kill_browser, list_flags
from searchcrawl.render.crawl_wall import PageRules, Wall
from searchcrawl.render.login_steps import BrowserCookie, LoginEnd, LoginSteps, describe_cookie, list_cookies
from searchcrawl.render.login_visit import LoginVisit
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.open_page import OpenPage
from searchcrawl.render.page_port import Authority, PagePort
from searchcrawl.render.page_visit import PageVisit
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderedPage, RenderFailed
from searchcrawl.sources.fetch_tables import Render

CLOSE_SECONDS: Final = 3.0


@dataclass(eq=False, slots=True)
class Instance:
    """One process of the browser."""

    files: ChromiumFiles
    browser: Chromium
    rendered: int = 0
    under_way: int = 0
    is_retired: bool = False


class PlaceOfPage:
    """A page with a context and a port of the proxy of its own, so each request that comes there is of it alone.

    ``visit`` answers them; before it is set, and after ``close``, there is no answer.
    """

    def __init__(self, instance: Instance, authority: Authority) -> None:
        self.visit: OpenPage | None = None
        self._browser = instance.browser
        users = {os.geteuid(), instance.files.user_id}
        self._port = PagePort(authority, self._answer, users=users, note_refused=self._note_refused)
        self._context: BrowserContext | None = None

    async def open(self, user_agent: str, cookies: Sequence[BrowserCookie], state: StorageState | None) -> Page:
        """An empty page that has ``cookies``, and what a login left besides; raises Playwright's Error and OSError."""
        port = await self._port.open()
        self._context = context = await self._browser.new_context(
            accept_downloads=False,
            service_workers="block",
            user_agent=user_agent,
            bypass_csp=False,
            storage_state=state,
            proxy={"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"},
        )
        context.on("page", lambda page: asyncio.ensure_future(_close_stranger(page)))
        if cookies:
            given: list[Any] = [describe_cookie(cookie) for cookie in cookies]
            await context.add_cookies(given)
        await context.add_init_script(page_scripts.HIDE)
        return await context.new_page()

    async def close(self) -> None:
        """Ends the page and its connections; raises Playwright's Error where the browser does not."""
        self.visit = None
        try:
            if self._context is not None:
                await self._context.close()
        finally:
            await self._port.close()

    async def _answer(self, request: BrowserRequest) -> DecodedAnswer | None:
        return None if self.visit is None else await self.visit.answer(request)

    def _note_refused(self, reason: str) -> None:
        if self.visit is not None:
            self.visit.note_refused(reason)


async def _close_stranger(page: Page) -> None:
    """Closes a page that a page has opened."""
    with suppress(Error):
        if await page.opener() is not None:
            await page.close()


async def end_instance(instance: Instance) -> None:
    """Ends the process of a browser, and all that it started."""
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await instance.browser.close()
    await asyncio.to_thread(kill_browser, instance.files)


#: What a browser may have rendered, or hold of memory, before it is renewed.
_MAX_PAGES: Final = 500
_MAX_MEMORY_BYTES: Final = 1 << 30
_MEASURED_EVERY: Final = 20
_START_SECONDS: Final = 30.0
#: How long a page may wait for the turns of its requests, beside the time of one answer.
_PATIENCE: Final = 4


class _Lost(Exception):
    """The browser or its driver died while a page was open, which need not be to blame."""

    def __init__(self, failure: RenderFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Browser:
    """Renders pages in Chromium, ``options.pages`` at once; for the event loop.

    Each page sends its requests to a port of its own of a proxy, which asks ``wall`` and has the crawl send them; all else
    reaches a proxy that refuses everything. ``max_bytes`` bounds the document; ``timeout_seconds`` is that of one answer.
    """

    def __init__(
        self,
        options: Render,
        wall: Wall,
        *,
        user_agent: str,
        timeout_seconds: float,
        max_bytes: int,
        hash_routes: bool = False,
        executable: str | None = None,
    ) -> None:
        self._options = options
        self._wall = wall
        self._user_agent = user_agent
        self._seconds = _PATIENCE * timeout_seconds + options.max_seconds * (1 + len(options.actions))
        self._max_bytes = max_bytes
        self._hash_routes = hash_routes
        self._executable = executable
        self._places = asyncio.Semaphore(options.pages)
        self._starting = asyncio.Lock()
        self._second_tries = asyncio.Lock()
        self._proxy = RefusingProxy()
        self._proxy_port: int | None = None
        self._authority = Authority()
        self._budget = SharedBudget(options.max_page_bytes)
        #: what the last login left beside the cookies of its origins
        self._state: StorageState | None = None
        self._playwright: Playwright | None = None
        self._instance: Instance | None = None
        self._closing: set[asyncio.Future[None]] = set()

    async def start(self) -> None:
        """Starts the browser; raises BrowserUnavailable."""
        self._instance = await self._launch()

    async def close(self) -> None:
        """Ends the browser and all that it started."""
        instance, self._instance = self._instance, None
        if instance is not None:
            self._retire(instance)
        if self._closing:
            await asyncio.wait(self._closing)
        await self._stop_driver()
        await self._proxy.close()
        self._proxy_port = None

    async def render(self, url: str, *, answer: DecodedAnswer | None = None, trace: Path | None = None) -> RenderedPage:
        """The page of ``url``, an identity; raises RenderFailed, and BrowserUnavailable where no other browser can be started.

        ``answer`` is the answer of ``url``, where it is known: then it is not requested again. ``trace`` is a file for
        Playwright's trace of all that the page did.
        """
        try:
            return await self._render_once(url, answer, trace)
        except _Lost:
            # Another page may have ended the browser: each of those that were open is tried once more, one by one.
            async with self._second_tries:
                try:
                    return await self._render_once(url, answer, trace)
                except _Lost as lost:
                    raise lost.failure from lost

    async def _render_once(self, url: str, answer: DecodedAnswer | None, trace: Path | None) -> RenderedPage:
        wall = self._wall.admit(url)
        async with self._places, self._take() as instance:
            try:
                return await self._visit(instance, wall, answer, trace)
            except RenderFailed as error:
                if instance.browser.is_connected() and await self._driver_answers():
                    raise
                self._give_up(instance)
                raise _Lost(error) from error

    async def _visit(
        self, instance: Instance, wall: PageRules, answer: DecodedAnswer | None, trace: Path | None
    ) -> RenderedPage:
        cookies = wall.list_cookies()
        # Who has no cookies here has nothing of a login.
        state = self._state if cookies else None
        async with self._open_page(instance, cookies, state) as (place, page, budget):
            place.visit = visit = PageVisit(
                page,
                wall=wall,
                options=self._options,
                budget=budget,
                max_bytes=self._max_bytes,
                seconds=self._seconds,
                hash_routes=self._hash_routes,
                answer=answer,
            )
            if trace is None:
                rendered = await visit.render()
                if cookies and not rendered.lost_login:
                    await _keep_cookies(page.context, wall)
                return rendered
            await page.context.tracing.start(screenshots=True, snapshots=True)
            try:
                return await visit.render()
            finally:
                await page.context.tracing.stop(path=trace)
                await asyncio.to_thread(clean_trace, trace)

    async def log_in(self, login: LoginSteps, wall: LoginWall) -> LoginEnd:
        """Carries out a login in a page that has no cookies; all later pages have what it left.

        Raises StepFailed, RenderFailed and BrowserUnavailable.
        """
        self._state = None
        async with self._take() as instance, self._open_page(instance, (), None) as (place, page, budget):
            seconds = self._seconds * (1 + len(login.steps))
            visit = LoginVisit(page, login, wall=wall, options=self._options, budget=budget, seconds=seconds)
            place.visit = visit
            end = await visit.carry_out()
            self._state = await _read_state(page.context, wall)
        return end

    @asynccontextmanager
    async def _take(self) -> AsyncIterator[Instance]:
        """The browser of today, kept until the page is done."""
        async with self._starting:
            instance = await self._renew_if_needed()
        instance.under_way += 1
        instance.rendered += 1
        try:
            yield instance
        finally:
            instance.under_way -= 1
            if instance.is_retired and not instance.under_way:
                self._end_later(instance)

    async def _renew_if_needed(self) -> Instance:
        instance = self._instance
        if instance is not None and await self._is_usable(instance):
            return instance
        if instance is not None:
            self._retire(instance)
        self._instance = None
        self._instance = await self._launch()
        return self._instance

    async def _is_usable(self, instance: Instance) -> bool:
        if not instance.browser.is_connected() or instance.rendered >= _MAX_PAGES:
            return False
        if instance.rendered % _MEASURED_EVERY:
            return True
        return await asyncio.to_thread(instance.files.measure_memory) <= _MAX_MEMORY_BYTES

    @asynccontextmanager
    async def _open_page(
        self, instance: Instance, cookies: Sequence[BrowserCookie], state: StorageState | None
    ) -> AsyncIterator[tuple[PlaceOfPage, Page, PageBudget]]:
        place = PlaceOfPage(instance, self._authority)
        budget = self._budget.open()
        try:
            try:
                async with asyncio.timeout(_START_SECONDS):
                    page = await place.open(self._user_agent, cookies, state)
            except (Error, TimeoutError, OSError) as error:
                self._give_up(instance)
                raise RenderFailed(Code.IO_ERROR, "the browser opens no page") from error
            yield place, page, budget
        finally:
            budget.close()
            await self._close_page(instance, place)

    async def _close_page(self, instance: Instance, place: PlaceOfPage) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await place.close()
        except (Error, TimeoutError):
            # It does not end what it runs: its process is ended with the browser.
            self._give_up(instance)

    def _give_up(self, instance: Instance) -> None:
        """Takes another browser for the next page; those under way in this one may end."""
        if self._instance is instance:
            self._instance = None
        self._retire(instance)

    def _retire(self, instance: Instance) -> None:
        if not instance.is_retired:
            instance.is_retired = True
            if not instance.under_way:
                self._end_later(instance)

    def _end_later(self, instance: Instance) -> None:
        ending = asyncio.ensure_future(end_instance(instance))
        self._closing.add(ending)
        ending.add_done_callback(self._closing.discard)

    async def _launch(self) -> Instance:
        files = ChromiumFiles(self._executable)
        try:
            playwright = await self._get_driver()
            if self._proxy_port is None:
                self._proxy_port = await self._proxy.open()
            async with asyncio.timeout(_START_SECONDS):
                browser = await playwright.chromium.launch(
                    executable_path=files.script,
                    args=list_flags(self._proxy_port, self._user_agent, self._authority.key_digest),
                    chromium_sandbox=True,
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=_START_SECONDS * 1000,
                )
                return Instance(files, browser)
        except (Error, TimeoutError, OSError) as error:
            await asyncio.to_thread(kill_browser, files)
            await self._stop_driver()
            raise BrowserUnavailable(explain_failure(str(error) or type(error).__name__)) from error

    async def _get_driver(self) -> Playwright:
        if self._playwright is not None and not await self._driver_answers():
            await self._stop_driver()
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        return self._playwright

    async def _driver_answers(self) -> bool:
        """Whether the process that drives the browsers is alive."""
        if self._playwright is None:
            return False
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                asked = await self._playwright.request.new_context()
                await asked.dispose()
        except (Error, TimeoutError):
            return False
        return True

    async def _stop_driver(self) -> None:
        driver, self._playwright = self._playwright, None
        if driver is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await driver.stop()


async def _keep_cookies(context: BrowserContext, wall: PageRules) -> None:
    """Gives the crawl the cookies that a page has at last; a browser that does not say them any more has none to give."""
    with suppress(Error, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            wall.keep_cookies(await list_cookies(context))


async def _read_state(context: BrowserContext, wall: LoginWall) -> StorageState:
    """What later pages have of a login beside the cookies of its origins, which the crawl keeps and gives to each page."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            state = await context.storage_state()
    except (Error, TimeoutError) as error:
        raise RenderFailed(Code.IO_ERROR, "the browser does not say what the login left") from error
    state["cookies"] = [cookie for cookie in state["cookies"] if not wall.has_host(cookie["domain"])]
    return state


_SECRET: Final = frozenset({"authorization", "cookie", "proxy-authorization", "set-cookie"})


def clean_trace(file: Path) -> None:
    """Takes cookies and credentials out of the requests in a trace; raises OSError and BadZipFile."""
    cleaned = file.with_name(f".{file.name}.part")
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(cleaned, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename.endswith(".network"):
                values = [_clean_value(json.loads(line)) for line in data.splitlines() if line]
                data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
            target.writestr(entry, data)
    cleaned.replace(file)


def _clean_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean_value(each) for each in value if not _is_secret(each)]
    if isinstance(value, dict):
        return {key: [] if key == "cookies" else _clean_value(each) for key, each in value.items()}
    return value


def _is_secret(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("name", "")).lower() in _SECRET
