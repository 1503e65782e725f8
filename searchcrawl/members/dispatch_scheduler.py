"""What a run with members has of Scrapy: they get the claims, and the engine of its own process none."""

from __future__ import annotations

from scrapy import Spider
from scrapy.crawler import Crawler

from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.commit.cache_pipeline import CachePipeline
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.frontier.scheduler import Scheduler
from searchcrawl.http.boundary_middleware import end_refused
from searchcrawl.members.members import Members
from searchcrawl.run import Run
from searchcrawl.stages import stages_of


class DispatchScheduler(Scheduler):
    """Hands claims to the members as long as they have room; the requests of this process are side requests alone."""

    def __init__(self, crawler: Crawler, run: Run, frontier: Frontier, members: Members, traps: TrapWatch) -> None:
        super().__init__(crawler, run, frontier)
        self._members = members
        self._traps = traps

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DispatchScheduler:
        stages = stages_of(crawler)
        frontier, members = stages.get(Frontier), stages.get(Members)
        return cls(crawler, stages.get(Run), frontier, members, stages.get(TrapWatch)).listen()

    def open(self, spider: Spider) -> None:
        self._members.wake = self._wake
        super().open(spider)

    def _wake(self) -> None:
        # The engine may have as many side requests as it takes at once, and is not asked.
        self._next()
        self._sleep()

    def _next(self) -> None:
        while self._members.has_room and (found := self._frontier.next_claim()) is not None:
            host, claim = found
            decision = self._traps.refuse(claim)
            if decision is None:
                self._members.visit(host, claim)
            else:
                # The pattern of the URL was cut after the row was claimed; members know nothing of it.
                self._end(end_refused(claim, decision))


class MembersPipeline:
    """Hands what members read to the writer; no item of this process comes here."""

    def __init__(self, crawler: Crawler, members: Members, writer: CachePipeline) -> None:
        self._members = members
        self._writer = writer
        members.stats = crawler.stats.inc_value

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MembersPipeline:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(Members), stages.get(CachePipeline))

    async def open_spider(self) -> None:
        await self._members.open(self._writer.process_item)
