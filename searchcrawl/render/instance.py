"""One process of the browser: its pages, what becomes of their requests, and its end (L7, X-O7)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, Page, Request, Route

from searchcrawl.render.chromium import ChromiumFiles
from searchcrawl.render.open_page import OpenPage

logger = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 3.0


@dataclass(eq=False, slots=True)
class Instance:
    """One process of the browser and its only context."""

    files: ChromiumFiles
    browser: Chromium
    context: BrowserContext
    rendered: int = 0
    under_way: int = 0
    is_retired: bool = False
    visits: dict[Page, OpenPage] = field(default_factory=dict)
    #: refusals under way
    refusing: set[asyncio.Task[None] | None] = field(default_factory=set)


async def answer_request(instance: Instance, route: Route, request: Request) -> None:
    """Answers a request of any page of the browser; what belongs to no page of ours is refused."""
    try:
        visit = _find_visit(instance, request)
        if visit is None:
            await _refuse(instance, route)
        else:
            await visit.handle(route, request)
    except Error as error:
        # The page is closed, or went elsewhere, while its answer was on its way.
        logger.debug("a request of a page has no more page: %s", error.message)
        # Playwright would wait for an answer for ever if this just returned.
        raise asyncio.CancelledError from error


def _find_visit(instance: Instance, request: Request) -> OpenPage | None:
    """The page of ours that a request belongs to; a page that is just being opened has no frame yet."""
    try:
        return instance.visits.get(request.frame.page)
    except Error:
        return None


async def _refuse(instance: Instance, route: Route) -> None:
    """Refuses a request of a page that is being closed: nobody may be left to be told."""
    task = asyncio.current_task()
    instance.refusing.add(task)
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await route.abort("blockedbyclient")
    except TimeoutError as error:
        # Playwright would wait for an answer for ever if this just returned.
        raise asyncio.CancelledError from error
    finally:
        instance.refusing.discard(task)


async def close_stranger(instance: Instance, page: Page) -> None:
    """Closes a page that a page has opened."""
    if await page.opener() is not None:
        with suppress(Error):
            await page.close()


async def end_instance(instance: Instance) -> None:
    """Ends the process of a browser, and all that it started."""
    for task in instance.refusing:
        if task is not None:
            task.cancel()
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
