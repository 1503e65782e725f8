"""The browser of one crawl: started before the first request, asked for pages, closed after the last one."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from searchcrawl.counters import REFUSED_PARTS, RENDERED, RENDERED_BYTES, RENDERED_MS
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.render.crawl_wall import CrawlWall
from searchcrawl.render.login_steps import LoginEnd, LoginSteps
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.options import Action, RenderOptions
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderedPage, RenderTrial
from searchcrawl.render.verdicts import Verdicts
from searchcrawl.render.wall import Answer, Wall
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.fetch_tables import Action as ActionTable
from searchcrawl.sources.fetch_tables import Render
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact

#: By its name: what drives a browser is loaded by a crawl that needs it, and by no other.
_BROWSER: Final = "searchcrawl.render.browser.Browser"
#: Of each page so many rules count that refused it something, and so many in all; a rule has no more characters then.
_RULES_OF_PAGE: Final = 10
_MOST_RULES: Final = 50
_MOST_CHARACTERS: Final = 200


class PageBrowser(Protocol):
    """What renders pages; ``render`` raises RenderFailed, ``start`` BrowserUnavailable."""

    async def start(self) -> None:
        """Begins; nothing was rendered before."""

    async def render(self, url: str, *, answer: Answer | None = None, trace: Path | None = None) -> RenderedPage:
        """The page of ``url``."""

    async def log_in(self, login: LoginSteps, wall: LoginWall) -> LoginEnd:
        """Carries out a login; what is rendered later has its session. It raises StepFailed as well."""

    async def close(self) -> None:
        """Ends the browser, and all that it started."""


class Renderer:
    """The browser of one source, and what is known of its pages. For the event loop."""

    def __init__(
        self,
        run: Run,
        wall: CrawlWall,
        *,
        open_browser: Callable[[Run, CrawlWall], PageBrowser] | None = None,
        trial: RenderTrial | None = None,
    ) -> None:
        self._run = run
        self._wall = wall
        self._open_browser = open_browser or open_default_browser
        self._browser: PageBrowser | None = None
        self._renders = run.source.render.in_use
        self.trial = trial
        self.verdicts = Verdicts(run)
        self._refused: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether pages can be rendered."""
        return self._browser is not None

    async def open(self) -> None:
        """Starts the browser of a source that renders; raises ConfigurationError where there is none, and StoreError."""
        if not self._renders:
            return
        await self.verdicts.load()
        try:
            browser = self._open_browser(self._run, self._wall)
            await browser.start()
        except BrowserUnavailable as error:
            raise self._build_error(error) from error
        self._browser = browser

    async def log_in(self, login: LoginSteps, wall: LoginWall) -> LoginEnd:
        """Carries out a login; a browser that is for this alone is closed then.

        Raises StepFailed and RenderFailed, and BrowserUnavailable after it has ended the run.
        """
        browser = self._browser
        try:
            if browser is None:
                browser = self._open_browser(self._run, self._wall)
            return await browser.log_in(login, wall)
        except BrowserUnavailable as error:
            self._run.shutdown.fail(self._build_error(error))
            raise
        finally:
            if browser is not None and browser is not self._browser:
                await browser.close()

    def _build_error(self, error: BrowserUnavailable) -> ConfigurationError:
        key = "render.mode" if self._renders else "login.type"
        return ConfigurationError(*self._run.source.locate(key), str(error))

    async def close(self) -> None:
        """Ends the browser."""
        browser, self._browser = self._browser, None
        if browser is not None:
            await browser.close()

    async def render(self, url: str, answer: Answer | None) -> RenderedPage:
        """The page of ``url``, whose plain ``answer`` is not asked for again.

        Raises RenderFailed, and BrowserUnavailable after it has ended the run: no page is to blame for that.
        """
        if self._browser is None:
            raise BrowserUnavailable("the browser is not open")
        trace = None if self.trial is None else self.trial.trace
        try:
            page = await self._browser.render(url, answer=answer, trace=trace)
        except BrowserUnavailable as error:
            self._run.shutdown.fail(self._build_error(error))
            raise
        if self.trial is not None:
            self.trial.page = page
        self._count_refused(page.refused)
        self._run.count(**{RENDERED: 1, RENDERED_MS: round(page.seconds * 1000), RENDERED_BYTES: page.received_bytes})
        return page

    def _count_refused(self, refused: Mapping[str, int]) -> None:
        """Counts a page for each of the rules that refused it most; what most pages lack is among the first rules that are seen."""
        by_host = {rule: count for rule, count in refused.items() if not rule.startswith("kind ")}
        for rule, _ in Counter(by_host).most_common(_RULES_OF_PAGE):
            name = f"{REFUSED_PARTS}{redact(rule)[:_MOST_CHARACTERS]}"
            if name in self._refused or len(self._refused) < _MOST_RULES:
                self._refused.add(name)
                self._run.count(**{name: 1})


def open_default_browser(run: Run, wall: CrawlWall) -> PageBrowser:
    """The browser of this machine, not yet started; raises BrowserUnavailable where its driver is not installed."""
    return build_browser(run.project, run.source, wall)


def build_browser(project: Project, source: Source, wall: Wall) -> PageBrowser:
    """A browser as a run of a source has it, not yet started; raises BrowserUnavailable where its driver is not installed."""
    try:
        module, _, name = _BROWSER.rpartition(".")
        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise BrowserUnavailable(
            f"the driver of the browser is not installed: pip install 'searchcrawl[playwright]' ({error})"
        ) from error
    browser: PageBrowser = kind(
        build_options(source.render, hash_routes=source.scope.hash_routes),
        wall,
        user_agent=project.user_agent_header,
        timeout_seconds=float(source.fetch.timeout_seconds),
        max_bytes=source.fetch.max_bytes,
    )
    return browser


def build_options(table: Render, *, hash_routes: bool = False) -> RenderOptions:
    """The options of a ``[render]``; ``hash_routes`` is the key of ``[scope]``."""
    return RenderOptions(
        wait_for=table.wait_for,
        quiet_ms=table.quiet_ms,
        max_seconds=table.max_seconds,
        pages=table.pages,
        block=table.block,
        scroll=table.scroll,
        actions=tuple(map(_build_action, table.actions)),
        post=table.post,
        max_page_bytes=table.max_page_bytes,
        hash_routes=hash_routes,
    )


def _build_action(action: ActionTable) -> Action:
    if action.click is not None:
        return Action(action.match, "click", action.click)
    if action.wait is not None:
        return Action(action.match, "wait", action.wait)
    return Action(action.match, "scroll", count=action.scroll or 0)
