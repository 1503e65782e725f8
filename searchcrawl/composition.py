"""Builds the stages of one crawl: each gets those that it uses as arguments of its constructor.

The add-on calls ``compose`` before Scrapy makes its components, which then get their stages from ``Stages``.
Some stages use each other, as the frontier and the writer: they share small objects that are made first. These are
the queue of the writer, the host registry, the watch over traps, ``run.shutdown``, and the event that is set once rows
that are due again may be claimed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.cache.opening import open_cache
from searchcrawl.commit.cache_pipeline import CachePipeline
from searchcrawl.commit.group_commit import Listeners, WriterQueue
from searchcrawl.convert.registry import Registry
from searchcrawl.convert.user_converter import list_user_converters
from searchcrawl.delivery.delivery_extension import DeliveryExtension
from searchcrawl.delivery.feeds import write_files
from searchcrawl.engine.visit_engine import download, is_closing
from searchcrawl.exceptions import LogError
from searchcrawl.extensions.progress_extension import ProgressExtension
from searchcrawl.extensions.run_end_extension import RunEndExtension
from searchcrawl.extensions.watch_extension import HeartbeatExtension, StallExtension
from searchcrawl.frontier.claiming import Claiming
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.frontier.replaying import CACHE, ReplayClaiming, announce_edit, find_end_reason
from searchcrawl.frontier.window import Window
from searchcrawl.http.address_guard import AddressGuard, build_guard, build_public_guard
from searchcrawl.http.given_up_hosts import GivenUpHosts
from searchcrawl.http.name_gate import NameGate
from searchcrawl.http.name_lookups import NameLookups, OtherProcesses
from searchcrawl.http.proxy_middleware import ProxyRoute, build_proxy_route
from searchcrawl.http.replay_middleware import Claims, ReplayMiddleware
from searchcrawl.http.shared_names import SharedNames
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.unread_bodies import UnreadBodies
from searchcrawl.http.visit_log_middleware import VisitLog
from searchcrawl.items import Document, Outcome, SitemapPart, SubmittedUrls
from searchcrawl.listing.model import ListedPart
from searchcrawl.operations.dry_run import DryRun
from searchcrawl.operations.handing_over import hand_over
from searchcrawl.politeness.host_leases import HostLeases
from searchcrawl.politeness.host_registry import HostRegistry, build_delay_schedule
from searchcrawl.politeness.rate_limiter import DryRunRateLimiter, RateLimiter, SharedRateLimiter
from searchcrawl.robots.files import RobotsFiles, StoredRobots
from searchcrawl.rules.redirects import OwnOrigins, TargetRules
from searchcrawl.run import Run, list_start_urls
from searchcrawl.soft404.signature import Probes
from searchcrawl.sources.config import Source
from searchcrawl.sources.fetch_tables import Fetch
from searchcrawl.sources.source_settings import USER_COMPONENTS
from searchcrawl.stages import Stages
from searchcrawl.traces import ParseMark, StackFile

if TYPE_CHECKING:
    from searchcrawl.kinds.listing import Listing
    from searchcrawl.kinds.web.sitemaps.reading import SitemapReading
    from searchcrawl.members.members import Members
    from searchcrawl.render.credentials import Credentials

logger = logging.getLogger(__name__)

#: So many pages of the cache are under way.
_REPLAYED_AT_ONCE: Final = 64
#: What a crash loses of a replay costs no request, and a transaction of many pages costs less for each.
_REPLAYED_IN_GROUP: Final = 256


def compose(crawler: Crawler, run: Run) -> Stages:
    """The stages of a crawl."""
    announce_edit(run)
    _tell_of_processes(run.source)
    stages = Stages()
    traps, waiting, revisits = _build_traps(run), WriterQueue(), threading.Event()
    stages.add(Probes(waiting.submit))
    hosts = _build_hosts(run.source.fetch)
    leases = _build_leases(run, hosts)
    delivery = _add_delivery(stages, crawler, run, admit=lambda urls: waiting.submit(SubmittedUrls(urls)))
    frontier = stages.add(
        Frontier(
            run,
            Window(hosts),
            waiting,
            leases=leases,
            build_claims=partial(
                Claiming,
                traps=traps,
                may_claim=delivery.has_room,
                may_revisit=revisits.is_set,
                has_sent=delivery.has_sent,
            ),
        )
    )
    rate_limiter = SharedRateLimiter(hosts, changed=frontier.wake)
    per_second = run.source.fetch.dns_per_second
    names = SharedNames(run.database, source_id=run.source_id, per_second=per_second)
    _end_unread(stages, run)
    add_fetching(stages, crawler, run, rate_limiter, traps, names=names)
    frontier.on_given_up.append(stages.get(GivenUpHosts).give_up)
    _look_names_up_ahead(stages, hosts, changed=frontier.wake)
    sitemaps = _add_sitemaps(stages, run, frontier, submit=waiting.submit, revisits=revisits)
    visit_ends: list[Callable[[Document | Outcome], None]] = [frontier.end_visit]
    if sitemaps is not None:
        visit_ends.insert(0, sitemaps.note_visit)
    lists = sitemaps or _add_listing(stages, run, frontier, submit=waiting.submit)
    listeners = _build_listeners(run, frontier, delivery)
    if lists is not None:
        listeners = replace(listeners, on_part=lists.on_committed)
    at_end = _list_last_calls(stages)
    if has_members(run.source):
        members = stages.add(_build_members(stages, crawler, run, waiting))
        waiting.on_room.append(members.note_committed)
        frontier.on_given_up.append(members.give_up)
        at_end.insert(0, members.finish)
    elif run.project.logs.urls:
        visit_ends.insert(0, stages.add(VisitLog()).write)
    stages.add(CachePipeline(crawler, run, waiting, traps, listeners, visit_ends=visit_ends, at_end=at_end))
    return stages


def _build_leases(run: Run, hosts: HostRegistry) -> HostLeases | None:
    """What takes hosts for this process; None for what is listed, which no processes share by turns."""
    if run.source.kind.is_listed:
        return None
    leases = HostLeases(run.database, hosts, lease_until_ms=lambda: run.lease_until_ms)
    run.with_beat.append(leases.renew)
    return leases


def _look_names_up_ahead(stages: Stages, hosts: HostRegistry, *, changed: Callable[[], None]) -> None:
    """Has the names of hosts looked up before their requests are sent; a proxy does that by itself."""
    if stages.find(ProxyRoute) is None and not stages.get(Run).source.kind.is_listed:
        hosts.names = NameGate(stages.get(NameLookups), stages.get(AddressGuard), hosts, changed=changed)


def _list_last_calls(stages: Stages) -> list[Callable[[], Awaitable[None]]]:
    """What is called once all visits have ended, while the run may still write."""
    robots = stages.find(RobotsFiles)
    return [] if robots is None else [robots.close]


def has_members(source: Source) -> bool:
    """Whether other processes visit the pages of a source; a session, and a browser, are those of one process."""
    return source.fetch.processes > 1 and not source.render.in_use and source.login.type is None


def _tell_of_processes(source: Source) -> None:
    if source.fetch.processes > 1 and not has_members(source):
        logger.info("fetch.processes: a source that logs in or renders is crawled by one process")


def _build_members(stages: Stages, crawler: Crawler, run: Run, waiting: WriterQueue) -> Members:
    # Loaded where it is used: most runs have none of it.
    from searchcrawl.members.member import start_member  # noqa: PLC0415
    from searchcrawl.members.members import Members  # noqa: PLC0415
    from searchcrawl.members.services import SharedProbes  # noqa: PLC0415
    from searchcrawl.spiders.member_process import serve_run  # noqa: PLC0415
    from searchcrawl.spiders.user_spider import build_plugin_errors  # noqa: PLC0415

    make = partial(
        start_member,
        run,
        crawler.spider.inherited_settings,  # type: ignore[union-attr]  # the add-on has set it
        serve_run,
        rate_limiter=stages.get(RateLimiter),
        robots=stages.find(RobotsFiles),
        probes=SharedProbes(waiting.submit),
        plugin_errors=build_plugin_errors(crawler, run.shutdown),
        lookups=stages.get(NameLookups),
    )
    count, seconds = run.source.fetch.processes - 1, crawler.settings.getfloat("SEARCHCRAWL_STALL_SECONDS")
    return Members(run, stages.get(Frontier), make, count=count, is_full=lambda: waiting.is_full, stall_seconds=seconds)


def compose_member(crawler: Crawler, run: Run) -> Stages:
    """The stages of a member of a run, which visits and reads pages: the run itself is in another process."""
    # Loaded where it is used: most runs have none of it.
    from searchcrawl.documents.user_pipeline import PluginErrors  # noqa: PLC0415
    from searchcrawl.members.link import (  # noqa: PLC0415
        LinkedNames,
        LinkedPluginErrors,
        LinkedProbes,
        LinkedRateLimiter,
        LinkedRobots,
    )
    from searchcrawl.members.member_scheduler import HandOver  # noqa: PLC0415

    stages, link = Stages(), crawler.spider.member  # type: ignore[union-attr]  # its process has set it
    stages.add(link)
    log = stages.add(VisitLog()) if run.project.logs.urls else None
    stages.add(HandOver(link, log))
    stages.add(LinkedProbes(link), Probes)
    stages.add(LinkedPluginErrors(link), PluginErrors)
    names = LinkedNames(link)
    limiter, robots = LinkedRateLimiter(link), partial(LinkedRobots, link)
    _end_unread(stages, run)
    add_fetching(stages, crawler, run, limiter, _build_traps(run), names=names, build_robots=robots)
    stacks = StackFile(run.project.logs_dir, run.source.name, member=link.setup.number)
    seconds = crawler.settings.getfloat("SEARCHCRAWL_STALL_SECONDS")
    stages.add(StallExtension(run, seconds=seconds, stacks=stacks))
    stages.add(ParseMark(run.project.logs_dir, run.source.name, member=link.setup.number))
    return stages


def _build_listeners(run: Run, frontier: Frontier, delivery: DeliveryExtension) -> Listeners:
    return Listeners(
        in_flight=frontier.in_flight,
        hold=frontier.claiming.hold,
        on_commit=frontier.claiming.note_committed,
        on_part=lambda part: None,
        on_batch=delivery.submit,
        on_failure=run.shutdown.fail,
    )


def compose_replay(crawler: Crawler, run: Run) -> Stages:
    """The stages of a replay, which processes again what the cache holds (``plan``, ``apply``): nothing is requested."""
    stages = Stages()
    stages.add(run, Run)
    traps, waiting = stages.add(_build_traps(run)), WriterQueue(group_pages=_REPLAYED_IN_GROUP)
    delivery = _add_delivery(stages, crawler, run)
    cache = open_cache(run.project, run.source.name)
    answers = stages.add(ReplayMiddleware(cache))
    hosts = HostRegistry(delay_seconds=0, host_concurrency=_REPLAYED_AT_ONCE)
    # Nothing has to be learned of it before it gets more than one request at once.
    hosts.find_or_add(CACHE).visited = True
    claims = partial(ReplayClaiming, may_claim=delivery.has_room, expect=answers.expect, given_up=answers.given_up)
    frontier = stages.add(Frontier(run, Window(hosts), waiting, build_claims=claims, find_end_reason=find_end_reason))
    if run.keeps_links:
        answers.begin_groups(Claims(take=frontier.next_claim, put_back=frontier.put_back))
    stages.add(RateLimiter())
    stages.add(_build_targets(run, list_start_urls(run)))
    listeners = _build_listeners(run, frontier, delivery)
    stages.add(CachePipeline(crawler, run, waiting, traps, listeners, visit_ends=[frontier.end_visit]))
    return stages


def compose_dry_run(crawler: Crawler, run: Run) -> Stages:
    """The stages of a dry run, which tries one page (``test``, ``explain --live``): nothing is stored or delivered."""
    stages = Stages()
    rate_limiter = stages.add(DryRunRateLimiter(run.database, _build_hosts(run.source.fetch)))
    add_fetching(stages, crawler, run, rate_limiter, _build_traps(run))
    return stages


def add_fetching(
    stages: Stages,
    crawler: Crawler,
    run: Run,
    rate_limiter: RateLimiter,
    traps: TrapWatch,
    *,
    names: OtherProcesses | None = None,
    build_robots: Callable[..., RobotsFiles] = RobotsFiles,
) -> None:
    """Adds what the download handler and the downloader middlewares need; with ``names`` lookups are shared."""
    stages.add(run, Run)
    stages.add(traps)
    stages.add(rate_limiter, RateLimiter)
    stages.add(build_guard(run.source.fetch))
    stages.add(build_public_guard(run.source.fetch))
    stages.add(GivenUpHosts())
    fetch = run.source.fetch
    stages.add(NameLookups(names, per_second=fetch.dns_per_second, timeout_seconds=fetch.timeout_seconds))
    starts = list_start_urls(run)
    stages.add(OwnOrigins(starts, run.source.fetch.headers_to))
    targets = stages.add(_build_targets(run, starts))
    proxy = build_proxy_route(run.source.fetch)
    if proxy is not None:
        stages.add(proxy)

    side = stages.add(
        SideRequests(
            download=partial(download, crawler),
            rate_limiter=rate_limiter,
            targets=targets,
            is_closing=partial(is_closing, crawler),
        )
    )
    robots = run.source.robots
    if run.source.obeys_robots:
        files = build_robots(
            side,
            rate_limiter,
            user_agent=robots.user_agent or run.project.user_agent,
            max_crawl_delay_seconds=robots.max_crawl_delay_seconds if robots.crawl_delay else None,
            stored=StoredRobots(run),
            learns_delays=stages.find(DryRunRateLimiter) is not None,
        )
        stages.add(files, RobotsFiles)
    if run.source.render.in_use or run.source.login.type == "browser":
        _add_browser(stages, run, targets)


def _end_unread(stages: Stages, run: Run) -> None:
    """Has bodies that nothing reads end early, unless a rule asks for their size, or a component of a user's own may read them."""
    source = run.source
    own = any(source.settings.get(name) for name in USER_COMPONENTS)
    if not (run.index_filter or own or source.has_user_spider or source.document_service):
        stages.add(UnreadBodies(Registry(list_user_converters(run.project)).reads_nothing))


