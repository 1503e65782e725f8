"""Opens the members of a run; the writer ends them before it ends itself."""

from __future__ import annotations

from scrapy.crawler import Crawler

from searchcrawl.commit.cache_pipeline import CachePipeline
from searchcrawl.members.members import Members
from searchcrawl.stages import stages_of


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

    def process_item(self, item: object) -> object:
        return item
