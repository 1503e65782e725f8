"""The browser of one crawl: started before the first request, asked for pages, closed after the last one.

Which pages it renders their plain answers say, and what it brought for their like before (C10, C11).
"""

from __future__ import annotations

import asyncio
import importlib
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from searchcrawl.counters import REFUSED_PARTS, RENDERED, RENDERED_BYTES, RENDERED_MS
from searchcrawl.exceptions import ConfigurationError, LeaseLost, StoreError
from searchcrawl.render.browser_request import DecodedAnswer
from searchcrawl.render.crawl_wall import CrawlWall, Wall
from searchcrawl.render.login_steps import LoginEnd, LoginSteps
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderedPage, RenderTrial
from searchcrawl.rules import rendering
from searchcrawl.rules.rendering import Judgement, Need, Shell
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact
from searchcrawl.store.urls import pattern_table
from searchcrawl.store.urls.pattern_table import Gains
from searchcrawl.wording import counted

if TYPE_CHECKING:
    from searchcrawl.render.browser import Browser


class RenderPlan(NamedTuple):
    """That a page is rendered, and why; ``is_known``: it is known to need it, else that is to be seen.

    ``need`` is what its plain answer says.
    """

    need: Need
    reason: str
    is_known: bool


class Verdicts:
    """What is known of the pages of a source, from run to run. For the event loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._gains: dict[int, Gains] = {}

    async def load(self) -> None:
        """Reads what runs have seen since a key of ``[render]`` was edited last; raises StoreError, LeaseLost."""
        source_id = self._run.source_id
        if any(key.startswith("render.") for key in self._run.forced):
            await asyncio.to_thread(self._run.write, partial(pattern_table.forget_gains, source_id=source_id))
        self._gains = await asyncio.to_thread(self._run.read, partial(pattern_table.load_gains, source_id=source_id))

    def decide(self, url: str, shell: Shell, *, rendered: str | None = None) -> RenderPlan | None:
        """Whether the page of ``url`` is rendered; None: it is not.

        ``rendered`` is why it was when its known text was made: it is again, whatever pages like it became.
        """
        judgement = rendering.judge(shell)
        if judgement.need is Need.CERTAIN:
            return RenderPlan(judgement.need, judgement.reason, True)
        known = self._gains.get(rendering.build_key(url, judgement.need), Gains())
        if rendering.is_worth_it(*known):
            return RenderPlan(judgement.need, _describe(judgement, known), True)
        if rendered is not None:
            return RenderPlan(judgement.need, rendered, False)
        if self.is_sampled(url):
            return RenderPlan(judgement.need, f"one of the pages that are looked at again: {judgement.reason}", False)
        if judgement.need is Need.DOUBTFUL and not known.rendered:
            return RenderPlan(judgement.need, judgement.reason, False)
        return None

    def is_sampled(self, url: str) -> bool:
        """Whether a page is looked at again in this run; a dry run has no number, and looks at one page alone."""
        return self._run.id > 0 and rendering.is_sampled(url, self._run.id)

    def may_render(self, url: str) -> bool:
        """Whether pages like that of ``url`` are rendered, unless its plain answer says that it needs nothing."""
        return any(
            rendering.is_worth_it(*self._gains.get(rendering.build_key(url, need), Gains()))
            for need in (Need.NONE, Need.DOUBTFUL)
        )

    async def note(self, url: str, need: Need, *, gain: bool) -> None:
        """Keeps what rendering brought for a page that was not known to need it."""
        key = rendering.build_key(url, need)
        before = self._gains.get(key, Gains())
        self._gains[key] = now = Gains(*rendering.count(before.rendered, before.gained, gain=gain))
        write = partial(pattern_table.store_gains, source_id=self._run.source_id, gains={key: now})
        try:
            await asyncio.to_thread(self._run.write, write)
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)


def _describe(judgement: Judgement, known: Gains) -> str:
    of = f"{known.gained} of {counted(known.rendered, 'page', 'pages')}"
    return f"{of} like it had more text when they were rendered ({judgement.reason})"


#: By its name: what drives a browser is loaded by a crawl that needs it, and by no other.
_BROWSER: Final = "searchcrawl.render.browser.Browser"
#: Of each page so many rules count that refused it something, and so many in all; a rule has no more characters then.
_RULES_OF_PAGE: Final = 10
_MOST_RULES: Final = 50
_MOST_CHARACTERS: Final = 200


class Renderer:
    """The browser of one source, and what is known of its pages. For the event loop."""

    def __init__(self, run: Run, wall: CrawlWall, *, trial: RenderTrial | None = None) -> None:
        self._run = run
        self._wall = wall
        self._browser: Browser | None = None
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
            browser = build_browser(self._run.project, self._run.source, self._wall)
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
                browser = build_browser(self._run.project, self._run.source, self._wall)
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

    async def render(self, url: str, answer: DecodedAnswer | None) -> RenderedPage:
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


def build_browser(project: Project, source: Source, wall: Wall) -> Browser:
    """A browser as a run of a source has it, not yet started; raises BrowserUnavailable where its driver is not installed."""
    try:
        module, _, name = _BROWSER.rpartition(".")
        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise BrowserUnavailable(
            f"the driver of the browser is not installed: pip install 'searchcrawl[playwright]' ({error})"
        ) from error
    browser: Browser = kind(
        source.render,
        wall,
        hash_routes=source.scope.hash_routes,
        user_agent=project.user_agent_header,
        timeout_seconds=float(source.fetch.timeout_seconds),
        max_bytes=source.fetch.max_bytes,
    )
    return browser