def _add_browser(stages: Stages, run: Run, targets: TargetRules) -> None:
    """Adds the browser of a source that renders or logs in by it; other sources have no part of it."""
    from searchcrawl.render.crawl_wall import CrawlWall  # noqa: PLC0415  # see above
    from searchcrawl.render.renderer import Renderer  # noqa: PLC0415  # the same

    wall = CrawlWall(
        run.boundary,
        allow_hosts=run.source.render.allow_hosts,
        targets=targets,
        side_requests=stages.get(SideRequests),
        robots=stages.find(RobotsFiles),
        max_bytes=run.source.fetch.max_bytes,
        credentials=_build_credentials(stages, run),
        posts=run.source.render.post,
        file=run.source.path,
    )
    stages.add(wall)
    stages.add(Renderer(run, wall, trial=run.trial if isinstance(run, DryRun) else None))


def _build_credentials(stages: Stages, run: Run) -> Credentials:
    """What the pages of the browser may have of the crawl's own: headers, certificates, passwords, and cookies of a login."""
    from searchcrawl.kinds.web.login.cookie_jar import CookieJar  # noqa: PLC0415  # as above
    from searchcrawl.kinds.web.login.login_middleware import list_password_origins  # noqa: PLC0415  # the same
    from searchcrawl.render.credentials import Credentials  # noqa: PLC0415  # the same

    fetch = run.source.fetch
    own = stages.get(OwnOrigins).origins if fetch.headers or fetch.client_certificate else frozenset()
    return Credentials(own | list_password_origins(run), lambda: stages.find(CookieJar))


