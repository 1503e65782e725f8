"""The last item pipeline: hands settled visits to the writer thread and returns."""

from __future__ import annotations

import asyncio
import logging

from scrapy.crawler import Crawler

from searchcrawl.admission.admit import Admission
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.admission.url_normalisation import named_start
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.codes import REFUSED
from searchcrawl.commit.display_changes import show_start
from searchcrawl.commit.group_commit import MAX_BACKLOG, GroupCommit, Listeners
from searchcrawl.commit.review import review
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.items import Document, Outcome, SitemapPart
from searchcrawl.run import Run
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.store.batches.batch_table import SealedBatch
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import run_table

logger = logging.getLogger(__name__)


class CachePipeline:
    """Owns the writer of a run; items other than ours pass through untouched."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._writer: GroupCommit | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CachePipeline:
        return cls(crawler)

    async def open_spider(self) -> None:
        run: Run = self._crawler.spider.run  # type: ignore[union-attr]  # our spiders have one
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._space = asyncio.Event()
        try:
            self._writer = await asyncio.to_thread(self._open, run)
        except SearchcrawlError as error:
            logger.warning("the writer cannot begin: %s", error)
            run.fail(error)
            return
        run.wires.settle = self._writer.submit
        run.wires.list_urls = self._writer.submit

    async def process_item(self, item: object) -> object:
        if not isinstance(item, Document | Outcome) or self._writer is None:
            return item
        for tell in self._run.wires.ended:
            tell(item)
        self._writer.submit(item)
        while self._writer.backlog > MAX_BACKLOG and self._run.failure is None:
            self._space.clear()
            await self._space.wait()
        return item

    async def close_spider(self) -> None:
        if self._writer is not None:
            self._run.wires.settle = None
            self._run.wires.list_urls = None
            await asyncio.to_thread(self._writer.finish)
        rewriting = self._run.rewriting
        for name, count in rewriting.plugin_errors.items():
            self._crawler.stats.inc_value(f"searchcrawl/rewriter_errors/{name}", count)
        rewriting.close()

    def _open(self, run: Run) -> GroupCommit:
        known, most = 0, run.source.scope.max_urls
        if most:
            known = run.read(lambda transaction: run_table.count_urls(transaction, run.source_id, without=REFUSED))
        traps = self._watch_traps(run)
        admission = Admission(
            source_id=run.source_id, boundary=run.boundary, max_urls=most, known_urls=known, traps=traps
        )
        if run.rules_edited:
            review(run, admission)
        self._admit_start(run, admission)
        wires = run.wires
        return GroupCommit(
            run,
            DocumentCache(run.project.cache_dir / run.source.name),
            admission,
            traps=traps,
            in_flight=lambda: wires.in_flight() if wires.in_flight else 0,
            listeners=Listeners(
                committed=self._committed, listed=self._listed, sealed=self._sealed, failed=self._failed
            ),
        )

    def _watch_traps(self, run: Run) -> TrapWatch:
        scope = run.source.scope
        traps = TrapWatch(
            run.source_id,
            trap_after=scope.trap_after,
            max_urls_per_pattern=scope.max_urls_per_pattern,
            file=run.source.file,
        )
        # Who limits their number for the first time has counted none yet.
        recount = any(key.startswith("scope.") for key in run.forced)
        run.write(lambda transaction: traps.open(transaction, recount=recount))
        if traps.active:
            run.wires.traps = traps
        return traps

    def _admit_start(self, run: Run, admission: Admission) -> None:
        starts, found = named_start(read_start_urls(run.project, run.source), run.rewriting)
        run.starts = tuple(starts)

        def admit(transaction: Transaction) -> dict[str, int]:
            admission.rolled_back()
            if run.display is not None and run.rewriting.displays:
                show_start(transaction, run.source_id, found, run.display)
            discovered, rejected = admission.admit(transaction, [found])
            return {"discovered": discovered, "rejected": rejected}

        run.write_counted(admit)
        admission.committed()
        for start in dict.fromkeys(starts):
            decision = start.decision if start.code else run.boundary.decide(start.url, 0)
            if not decision.allowed:
                what = "discarded by a rewriter" if start.code else "outside the boundary"
                logger.warning("start URL %s: %s (%s)", what, start.url, decision.text)

    def _committed(self, visits: int) -> None:
        for tell in self._run.wires.committed:
            tell(visits)
        self._loop.call_soon_threadsafe(self._space.set)

    def _listed(self, part: SitemapPart) -> None:
        for tell in self._run.wires.listed:
            tell(part)

    def _sealed(self, batch: SealedBatch) -> None:
        for tell in self._run.wires.sealed:
            tell(batch)

    def _failed(self, error: Exception) -> None:
        # First the failure: who waits for space looks at it when woken, and nobody wakes them again.
        self._run.fail(error)
        self._loop.call_soon_threadsafe(self._space.set)
