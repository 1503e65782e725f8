"""The last item pipeline: hands the ends of visits to the writer thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from scrapy.crawler import Crawler

from searchcrawl.admission.admit import Admission
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.admission.url_normalisation import normalise_starts, normalise_submitted
from searchcrawl.cache.opening import open_cache
from searchcrawl.commit.group_commit import GroupCommit, Listeners, WriterQueue
from searchcrawl.commit.link_rows import write_start_displays
from searchcrawl.commit.orphans import release_orphans
from searchcrawl.commit.review import Review
from searchcrawl.comparison.bring_together import compare_at_begin
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.items import Document, Outcome
from searchcrawl.run import Run
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.stages import stages_of
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import recrawl_table

logger = logging.getLogger(__name__)


class CachePipeline:
    """Opens and closes the writer of a run, and hands our items to it; other items pass unchanged.

    The reactor calls it; the writer is opened and closed in a helper thread. ``visit_ends`` are called with each end of a
    visit, before the writer gets it. While the queue of the writer is full, ``process_item`` waits. ``at_end`` are awaited
    before the writer is closed: Scrapy closes all pipelines at once, and other processes may have visits under way.
    """

    def __init__(
        self,
        crawler: Crawler,
        run: Run,
        waiting: WriterQueue,
        traps: TrapWatch,
        listeners: Listeners,
        *,
        visit_ends: Sequence[Callable[[Document | Outcome], None]],
        at_end: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self._run = run
        self._visit_ends = visit_ends
        self._at_end = at_end
        self._waiting = waiting
        self._traps = traps
        self._listeners = listeners
        self._crawler = crawler
        self._writer: GroupCommit | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CachePipeline:
        return stages_of(crawler).get(cls)

    async def open_spider(self) -> None:
        self._space = asyncio.Event()
        self._waiting.on_room.append(partial(asyncio.get_running_loop().call_soon_threadsafe, self._space.set))
        try:
            self._writer = await asyncio.to_thread(self._open, self._run)
        except SearchcrawlError as error:
            logger.warning("the writer cannot begin: %s", error)
            self._run.shutdown.fail(error)

    async def process_item(self, item: object) -> object:
        if not isinstance(item, Document | Outcome) or self._writer is None:
            return item
        for call in self._visit_ends:
            call(item)
        self._waiting.submit(item)
        while self._waiting.is_full and self._run.shutdown.failure is None:
            self._space.clear()
            await self._space.wait()
        return item

    async def close_spider(self) -> None:
        for call in self._at_end:
            await call()
        if self._writer is not None:
            await asyncio.to_thread(self._writer.finish)
        rewriting = self._run.rewriting
        for name, count in rewriting.plugin_errors.items():
            self._crawler.stats.inc_value(f"searchcrawl/rewriter_errors/{name}", count)
        rewriting.close()

    def _open(self, run: Run) -> GroupCommit:
        compare_at_begin(run)
        admission = Admission.of_run(run, self._traps)
        # When the number of URLs of a pattern is limited for the first time, no URL has been counted yet.
        recount = any(key.startswith("scope.") for key in run.forced)
        run.write(self._traps.open, recount=recount)
        review = Review(run, admission, self._listeners.hold)
        review.open()
        if run.source.lifecycle.orphans == "check":
            release_orphans(run)
        self._admit_start(run, admission)
        return GroupCommit(
            run,
            open_cache(run.project, run.source.name),
            admission,
            self._waiting,
            traps=self._traps,
            review=review,
            listeners=self._listeners,
        )

    def _admit_start(self, run: Run, admission: Admission) -> None:
        named = dict.fromkeys((*read_start_urls(run.project, run.source), *run.user_starts))
        starts, found = normalise_starts(list(named), run.rewriting)
        run.starts = tuple(starts)

        def admit(transaction: Transaction) -> None:
            admission.note_rollback()
            if run.display is not None and run.rewriting.displays:
                write_start_displays(transaction, run.source_id, found, run.display)
            submitted = recrawl_table.load_submitted(transaction, run.source_id)
            admission.admit(transaction, [found, *normalise_submitted(submitted, run.rewriting)])
            recrawl_table.remove_submitted(transaction, run.source_id, submitted)

        run.write(admit)
        admission.note_commit()
        for start in dict.fromkeys(starts):
            decision = start.decision if start.code else run.boundary.decide(start.url, 0)
            if not decision.allowed:
                what = "discarded by a rewriter" if start.code else "outside the boundary"
                logger.warning("start URL %s: %s (%s)", what, start.url, decision.text)
