"""The only list of Scrapy components, each with the number that sets its place in the order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, NamedTuple

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.logcount import LogCount
from scrapy.extensions.memusage import MemoryUsage
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object

from searchcrawl.bodies import Spool
from searchcrawl.commit.cache_pipeline import CachePipeline
from searchcrawl.composition import (
    compose,
    compose_dry_run,
    compose_member,
    compose_replay,
    find_min_free,
    has_members,
    reads_sitemaps,
)
from searchcrawl.convert.archive_middleware import ArchiveMiddleware
from searchcrawl.convert.convert_pipeline import ConvertPipeline
from searchcrawl.delivery.delivery_extension import DeliveryExtension
from searchcrawl.documents.document_pipeline import (
    BodyDigestPipeline,
    FetchedFilterPipeline,
    FieldsDigestPipeline,
    FieldsPipeline,
    PageFilterPipeline,
)
from searchcrawl.extensions.progress_extension import ProgressExtension
from searchcrawl.extensions.run_end_extension import RunEndExtension
from searchcrawl.extensions.run_stats import StatsExtension
from searchcrawl.extensions.watch_extension import (
    HeartbeatExtension,
    MemoryExtension,
    ReactorClockExtension,
    StallExtension,
)
from searchcrawl.frontier.scheduler import Scheduler, SettlingMiddleware
from searchcrawl.http.boundary_middleware import BoundaryMiddleware
from searchcrawl.http.decompression_middleware import DecompressionMiddleware
from searchcrawl.http.headers_middleware import ConditionalMiddleware, HeadersMiddleware
from searchcrawl.http.proxy_middleware import ProxyMiddleware
from searchcrawl.http.redirect_middleware import RedirectMiddleware
from searchcrawl.http.replay_middleware import ReplayMiddleware
from searchcrawl.http.turn_middleware import LateTurnMiddleware, TurnMiddleware
from searchcrawl.http.visit_end import OutcomeMiddleware
from searchcrawl.http.visit_log_middleware import StatsMiddleware, VisitLogMiddleware
from searchcrawl.kind import WEB
from searchcrawl.robots.robots_middleware import RobotsMiddleware
from searchcrawl.run import Run
from searchcrawl.soft404.soft404_pipeline import PlaceholderPagePipeline
from searchcrawl.sources.config import Source
from searchcrawl.sources.source_settings import (
    DEFAULTS,
    FIXED,
    SETTLED_AT,
    USER_COMPONENTS,
    conceal_credentials,
    list_left_out,
    list_shipped_defaults,
)
from searchcrawl.spiders.stage_manager import QuietLogFormatter, StageManager
from searchcrawl.stages import Stages

_Component = type[Any] | str
_Ordered = Sequence[tuple[_Component, int]]

logger = logging.getLogger(__name__)

#: The handler of spiders in Python: Scrapy's own, and a browser for requests that ask for it.
_PAGES: Final = "searchcrawl.render.playwright_handler.PlaywrightSpiderHandler"
#: Those of such spiders: a link must not lead to a file of this machine.
_WITHOUT_FILES: Final[Mapping[str, str | None]] = {"file": None, **dict.fromkeys(WEB.ports, _PAGES)}
#: The same with SEARCHCRAWL_GUARD: the address guard is in our handler.
_GUARDED: Final[Mapping[str, str | None]] = {**_WITHOUT_FILES, **dict.fromkeys(("ftp", "s3"))}
_WITH_GUARD: Final = ("searchcrawl.http.python_spider_handler.PythonSpiderHandler", _PAGES)
#: What its documentation has a project name; with the guard ours does it.
_SCRAPY_PLAYWRIGHT: Final = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
_BROWSER_PROVIDER: Final = "searchcrawl.render.browser_handler.ChromiumProvider"
#: What listens on a port and runs what it is sent; on where a project says so.
_LISTENING: Final = ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")

#: By name, for a source that does not use them has nothing of them loaded.
_LOGIN: Final = "searchcrawl.kinds.web.login.login_middleware.LoginMiddleware"
_LOGIN_OF_RENDERED: Final = "searchcrawl.kinds.web.login.login_middleware.RenderedLoginMiddleware"
_OPENING: Final = "searchcrawl.spiders.user_spider.OpeningMiddleware"
_RENDER: Final = "searchcrawl.render.render_middleware.RenderMiddleware"
_FRAMES: Final = "searchcrawl.render.frame_middleware.FrameMiddleware"
_LISTING: Final = "searchcrawl.kinds.listing_extension.ListingExtension"
_READING_HANDLER: Final = "searchcrawl.kinds.read_handler.ReadHandler"
_KNOWN_TEXTS: Final = "searchcrawl.documents.known_text_pipeline.KnownTextPipeline"
_SITEMAPS: Final = "searchcrawl.kinds.web.sitemaps.sitemap_extension.SitemapExtension"
_BROWSER: Final = "searchcrawl.render.render_middleware.BrowserPipeline"

_MEMBERS: Final = "searchcrawl.members.dispatch_scheduler.MembersPipeline"
_HAND_OVER: Final = "searchcrawl.members.member_scheduler.HandOverPipeline"
_MEMBER_END: Final = "searchcrawl.members.member_scheduler.MemberExtension"
_DISPATCHING: Final = "searchcrawl.members.dispatch_scheduler.DispatchScheduler"
_VISITING: Final = "searchcrawl.members.member_scheduler.MemberScheduler"

_MIDDLEWARES: Final[_Ordered] = (
    # Between the engine (low numbers) and the downloader (high ones).
    (BoundaryMiddleware, 100),
    (_OPENING, 150),
    (RobotsMiddleware, 200),
    (HeadersMiddleware, 300),
    (OutcomeMiddleware, 500),
    (ConditionalMiddleware, 600),
    # Before the outcome is decided: a redirect that is followed does not end the visit.
    (RedirectMiddleware, 700),
    # It gets what the browser shows of a page: the plain answer may be the same for all.
    (_LOGIN_OF_RENDERED, 740),
    # It gets the decoded body of a page, after the login is known to hold; what it makes of it may be a redirect.
    (_RENDER, 750),
    # It gets a redirect to the login page before it is followed, and the decoded body of a page.
    (_LOGIN, 800),
    (DecompressionMiddleware, 900),
    (ProxyMiddleware, 950),
    # No request is sent for a file in an archive, so it needs no turn.
    (ArchiveMiddleware, 970),
    # The same for a route of a frame that is there; it keeps the answer as it came.
    (_FRAMES, 980),
    # After the login, whose own requests take their turns first.
    (TurnMiddleware, 990),
    (LateTurnMiddleware, 992),
    # Where each visit is logged: what it measures is the download alone.
    (VisitLogMiddleware, 995),
    (StatsMiddleware, 998),
    # In a replay: it answers in the place of the download.
    (ReplayMiddleware, 1000),
)

_PIPELINES: Final[_Ordered] = (
    # Opened before the first request, and before all others.
    (_BROWSER, 20),
    # Decisions before the body is read: a filter that refuses it, and whether the body is the same as at the last
    # visit.
    (FetchedFilterPipeline, 40),
    (BodyDigestPipeline, 60),
    (_KNOWN_TEXTS, 80),
    (ConvertPipeline, 100),
    (PlaceholderPagePipeline, 120),
    (FieldsPipeline, 140),
    (PageFilterPipeline, 160),
    (FieldsDigestPipeline, SETTLED_AT),
    (CachePipeline, 900),
    (_MEMBERS, 910),
    (_HAND_OVER, 920),
)

_EXTENSIONS: Final[_Ordered] = (
    # First: the others have the reactor wait.
    (ReactorClockExtension, 0),
    (_SITEMAPS, 50),
    (_LISTING, 60),
    (DeliveryExtension, 100),
    (HeartbeatExtension, 200),
    (StallExtension, 250),
    (ProgressExtension, 300),
    (RunEndExtension, 900),
    (_MEMBER_END, 950),
)

#: Components that store or deliver; they are not used for trying one page (``test``, ``explain --live``).
_STORING: Final[AbstractSet[_Component]] = frozenset(
    {
        PlaceholderPagePipeline,
        CachePipeline,
        ReplayMiddleware,
        _KNOWN_TEXTS,
        *(component for component, _ in _EXTENSIONS),
    }
) - {ReactorClockExtension}

#: Components of a crawl that a replay does without: nothing is requested, and no answer is judged by the network.
_REQUESTING: Final[AbstractSet[_Component]] = frozenset({
    _OPENING, RobotsMiddleware, HeadersMiddleware, ConditionalMiddleware, _LOGIN, _LOGIN_OF_RENDERED, DecompressionMiddleware,
    ProxyMiddleware, ArchiveMiddleware, _FRAMES, TurnMiddleware, VisitLogMiddleware, StatsMiddleware,
    PlaceholderPagePipeline, _SITEMAPS, _LISTING, _KNOWN_TEXTS,
})  # fmt: skip

#: What reads pages; where members of the run do, its own process has none of it.
_READING: Final[AbstractSet[_Component]] = frozenset({
    FetchedFilterPipeline, BodyDigestPipeline, _KNOWN_TEXTS, ConvertPipeline, PlaceholderPagePipeline, FieldsPipeline,
    PageFilterPipeline, FieldsDigestPipeline,
})  # fmt: skip
#: What a member has of the run in the place of what stores and delivers.
_OF_MEMBER: Final[AbstractSet[_Component]] = frozenset({LateTurnMiddleware, _HAND_OVER, _MEMBER_END})
_OF_MEMBERS: Final[AbstractSet[_Component]] = _OF_MEMBER | {_MEMBERS}


class _Part(NamedTuple):
    """What one process does of a crawl: the components that it does without, its scheduler, what builds its stages."""

    left_out: AbstractSet[_Component]
    scheduler: str | type[Any] | None
    compose: Callable[[Crawler, Run], Stages]


_ALONE: Final = _Part(_OF_MEMBERS | {ReplayMiddleware}, Scheduler, compose)
_DRY_RUN: Final = _Part(_OF_MEMBERS | _STORING, None, compose_dry_run)
_REPLAY: Final = _Part(_OF_MEMBERS | _REQUESTING, Scheduler, compose_replay)
#: The process of a run whose pages members visit, and such a member.
_LEADER: Final = _Part(_OF_MEMBER | _READING | {ReplayMiddleware}, _DISPATCHING, compose)
_MEMBER: Final = _Part(
    (_STORING - {PlaceholderPagePipeline, StallExtension, _MEMBER_END, _KNOWN_TEXTS}) | {_MEMBERS, _SITEMAPS, _LISTING},
    _VISITING,
    compose_member,
)

#: The component nearest to the engine, after all others.
_LAST: Final = -10_000

COMPONENTS: Final[Mapping[str, _Ordered]] = {
    "DOWNLOADER_MIDDLEWARES": _MIDDLEWARES,
    "ITEM_PIPELINES": _PIPELINES,
    "EXTENSIONS": _EXTENSIONS,
}


class SearchcrawlAddon:
    """Adds our components to the crawler of a source; Python spiders of users keep the components of Scrapy."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SearchcrawlAddon:
        return cls(crawler)

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Adds our own settings where the settings module of the project does not begin with ours."""
        settings.setdict(list_shipped_defaults(), priority="default")

    def update_settings(self, settings: BaseSettings) -> None:
        """Applies the settings of a source, and adds our components to the lists of Scrapy."""
        spider: Any = self._crawler.spider
        run = getattr(spider, "run", None)
        if run is None:
            _protect_machine(spider, settings)
            return
        _tell_left_out(settings)
        part = _find_part(spider)
        if part is _LEADER:
            spider.inherited_settings = _list_changed(settings)
        for name in USER_COMPONENTS:
            if (settings.getpriority(name) or 0) < SETTINGS_PRIORITIES["spider"]:
                settings.set(name, {}, priority="spider")
        settings.setdict(DEFAULTS, priority="addon")
        for name, value in (_build_values(run, part) | conceal_credentials(run.source.settings)).items():
            # Above the project's settings.py, which knows no source; below the command line.
            settings.set(name, value, priority="spider")
        if part is _LEADER:
            # The members have those of users, wherever they are set.
            settings.set("ITEM_PIPELINES", {}, priority="cmdline")
        # Without a handler nothing can be sent, whatever a user's own components ask for.
        handlers = dict.fromkeys((*settings["DOWNLOAD_HANDLERS_BASE"], *settings["DOWNLOAD_HANDLERS"]))
        if part is not _REPLAY:
            kind = run.source.kind
            handlers |= dict.fromkeys(kind.ports, kind.handler or _READING_HANDLER)
        settings.set("DOWNLOAD_HANDLERS", handlers, priority="spider")
        if part is not _DRY_RUN and settings.getdict("SPIDER_MIDDLEWARES"):
            # They may drop a page without notice.
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", SettlingMiddleware, _LAST)
        left_out = _find_unused(run.source) | part.left_out
        for name, components in COMPONENTS.items():
            for component, number in components:
                if component not in left_out:
                    settings.setdefault_in_component_priority_dict(name, load_object(component), number)
        # Of this process, wherever it puts large bodies.
        Spool.min_free_bytes = find_min_free(settings)
        # This comes last, because it reads settings.
        spider.stages = part.compose(self._crawler, run)


def _find_part(spider: Any) -> _Part:
    """What this process does of a crawl."""
    if getattr(spider, "dry_run", False):
        return _DRY_RUN
    if getattr(spider, "replay", False):
        return _REPLAY
    if hasattr(spider, "member"):
        return _MEMBER
    return _LEADER if has_members(spider.run.source) else _ALONE


def _list_changed(settings: BaseSettings) -> dict[str, tuple[Any, int]]:
    """The settings that are not Scrapy's own, with their priorities: members of the run begin with them."""
    default = SETTINGS_PRIORITIES["default"]
    return {name: (settings[name], level) for name in settings if (level := settings.getpriority(name) or 0) > default}


