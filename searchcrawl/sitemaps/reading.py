"""Reads the sitemaps of a run: finds them, asks for them, and has what they list admitted (L5)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.items import SitemapEnd, SitemapPart
from searchcrawl.politeness import backoff
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.run import Run
from searchcrawl.sitemaps.parts import Answer, Parsed, PartSender, ReadingStopped, parse
from searchcrawl.sitemaps.queue import SitemapQueue, Wanted, child_of
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.sitemaps import sitemap_table
from searchcrawl.store.sitemaps.sitemap_table import Dates, SitemapRow

logger = logging.getLogger(__name__)

#: Sitemaps that are asked for or read at once.
_WORKERS: Final = 4
#: Origins whose robots.txt and /sitemap.xml are looked into.
_MAX_ORIGINS: Final = 10_000
_AUTO: Final = "auto"

T = TypeVar("T")
Job = Callable[[], Coroutine[Any, Any, None]]


class SitemapFailed(Exception):
    """A sitemap cannot be had: ``code`` as for a URL; a ``transient`` failure is tried again."""

    def __init__(
        self, message: str, *, code: int, transient: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        self.code = code
        self.transient = transient
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What reading needs of others.

    ``fetch`` asks for a sitemap with these validators (etag, last_modified) and answers None for
    304; it raises SitemapFailed. ``robots_of`` answers the rules of an origin or raises
    SitemapFailed; it is None where robots.txt is not obeyed. ``later`` calls after so many seconds.
    ``submit`` hands a part to the writer, and answers False where there is none any more. ``hold`` keeps
    the crawl from being over until what it returns is called. ``revisits`` is set once the sitemaps known
    so far were read, so that what they say of due rows is known.
    """

    fetch: Callable[[str, tuple[str | None, str | None]], Awaitable[Answer | None]]
    robots_of: Callable[[str], Awaitable[RobotsFile]] | None
    later: Callable[[float, Callable[[], None]], object]
    submit: Callable[[SitemapPart], bool]
    hold: Callable[[], Callable[[], None]]
    revisits: threading.Event