def _add_delivery(
    stages: Stages, crawler: Crawler, run: Run, *, admit: Callable[[tuple[str, ...]], bool] = lambda urls: False
) -> DeliveryExtension:
    """Adds the delivery and its followers: the heartbeat, then RunEndExtension, which gives the lease back."""
    get = crawler.settings.getfloat
    heartbeat = stages.add(HeartbeatExtension(run, min_free_bytes=find_min_free(crawler.settings), admit=admit))
    stall = stages.add(StallExtension(run, seconds=get("SEARCHCRAWL_STALL_SECONDS")))
    progress = stages.add(ProgressExtension(run))
    mark = stages.add(ParseMark(run.project.logs_dir, run.source.name))
    at_end = [
        # Under the lease, which the heartbeat renews.
        lambda reason: write_files(run),
        heartbeat.stop,
        stall.stop,
        lambda reason: _remove_mark(run, mark),
        progress.stop,
        stages.add(RunEndExtension(run)).write,
    ]
    retry_seconds = get("SEARCHCRAWL_INDEX_PATIENCE_SECONDS")
    others = partial(hand_over, run.project, run.database, retry_seconds=retry_seconds, without=run.source_id)
    return stages.add(DeliveryExtension(run, at_end=at_end, retry_seconds=retry_seconds, hand_over=others))