def _find_unused(source: Source) -> AbstractSet[_Component]:
    """The components of what a source does not use."""
    unused = set[_Component]()
    if not source.kind.asks_beside:
        unused |= {RobotsMiddleware, PlaceholderPagePipeline}
    if source.kind.is_listed:
        unused |= {
            HeadersMiddleware,
            ConditionalMiddleware,
            RedirectMiddleware,
            DecompressionMiddleware,
            ProxyMiddleware,
        }
    else:
        unused |= {_LISTING, _KNOWN_TEXTS}
    if not source.has_user_spider:
        unused.add(_OPENING)
    if source.login.type is None:
        unused |= {_LOGIN, _LOGIN_OF_RENDERED}
    if not reads_sitemaps(source):
        unused.add(_SITEMAPS)
    if not source.scope.hash_routes or source.login.type is not None:
        unused.add(_FRAMES)
    if not source.render.in_use:
        unused |= {_RENDER, _BROWSER, _LOGIN_OF_RENDERED}
    return unused


def _build_values(run: Run, part: _Part) -> dict[str, Any]:
    """The settings that follow from a source."""
    fetch = run.source.fetch
    values = {
        **FIXED,
        "USER_AGENT": run.project.user_agent_header,
        "CONCURRENT_REQUESTS": fetch.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": fetch.concurrency,
        "DOWNLOAD_TIMEOUT": fetch.timeout_seconds,
        "DOWNLOAD_MAXSIZE": fetch.max_bytes,
        "DOWNLOAD_VERIFY_CERTIFICATES": fetch.verify_certificates,
        # Our components do the same, or nothing needs these; each costs time for every page.
        "EXTENSIONS_BASE": {MemoryExtension: 0, StatsExtension: 0, LogCount: 0},
        "LOG_FORMATTER": QuietLogFormatter,
        "ITEM_PROCESSOR": StageManager,
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {},
    }
    # It is not set in settings.py, because it hands out rows of the URL table: a dry run and the spiders of users have
    # none.
    return values if part.scheduler is None else values | {"SCHEDULER": load_object(part.scheduler)}


