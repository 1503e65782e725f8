"""One process of the browser, the pages that are open in it, and its end (L7, X-O7)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, StorageState

from searchcrawl.render import page_scripts
from searchcrawl.render.browser_cookies import describe_cookie, list_cookies
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.chromium import ChromiumFiles
from searchcrawl.render.login_steps import BrowserCookie
from searchcrawl.render.open_page import OpenPage
from searchcrawl.render.proxy.authority import Authority
from searchcrawl.render.proxy.page_port import PagePort
from searchcrawl.render.wall import Answer

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

    @property
    def context(self) -> BrowserContext:
        """The context, once ``open`` has returned."""
        if self._context is None:
            raise RuntimeError("the page is not open")
        return self._context

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

    async def list_cookies(self) -> list[BrowserCookie]:
        """The cookies that the context has; raises Playwright's Error."""
        return await list_cookies(self.context)

    async def close(self) -> None:
        """Ends the page and its connections; raises Playwright's Error where the browser does not."""
        self.visit = None
        try:
            if self._context is not None:
                await self._context.close()
        finally:
            await self._port.close()

    async def _answer(self, request: BrowserRequest) -> Answer | None:
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


def kill_browser(files: ChromiumFiles) -> None:
    """Ends what is left of a browser, and deletes its files."""
    pid = files.find_pid()
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    files.remove()