def find_min_free(settings: BaseSettings) -> int:
    """How many bytes of each disk are to be left free."""
    return round(settings.getfloat("SEARCHCRAWL_MIN_FREE_MB") * (1 << 20))


def _remove_mark(run: Run, mark: ParseMark) -> None:
    try:
        mark.remove()
    except OSError as error:
        run.shutdown.fail(LogError(f"log {mark.path}: {error.strerror or error}"))


def reads_sitemaps(source: Source) -> bool:
    """Whether the sitemaps of a source are looked for, or named."""
    return source.kind.asks_beside and source.finds_urls and source.start.sitemaps != "off"


def _add_sitemaps(
    stages: Stages,
    run: Run,
    frontier: Frontier,
    *,
    submit: Callable[[SitemapPart], bool],
    revisits: threading.Event,
) -> SitemapReading | None:
    """Adds the reading of sitemaps if the source has any; sets ``revisits`` if due rows need not wait for it."""
    source, obeyed = run.source, stages.find(RobotsFiles)
    if not (reads_sitemaps(source) and source.lifecycle.trust_sitemap) or run.forced:
        revisits.set()
    if not reads_sitemaps(source):
        return None
    from searchcrawl.kinds.web.sitemaps.reading import SitemapReading  # noqa: PLC0415  # other sources have no part of it

    side = stages.get(SideRequests)
    robots = obeyed or RobotsFiles(
        side, stages.get(RateLimiter), user_agent=run.project.user_agent, max_crawl_delay_seconds=None
    )
    sitemaps = stages.add(
        SitemapReading(run, side, robots, submit=submit, hold=frontier.claiming.hold, revisits=revisits)
    )
    frontier.claiming.find_aside = sitemaps.find_retried
    frontier.on_given_up.append(sitemaps.give_up)
    if source.start.sitemaps == "auto":
        robots.listen(sitemaps.add_origin)
    return sitemaps