def _tell_left_out(settings: BaseSettings) -> None:
    """Says which settings of the project's settings module are for spiders in Python alone."""
    project = SETTINGS_PRIORITIES["project"]
    names = list_left_out((name, settings[name]) for name in settings if settings.getpriority(name) == project)
    if names:
        logger.info("settings of the project that are for its spiders in Python, not for sources: %s", ", ".join(names))


def _protect_machine(spider: Spider | None, settings: BaseSettings) -> None:
    """Spiders in Python keep the settings of Scrapy, but for those that would put this machine at risk."""
    with suppress(KeyError):  # A user took it out.
        settings.replace_in_component_priority_dict("EXTENSIONS_BASE", MemoryUsage, MemoryExtension)
    for name in _LISTENING:
        settings.set(name, False, priority="addon")
    _choose_handlers(spider, settings)


def _choose_handlers(spider: Spider | None, settings: BaseSettings) -> None:
    """Sets what downloads for a spider in Python, where its project has not chosen."""
    guarded = settings.getbool("SEARCHCRAWL_GUARD")
    chosen = {scheme: _name(handler) for scheme, handler in settings["DOWNLOAD_HANDLERS"].items()}
    of_playwright = [scheme for scheme, name in chosen.items() if name == _SCRAPY_PLAYWRIGHT]
    handlers = {**(_GUARDED if guarded else _WITHOUT_FILES), **settings["DOWNLOAD_HANDLERS"]}
    if guarded:
        handlers.update(dict.fromkeys(of_playwright, _PAGES))
    elif of_playwright and not settings.get("PLAYWRIGHT_BROWSER_PROVIDER"):
        settings.set("PLAYWRIGHT_BROWSER_PROVIDER", _BROWSER_PROVIDER, priority="addon")
    priority = max(settings.getpriority("DOWNLOAD_HANDLERS") or 0, SETTINGS_PRIORITIES["addon"])
    settings.set("DOWNLOAD_HANDLERS", handlers, priority=priority)
    others = [scheme for scheme, name in chosen.items() if name and name not in (*_WITH_GUARD, _SCRAPY_PLAYWRIGHT)]
    if guarded and others:
        logger.warning(
            "%s: the address guard does not cover its handler of %s",
            spider.name if spider is not None else "-",
            ", ".join(others),
        )


def _name(component: Any) -> str:
    """The dotted name of a component; empty where there is none."""
    if component is None or isinstance(component, str):
        return component or ""
    return f"{component.__module__}.{getattr(component, '__qualname__', type(component).__qualname__)}"
