"""Reads the sitemaps of a run: finds them, fetches them, and hands what they list to the writer (L5)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Generic, TypeVar

from searchcrawl import clock, urls
from searchcrawl.codes import SUCCESS, Code
from searchcrawl.commit.part_sender import PartSender
from searchcrawl.exceptions import CrawlEnds, LeaseLost, StoreError
from searchcrawl.http.side_requests import SideRequestFailed, SideRequests
from searchcrawl.items import Document, Outcome, SitemapEnd, SitemapPart
from searchcrawl.kinds.web.sitemaps.fetching import (
    BodyRoom,
    HeldBody,
    Parsed,
    Validators,
    build_last_part,
    fetch_sitemap,
    parse,
)
from searchcrawl.kinds.web.sitemaps.formats import MAX_BYTES
from searchcrawl.kinds.web.sitemaps.queue import SitemapQueue, WantedSitemap, build_child
from searchcrawl.politeness import backoff
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.run import Run
from searchcrawl.store import sitemap_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.sitemap_table import Dates, SitemapRow

T = TypeVar("T")


class Turns(Generic[T]):
    """Jobs by origin; ``most_of_origin`` of one are under way at once."""

    def __init__(self, most_of_origin: int) -> None:
        self._most_of_origin = most_of_origin
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._under_way: Counter[str] = Counter()

    def add(self, origin: str, job: T) -> None:
        """Adds a job behind the others of its origin."""
        self._waiting.setdefault(origin, deque()).append(job)

    def take(self) -> tuple[str, T] | None:
        """The next job and its origin, for which ``end`` has to be called; None while none may begin."""
        # Only few origins can have that many under way.
        origin = next((one for one in self._waiting if self._under_way[one] < self._most_of_origin), None)
        if origin is None:
            return None
        jobs = self._waiting[origin]
        job = jobs.popleft()
        if jobs:
            self._waiting.move_to_end(origin)
        else:
            del self._waiting[origin]
        self._under_way[origin] += 1
        return origin, job

    def end(self, origin: str) -> None:
        """A job of an origin ended."""
        self._under_way[origin] -= 1
        if not self._under_way[origin]:
            del self._under_way[origin]

    def clear(self) -> None:
        """Forgets the jobs that wait."""
        self._waiting.clear()


#: So long known pages wait for all sitemaps, and so long where these are of one origin.
_REVISIT_SECONDS: Final = 300.0
_ALONE_SECONDS: Final = 3600.0
#: So long the sitemaps of one origin are read; those that are left are by the next run.
_ORIGIN_SECONDS: Final = 7200.0


class ReadingTime:
    """When the time of each origin is over, from its first sitemap on."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        self._told: set[str] = set()

    @property
    def waits_for_many(self) -> bool:
        """Whether sitemaps of several origins are read."""
        return len(self._ends) > 1

    def is_over(self, origin: str) -> bool:
        """Whether no more sitemaps of an origin are read; the first question begins its time."""
        now = clock.monotonic()
        return now >= self._ends.setdefault(origin, now + _ORIGIN_SECONDS)

    def is_news(self, origin: str) -> bool:
        """Whether this was not asked before of an origin."""
        if origin in self._told:
            return False
        self._told.add(origin)
        return True


logger = logging.getLogger(__name__)

#: Sitemaps that are fetched or read at once: most of that time they wait for the turns of their hosts.
_MOST_AT_ONCE: Final = 512
#: How many of them may be of one origin.
_MOST_OF_ORIGIN: Final = 2
#: The memory for their bodies.
_MOST_BYTES: Final = 4 * MAX_BYTES
#: Origins whose robots.txt and /sitemap.xml are looked for.
_MAX_ORIGINS: Final = 10_000
#: So many feeds of one origin are read, and so many that one page has named are remembered.
_MAX_FEEDS_OF_ORIGIN: Final = 100
_MAX_NAMED: Final = 10_000
_AUTO: Final = "auto"

Job = Callable[[], Coroutine[Any, Any, None]]