def _add_listing(stages: Stages, run: Run, frontier: Frontier, *, submit: Callable[[ListedPart], bool]) -> Listing:
    from searchcrawl.kinds.listing import Listing  # noqa: PLC0415  # other sources have no part of it

    return stages.add(Listing(run, submit=submit, hold=frontier.claiming.hold))


def _build_targets(run: Run, starts: Sequence[str]) -> TargetRules:
    source = run.source
    named = [*source.start.sitemaps] if not isinstance(source.start.sitemaps, str) else []
    if source.login.url:
        named.append(source.login.url)
    return TargetRules(run.boundary, starts=starts, named=named, rewriting=run.rewriting)


def _build_traps(run: Run) -> TrapWatch:
    scope, is_listed = run.source.scope, run.source.kind.is_listed
    return TrapWatch(
        run.source_id,
        trap_after=0 if is_listed else scope.trap_after,
        max_urls_per_pattern=0 if is_listed else scope.max_urls_per_pattern,
        file=run.source.path,
    )


def _build_hosts(fetch: Fetch) -> HostRegistry:
    return HostRegistry(
        delay_seconds=fetch.delay_seconds,
        host_concurrency=fetch.host_concurrency,
        sites=fetch.sites,
        address_concurrency=fetch.address_concurrency,
        schedule=build_delay_schedule(fetch.windows, fetch.timezone, otherwise_seconds=fetch.delay_seconds),
    )