class SitemapReading:
    """The sitemaps of one run; all methods are for the event loop.

    The crawl is held as long as anything is to be read; each time nothing is left, what the
    lastmods say about due rows is written.
    """

    def __init__(self, run: Run, means: Means) -> None:
        self._run = run
        self._means = means
        self._queue = SitemapQueue(run.boundary)
        self._sender = PartSender(self._submit)
        self._origins: set[str] = set()
        self._jobs: deque[Job] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        # One at a time: a large one takes its part of the processor.
        self._parsing = ThreadPoolExecutor(1, thread_name_prefix="sitemaps")
        self._pending = 0
        self._settling = 0
        self._release: Callable[[], None] | None = None
        self._stopped = False
        #: read, and their dates not looked at yet
        self._undecided: list[str] = []
        self._committed: dict[str, asyncio.Future[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def hold(self) -> None:
        """From now on the crawl is not over until everything is read."""
        if self._release is None:
            self._release = self._means.hold()

    def start(self, start_urls: Sequence[str], roots: Sequence[str]) -> None:
        """Begins to read; ``roots`` are the sitemaps of earlier runs whose dates due rows have to wait for."""
        self._loop = asyncio.get_running_loop()
        named = self._run.source.start.sitemaps
        if named == _AUTO:
            for url in (*start_urls, *roots):
                self.met(urls.origin_of(url))
        else:
            for url in named:
                self._want(Wanted(url=urls.resolve(url)))
        # Where there is nothing, that is known now.
        self._add(self._nothing)

    def met(self, origin: str) -> None:
        """An origin is part of the crawl: its robots.txt and its /sitemap.xml are looked into, once."""
        if origin in self._origins or self._stopped or len(self._origins) >= _MAX_ORIGINS:
            return
        self._origins.add(origin)
        if self._run.boundary.decide_sitemap(f"{origin}/sitemap.xml").allowed:
            self._add(lambda: self._look_into(origin))

    def committed(self, part: SitemapPart) -> None:
        """A part is in the store; called by the writer thread."""
        self._sender.committed(part)
        if part.end is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended, part.url)

    async def stop(self) -> None:
        """Ends everything; what was not read to its end is read by the next run."""
        self._stopped = True
        self._sender.stop()
        self._jobs.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._parsing.shutdown(wait=False, cancel_futures=True)

    async def _nothing(self) -> None:
        """A job without work."""

    def _want(self, wanted: Wanted) -> None:
        if self._queue.accept(wanted):
            self._add(lambda: self._read(wanted))

    def _add(self, job: Job) -> None:
        self.hold()
        self._pending += 1
        self._jobs.append(job)
        self._begin_jobs()

    def _begin_jobs(self) -> None:
        while self._jobs and len(self._tasks) < _WORKERS and not self._stopped:
            task = asyncio.ensure_future(self._work(self._jobs.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._begin_jobs()

    async def _work(self, job: Job) -> None:
        try:
            await job()
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)
        except ReadingStopped:
            return
        except Exception:
            # The edge of the stage: one sitemap never ends a crawl.
            logger.exception("a sitemap cannot be read")
        self._pending -= 1
        if self._pending == 0:
            await self._all_read()

    def _again(self, job: Job, pause_seconds: float) -> None:
        """Has a job done after a pause; it counts as to be done until then."""
        self._pending += 1

        def add() -> None:
            self._pending -= 1
            if not self._stopped:
                self._add(job)

        self._means.later(pause_seconds, add)

    async def _all_read(self) -> None:
        """Lets the dates decide what is due, and the crawl end."""
        self._settling += 1
        try:
            await self._decide()
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)
        finally:
            self._settling -= 1
        if self._pending or self._settling or self._stopped:
            # An origin was met meanwhile.
            return
        self._means.revisits.set()
        release, self._release = self._release, None
        if release is not None:
            release()

    async def _decide(self) -> None:
        run = self._run
        read, self._undecided = self._undecided, []
        if run.forced or not read:
            return
        dates = Dates(source_id=run.source_id, run_id=run.id, horizon_ms=run.row.horizon_ms, urls=read)
        count = await asyncio.to_thread(run.write, lambda transaction: self._apply(transaction, dates))
        if count:
            logger.info("%d URLs are not visited: their sitemaps say that they did not change", count)

    def _apply(self, transaction: Transaction, dates: Dates) -> int:
        """Writes what the dates decide; how many rows are put off."""
        lifecycle = self._run.source.lifecycle
        count = sitemap_table.put_off(transaction, dates) if lifecycle.trust_sitemap else 0
        if lifecycle.recrawl_every_hours:
            sitemap_table.bring_forward(transaction, dates)
        return count

    async def _look_into(self, origin: str, attempt: int = 0) -> None:
        """Wants the sitemaps that an origin names, and its /sitemap.xml."""
        guess = Wanted(url=f"{origin}/sitemap.xml", guessed=True, origins=frozenset({origin}))
        if self._means.robots_of is None:
            self._want(guess)
            return
        try:
            rules = await self._means.robots_of(origin)
        except SitemapFailed as error:
            pause = self._pause(error, attempt + 1)
            if pause is not None:
                self._again(lambda: self._look_into(origin, attempt + 1), pause)
            else:
                logger.info("no sitemaps of %s: %s", origin, error)
            return
        for url in rules.sitemaps:
            self._want(Wanted(url=url, invited=True, origins=frozenset({origin, urls.origin_of(url)})))
        if rules.decide(guess.url).allowed:
            self._want(guess)

    def _pause(self, error: SitemapFailed, attempt: int) -> float | None:
        """The seconds until the next try, None where there is none."""
        retries = self._run.source.fetch.retries
        asked = error.retry_after_seconds
        if not error.transient or not backoff.may_retry(attempt, retries=retries, retry_after_seconds=asked):
            return None
        return backoff.retry_pause_seconds(attempt, asked)

    async def _read(self, wanted: Wanted) -> None:
        row = await asyncio.to_thread(self._run.read, lambda transaction: self._known(transaction, wanted.url))
        if row is not None and row.good and row.run_id == self._run.id:
            # This run read it before it was cut off.
            self._undecided.append(wanted.url)
            await self._want_known_children(wanted, row)
            return
        try:
            await self._ask_robots(wanted)
            conditional = row is not None and row.good and not self._run.forced
            answer = await self._means.fetch(
                wanted.url, (row.etag, row.last_modified) if row is not None and conditional else (None, None)
            )
        except SitemapFailed as error:
            await self._failed(wanted, error)
            return
        if answer is None and row is not None:
            await self._report(wanted, Parsed(end=SitemapEnd(code=304)), sent=False)
            await self._want_known_children(wanted, row)
        elif answer is not None:
            ended = self._await_end(wanted.url)
            parsed = await self._in_thread(lambda: parse(wanted, answer, self._sender.send))
            await ended
            await self._report(wanted, parsed, sent=True)
            for url in parsed.children:
                self._want(child_of(wanted, url))

    def _known(self, transaction: Transaction, url: str) -> SitemapRow | None:
        return sitemap_table.find(transaction, self._run.source_id, url)

    async def _want_known_children(self, wanted: Wanted, row: SitemapRow) -> None:
        found = await asyncio.to_thread(self._run.read, lambda transaction: sitemap_table.children(transaction, row.id))
        for url in found:
            self._want(child_of(wanted, url))

    async def _ask_robots(self, wanted: Wanted) -> None:
        """Raises SitemapFailed where robots.txt forbids a sitemap that it does not name itself."""
        if wanted.invited or self._means.robots_of is None:
            return
        rules = await self._means.robots_of(urls.origin_of(wanted.url))
        decision = rules.decide(wanted.url)
        if not decision.allowed:
            raise SitemapFailed(f"robots.txt: {decision.rule}", code=Code.ROBOTS)

    async def _failed(self, wanted: Wanted, error: SitemapFailed) -> None:
        again = replace(wanted, attempt=wanted.attempt + 1)
        pause = self._pause(error, again.attempt)
        if pause is not None:
            self._again(lambda: self._read(again), pause)
            return
        await self._report(wanted, Parsed(end=SitemapEnd(code=error.code, error=str(error))), sent=False)

    async def _report(self, wanted: Wanted, parsed: Parsed, *, sent: bool) -> None:
        """Writes how a reading ended, and logs it; a /sitemap.xml that nobody promised may be missing."""
        end = parsed.end
        if not sent:
            ended = self._await_end(wanted.url)
            await self._in_thread(lambda: self._sender.send(SitemapPart(url=wanted.url, end=end)))
            await ended
        if end.code in (200, 304):
            self._undecided.append(wanted.url)
            said = f", {end.error}" if end.error else ""
            skipped = f", {parsed.skipped} entries without a usable URL" if parsed.skipped else ""
            what = "not modified" if end.code == 304 else f"{parsed.urls} URLs{said}{skipped}"
            logger.info("sitemap %s: %s", wanted.url, what)
        else:
            level = logging.DEBUG if wanted.guessed else logging.WARNING
            logger.log(level, "sitemap %s cannot be read (%d): %s", wanted.url, end.code, end.error)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._parsing, work)

    def _await_end(self, url: str) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self._committed[url] = future
        return future

    def _ended(self, url: str) -> None:
        future = self._committed.pop(url, None)
        if future is not None and not future.done():
            future.set_result(None)

    def _submit(self, part: SitemapPart) -> None:
        if not self._means.submit(part):
            raise ReadingStopped