class SitemapReading:
    """The sitemaps of one run; all methods but ``on_committed`` are for the event loop.

    ``hold`` keeps the crawl from ending until the returned function is called; this is used as long as anything is to
    be read. Each time nothing is left, the due dates of rows are set from the lastmods; after the first time, or once this
    takes too long, ``revisits`` is set. ``submit`` hands a part to the writer, and returns False if no writer takes it.
    ``robots`` says which sitemaps an origin names, also where the source does not obey it otherwise.
    """

    def __init__(
        self,
        run: Run,
        side: SideRequests,
        robots: RobotsFiles,
        *,
        submit: Callable[[SitemapPart], bool],
        hold: Callable[[], Callable[[], None]],
        revisits: threading.Event,
    ) -> None:
        self._run = run
        self._side = side
        self._robots = robots
        self._obeys = run.source.robots.obey
        self._hold = hold
        self._revisits = revisits
        self._queue = SitemapQueue(run.boundary)
        self._time = ReadingTime()
        self._waiting: asyncio.Task[None] | None = None
        self._sender = PartSender(submit, lambda part: len(part.urls) + len(part.children))
        self._origins: set[str] = set()
        #: feeds, by the page that named them first; None: they are read
        self._feeds: dict[str, str | None] = {}
        self._looks_for_feeds = run.source.start.sitemaps == _AUTO and run.source.scope.follow_links
        self._feeds_of: Counter[str] = Counter()
        self._jobs: Turns[Job] = Turns(_MOST_OF_ORIGIN)
        self._tasks: set[asyncio.Task[None]] = set()
        self._bodies = BodyRoom(_MOST_BYTES)
        #: sitemaps for whose bodies there was no room
        self._put_back: list[str] = []
        # One sitemap at a time, because a large one takes much processor time.
        self._parsing = ThreadPoolExecutor(1, thread_name_prefix="sitemaps")
        self._pending = 0
        #: by host: jobs that are repeated after a failure, or wait for that, and its code; and the timers of those that wait
        self._retried: Counter[str] = Counter()
        self._codes: dict[str, int] = {}
        self._timers: dict[asyncio.TimerHandle, tuple[str, Callable[[], None]]] = {}
        self._given_up: set[str] = set()
        self._setting_dates = 0
        self._release: Callable[[], None] | None = None
        self._stopped = False
        #: sitemaps that were read in this run, and whose lastmods are not used yet
        self._undated: list[str] = []
        #: sitemaps that this process was sent in full
        self._read_here: set[str] = set()
        self._committed: dict[str, asyncio.Future[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def hold(self) -> None:
        """Keeps the crawl from ending until everything is read."""
        if self._release is None:
            self._release = self._hold()

    def start(self, start_urls: Sequence[str], roots: Sequence[str], feeds: Sequence[str] = ()) -> None:
        """Begins to read; ``roots`` are the sitemaps of earlier runs whose dates due rows have to wait for, ``feeds`` their feeds."""
        self._loop = asyncio.get_running_loop()
        if not self._revisits.is_set():
            self._waiting = asyncio.ensure_future(self._wait_for_revisits())
        listed = self._run.source.start.sitemaps
        if listed == _AUTO:
            for url in (*start_urls, *roots):
                self.add_origin(urls.origin_of(url))
        else:
            for url in listed:
                self._enqueue(WantedSitemap(url=urls.resolve(url), is_root=True))
        for url in feeds:
            self._add_feed(url)
        # If there is nothing to read, that is known now.
        self._add_job("", self._do_nothing)

    def add_origin(self, origin: str) -> None:
        """Looks for the sitemaps of an origin that is part of the crawl, once."""
        if origin in self._origins or self._stopped or len(self._origins) >= _MAX_ORIGINS:
            return
        self._origins.add(origin)
        if self._run.boundary.decide_sitemap(f"{origin}/sitemap.xml").allowed:
            self._add_job(origin, lambda: self._find_sitemaps(origin))

    def note_visit(self, item: Document | Outcome) -> None:
        """Has the feeds read that a page names, where its links are followed; called in the reactor with each end of a visit."""
        page = item.page if isinstance(item, Document) else None
        if page is None or not page.feeds or not self._looks_for_feeds:
            return
        if not (page.nofollow and self._run.source.keep.meta_robots):
            self._note_feeds(item.claim.url, item.claim.depth, page.feeds)

    def _note_feeds(self, page_url: str, depth: int, feeds: Sequence[str]) -> None:
        """Reads feeds that a page names: one that a start page names, or a second page.

        One that a single page names, such as that of its comments, tells what the page does.
        """
        for url in feeds:
            first = self._feeds.get(url, "")
            if first is None or (not first and len(self._feeds) >= _MAX_NAMED):
                continue
            if depth and first in {"", page_url}:
                self._feeds[url] = page_url
            else:
                self._add_feed(url)

    def _add_feed(self, url: str) -> None:
        self._feeds[url] = None
        origin = urls.origin_of(url)
        if self._stopped or self._feeds_of[origin] >= _MAX_FEEDS_OF_ORIGIN:
            return
        if not self._run.boundary.decide_sitemap(url).allowed:
            return
        self._feeds_of[origin] += 1
        self._enqueue(WantedSitemap(url=url, is_guess=True, is_feed=True, origins=frozenset({origin}), named_by=origin))

    def on_committed(self, part: SitemapPart) -> None:
        """Notes that a part is in the store; called by the writer thread."""
        self._sender.on_committed(part)
        if part.end is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._finish_waiting, part.url)

    def find_retried(self) -> dict[str, int] | None:
        """The hosts of what is still to be read, each with the code of a failure, where all of it has failed and is tried again.

        None where it is not so. Any thread may call it.
        """
        retried, codes = dict(self._retried), dict(self._codes)
        if self._release is not None and (self._setting_dates or sum(retried.values()) != self._pending):
            return None
        return {host: codes.get(host, int(Code.IO_ERROR)) for host in retried}

    def give_up(self, codes: Mapping[str, int]) -> None:
        """Repeats nothing more at hosts; any thread may call it."""
        self._given_up |= codes.keys()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end_pauses)

    def _end_pauses(self) -> None:
        """Begins at once what waits for a host that is given up: it fails without a request."""
        for timer, (host, add) in list(self._timers.items()):
            if host in self._given_up:
                timer.cancel()
                add()

    async def stop(self) -> None:
        """Ends all reading; a sitemap that was not read to its end is read by the next run."""
        self._stopped = True
        self._sender.stop()
        self._jobs.clear()
        tasks = [*self._tasks, *([self._waiting] if self._waiting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._parsing.shutdown(wait=False, cancel_futures=True)

    async def _do_nothing(self) -> None:
        """A job without work."""

    def _enqueue(self, wanted: WantedSitemap) -> None:
        if self._queue.accept(wanted):
            self._add_reading(wanted.url)

    def _add_reading(self, url: str) -> None:
        self._add_job(urls.origin_of(url), lambda: self._read(url))

    def _add_job(self, origin: str, job: Job) -> None:
        self.hold()
        self._pending += 1
        self._jobs.add(origin, job)
        self._begin_jobs()

    def _begin_jobs(self) -> None:
        while len(self._tasks) < _MOST_AT_ONCE and not (self._stopped or self._bodies.is_low):
            if (taken := self._jobs.take()) is None:
                return
            origin, job = taken
            task = asyncio.ensure_future(self._work(job))
            self._tasks.add(task)
            task.add_done_callback(partial(self._end_job, origin))

    def _end_job(self, origin: str, task: asyncio.Task[None]) -> None:
        self._jobs.end(origin)
        self._tasks.discard(task)
        if not (self._bodies.is_low or self._stopped):
            for url in self._take_put_back():
                self._pending -= 1
                self._add_reading(url)
        self._begin_jobs()

    def _take_put_back(self) -> Sequence[str]:
        found, self._put_back = self._put_back, []
        return found

    async def _work(self, job: Job) -> None:
        try:
            await job()
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)
        except CrawlEnds:
            return
        except Exception:
            # The outermost call of the stage: an error with one sitemap never ends a crawl.
            logger.exception("a sitemap cannot be read")
        self._pending -= 1
        if self._pending == 0:
            await self._set_due_dates()

    def _retry(self, origin: str, job: Job, error: SideRequestFailed, attempt: int) -> bool:
        """Whether a job of an origin is repeated after its ``attempt``-th failure (from 1); until then it counts as unfinished."""
        retries, asked = self._run.source.fetch.retries, error.retry_after_seconds
        host = urls.host_and_port(origin)
        if (
            host in self._given_up
            or not error.transient
            or not backoff.may_retry(attempt, retries=retries, retry_after_seconds=asked)
        ):
            return False
        self._pending += 1
        self._retried[host] += 1
        self._codes[host] = error.code

        async def repeat() -> None:
            try:
                await job()
            finally:
                self._retried[host] -= 1
                if not self._retried[host]:
                    del self._retried[host], self._codes[host]

        def add() -> None:
            del self._timers[timer]
            self._pending -= 1
            if not self._stopped:
                self._add_job(origin, repeat)

        timer = asyncio.get_running_loop().call_later(backoff.retry_pause_seconds(attempt, asked), add)
        self._timers[timer] = host, add
        return True

    async def _wait_for_revisits(self) -> None:
        """Lets known pages be visited by the dates that were read so far, where sitemaps take too long."""
        await asyncio.sleep(_REVISIT_SECONDS)
        if len(self._origins) < 2 and not self._time.waits_for_many:
            await asyncio.sleep(_ALONE_SECONDS - _REVISIT_SECONDS)
        if not self._revisits.is_set():
            logger.warning("known pages do not wait for the sitemaps that are left: these are slow")
            await self._set_due_dates()
            self._revisits.set()

    async def _set_due_dates(self) -> None:
        """Sets the due dates of rows by the lastmods that were read, and allows the crawl to end if nothing is left."""
        run, read = self._run, self._undated
        self._undated = []
        self._setting_dates += 1
        try:
            if (
                read
                and not run.forced
                and (run.source.lifecycle.trust_sitemap or run.source.lifecycle.intervals.are_set)
            ):
                count = await asyncio.to_thread(run.write, lambda transaction: self._write_dates(transaction, read))
                if count:
                    logger.info("%d URLs are not visited: their sitemaps say that they did not change", count)
        except (StoreError, LeaseLost) as error:
            run.shutdown.fail(error)
        finally:
            self._setting_dates -= 1
        if self._pending or self._setting_dates or self._stopped:
            # An origin was added meanwhile.
            return
        self._revisits.set()
        release, self._release = self._release, None
        if release is not None:
            release()

    def _write_dates(self, transaction: Transaction, read: Sequence[str]) -> int:
        """Puts rows off and brings rows forward; returns how many are put off."""
        run, lifecycle = self._run, self._run.source.lifecycle
        dates = Dates(
            source_id=run.source_id,
            run_id=run.id,
            horizon_ms=run.row.horizon_ms,
            urls=read,
            now_ms=clock.now_ms(),
            longest_ms=lifecycle.intervals.max_ms,
        )
        count = sitemap_table.put_off(transaction, dates) if lifecycle.trust_sitemap else 0
        if lifecycle.intervals.are_set:
            sitemap_table.bring_forward(transaction, dates)
        return count

    async def _find_sitemaps(self, origin: str, attempt: int = 0) -> None:
        """Enqueues the sitemaps that the robots.txt of an origin names, and its /sitemap.xml."""
        origins = frozenset({origin})
        own = WantedSitemap(url=f"{origin}/sitemap.xml", is_guess=True, origins=origins, named_by=origin)
        try:
            self._side.check_open()
            rules = await self._robots.get_rules(origin)
        except SideRequestFailed as error:
            if self._retry(origin, lambda: self._find_sitemaps(origin, attempt + 1), error, attempt + 1):
                return
            if self._obeys:
                logger.info("no sitemaps of %s: %s", origin, error)
            else:
                self._enqueue(own)
            return
        for url in await self._sort(rules.sitemaps):
            is_own = urls.origin_of(url) == origin
            self._enqueue(
                WantedSitemap(url=url, in_robots_txt=is_own, is_root=is_own, origins=origins, named_by=origin)
            )
        if not self._obeys or rules.decide(own.url).allowed:
            self._enqueue(own)

    async def _read(self, url: str, attempt: int = 0) -> None:
        if self._time.is_over(urls.origin_of(url)):
            await self._leave_out(url)
            return
        try:
            with self._bodies.hold() as held:
                await self._fetch(url, held)
        except SideRequestFailed as error:
            if held.refused:
                self._pending += 1
                self._put_back.append(url)
                return
            again = partial(self._read, url, attempt + 1)
            if self._retry(urls.origin_of(url), again, error, attempt + 1):
                return
            await self._send_end(self._queue.find(url), SitemapEnd(code=error.code, error=str(error)))
        if self._queue.end(url):
            self._add_reading(url)

    async def _leave_out(self, url: str) -> None:
        """Leaves a sitemap to the next run; ``status`` tells of those that the source file names."""
        origin, minutes = urls.origin_of(url), round(_ORIGIN_SECONDS / 60)
        if self._time.is_news(origin):
            logger.warning("sitemaps of %s are left to the next run: they took more than %d minutes", origin, minutes)
        wanted = self._queue.find(url)
        if wanted.is_root and not wanted.named_by:
            error = f"left to the next run: those of its host took more than {minutes} minutes"
            await self._send_end(wanted, SitemapEnd(code=Code.TIMEOUT, error=error))

    async def _fetch(self, url: str, held: HeldBody) -> None:
        run, wanted = self._run, self._queue.begin(url)
        row = await asyncio.to_thread(run.read, lambda transaction: sitemap_table.find(transaction, run.source_id, url))
        is_good = row is not None and row.is_good
        if row is not None and is_good and row.run_id == run.id and url not in self._read_here:
            # This run read the sitemap before it was interrupted.
            self._undated.append(url)
            await self._enqueue_known_children(wanted, row)
            return
        validators = Validators()
        # What was read with less rights is read once more in full.
        if row is not None and is_good and not run.forced and url not in self._read_here:
            validators = Validators(etag=row.etag, last_modified=row.last_modified)
        sitemap = await fetch_sitemap(
            url,
            validators,
            side=self._side,
            boundary=run.boundary,
            check=lambda one: self._check_robots(wanted, one),
            count_bytes=held.count,
        )
        wanted = self._queue.begin(url)
        if sitemap is None and row is not None:
            await self._send_end(wanted, SitemapEnd(code=304))
            await self._enqueue_known_children(wanted, row)
        elif sitemap is not None:
            self._read_here.add(url)
            committed = self._expect_end(url)
            routes = self._run.source.scope.hash_routes
            parsed = await self._in_thread(lambda: parse(wanted, sitemap, self._sender.send, routes=routes))
            await committed
            self._log_end(wanted, parsed)
            await self._enqueue_children(wanted, parsed.children)

    async def _enqueue_known_children(self, wanted: WantedSitemap, row: SitemapRow) -> None:
        found = await asyncio.to_thread(
            self._run.read, lambda transaction: sitemap_table.find_children(transaction, row.id)
        )
        await self._enqueue_children(wanted, found)

    async def _enqueue_children(self, wanted: WantedSitemap, children: Sequence[str]) -> None:
        # Those that the runs before left out come first.
        for url in await self._sort(children):
            self._enqueue(build_child(wanted, url))

    async def _sort(self, found: Sequence[str]) -> list[str]:
        run = self._run
        if len(found) < 2:
            # Most hosts name none, or one.
            return [*found]
        return await asyncio.to_thread(
            run.read, lambda transaction: sitemap_table.sort_by_reading(transaction, run.source_id, found)
        )

    async def _check_robots(self, wanted: WantedSitemap, url: str) -> None:
        """Raises SideRequestFailed where robots.txt forbids ``url``, to which a sitemap leads that it does not name."""
        origin = urls.origin_of(url)
        if not self._obeys or (wanted.in_robots_txt and origin == urls.origin_of(wanted.url)):
            return
        self._side.check_open()
        await self._robots.check(url)

    async def _send_end(self, wanted: WantedSitemap, end: SitemapEnd) -> None:
        """Writes the end of a sitemap of which nothing was read."""
        committed = self._expect_end(wanted.url)
        await self._in_thread(lambda: self._sender.send(build_last_part(wanted, end)))
        await committed
        self._log_end(wanted, Parsed(end=end))

    def _log_end(self, wanted: WantedSitemap, parsed: Parsed) -> None:
        """Counts and logs how a reading ended; a /sitemap.xml that its robots.txt does not name may be missing."""
        end = parsed.end
        if end.code in SUCCESS:
            self._undated.append(wanted.url)
            note = f", {end.error}" if end.error else ""
            skipped = f", {parsed.skipped} entries without a usable URL" if parsed.skipped else ""
            what = "not modified" if end.code == 304 else f"{parsed.urls} URLs{note}{skipped}"
            logger.info("sitemap %s: %s", wanted.url, what)
        else:
            level = logging.DEBUG if wanted.is_guess and not wanted.is_root else logging.WARNING
            logger.log(level, "sitemap %s cannot be read (%d): %s", wanted.url, end.code, end.error)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._parsing, work)

    def _expect_end(self, url: str) -> asyncio.Future[None]:
        """A future that is done once the last part of a sitemap is in the store."""
        future = asyncio.get_running_loop().create_future()
        self._committed[url] = future
        return future

    def _finish_waiting(self, url: str) -> None:
        future = self._committed.pop(url, None)
        if future is not None and not future.done():
            future.set_result(None)
