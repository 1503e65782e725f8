"""The browser of one source: started once, renewed before it has grown too large, replaced when it died (C10, X-O7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from playwright.async_api import Browser as Chromium
from playwright.async_api import (
    BrowserContext,
    Error,
    Page,
    Playwright,
    Request,
    Route,
    StorageState,
    async_playwright,
)

from searchcrawl.codes import Code
from searchcrawl.render import page_scripts
from searchcrawl.render.chromium import ChromiumFiles, RefusingProxy, explain_failure, list_flags
from searchcrawl.render.instance import (
    CLOSE_SECONDS,
    Instance,
    answer_request,
    close_stranger,
    end_instance,
    kill_browser,
)
from searchcrawl.render.login_steps import LoginEnd, LoginSteps
from searchcrawl.render.login_visit import LoginVisit
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.options import RenderOptions
from searchcrawl.render.page_visit import PageVisit
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderedPage, RenderFailed
from searchcrawl.render.wall import Answer, Wall

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

    Each request of a page goes through ``wall`` and is sent by the crawl; the browser itself reaches a proxy that refuses
    everything. ``max_bytes`` bounds the document; ``timeout_seconds`` is that of one answer.
    """

    def __init__(
        self,
        options: RenderOptions,
        wall: Wall,
        *,
        user_agent: str,
        timeout_seconds: float,
        max_bytes: int,
        executable: str | None = None,
    ) -> None:
        self._options = options
        self._wall = wall
        self._user_agent = user_agent
        self._seconds = _PATIENCE * timeout_seconds + options.max_seconds
        self._max_bytes = max_bytes
        self._executable = executable
        self._places = asyncio.Semaphore(options.pages)
        self._starting = asyncio.Lock()
        self._second_tries = asyncio.Lock()
        self._proxy = RefusingProxy()
        self._proxy_port: int | None = None
        #: what the last login left: cookies that scripts see, and local storage
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

    async def render(self, url: str, *, answer: Answer | None = None, trace: Path | None = None) -> RenderedPage:
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

    async def _render_once(self, url: str, answer: Answer | None, trace: Path | None) -> RenderedPage:
        async with self._places, self._take() as instance:
            try:
                async with self._open_page(instance) as page:
                    return await self._visit(instance, page, url, answer, trace)
            except RenderFailed as error:
                if instance.browser.is_connected() and await self._driver_answers():
                    raise
                self._give_up(instance)
                raise _Lost(error) from error

    async def _visit(
        self, instance: Instance, page: Page, url: str, answer: Answer | None, trace: Path | None
    ) -> RenderedPage:
        visit = PageVisit(
            page,
            url,
            wall=self._wall,
            options=self._options,
            max_bytes=self._max_bytes,
            seconds=self._seconds,
            answer=answer,
        )
        instance.visits[page] = visit
        if trace is None:
            return await visit.render()
        await instance.context.tracing.start(screenshots=True, snapshots=True)
        try:
            return await visit.render()
        finally:
            await instance.context.tracing.stop(path=trace)

    async def log_in(self, login: LoginSteps, wall: LoginWall) -> LoginEnd:
        """Carries out a login in a browser that has seen no page; all later pages have what it left.

        Raises StepFailed, RenderFailed and BrowserUnavailable.
        """
        async with self._starting:
            instance = await self._take_unused()
            try:
                async with self._open_page(instance) as page:
                    seconds = self._seconds * (1 + len(login.steps))
                    visit = LoginVisit(page, login, wall=wall, options=self._options, seconds=seconds)
                    instance.visits[page] = visit
                    end = await visit.carry_out()
                self._state = await _hide_session(instance.context)
            except BaseException:
                self._retire(instance)
                raise
            self._instance = instance
            return end

    async def _take_unused(self) -> Instance:
        """A browser without anything of a login before; the one of today is retired unless it is that."""
        instance, self._instance = self._instance, None
        if instance is not None:
            if self._state is None and not instance.rendered and instance.browser.is_connected():
                return instance
            self._retire(instance)
        self._state = None
        return await self._launch()

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
    async def _open_page(self, instance: Instance) -> AsyncIterator[Page]:
        try:
            async with asyncio.timeout(_START_SECONDS):
                page = await instance.context.new_page()
        except (Error, TimeoutError) as error:
            self._give_up(instance)
            raise RenderFailed(Code.IO_ERROR, "the browser opens no page") from error
        try:
            yield page
        finally:
            instance.visits.pop(page, None)
            await self._close_page(instance, page)

    async def _close_page(self, instance: Instance, page: Page) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await page.close()
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
                    args=list_flags(self._proxy_port, self._user_agent),
                    chromium_sandbox=True,
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=_START_SECONDS * 1000,
                )
                return await self._prepare(files, browser)
        except (Error, TimeoutError, OSError) as error:
            await asyncio.to_thread(kill_browser, files)
            await self._stop_driver()
            raise BrowserUnavailable(explain_failure(str(error) or type(error).__name__)) from error

    async def _prepare(self, files: ChromiumFiles, browser: Chromium) -> Instance:
        context = await browser.new_context(
            accept_downloads=False,
            service_workers="block",
            user_agent=self._user_agent,
            bypass_csp=False,
            storage_state=self._state,
        )
        instance = Instance(files, browser, context)

        async def handle(route: Route, request: Request) -> None:
            await answer_request(instance, route, request)

        await context.route("**/*", handle)
        await context.add_init_script(page_scripts.HIDE)
        context.on("page", lambda page: asyncio.ensure_future(close_stranger(instance, page)))
        return instance

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


async def _hide_session(context: BrowserContext) -> StorageState:
    """What later pages have of a login: cookies that no script sees stay with the crawl, and out of each trace."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            state = await context.storage_state()
            for cookie in [one for one in state["cookies"] if one["httpOnly"]]:
                await context.clear_cookies(name=cookie["name"], domain=cookie["domain"], path=cookie["path"])
    except (Error, TimeoutError) as error:
        raise RenderFailed(Code.IO_ERROR, "the browser does not say what the login left") from error
    state["cookies"] = [cookie for cookie in state["cookies"] if not cookie["httpOnly"]]
    return state
