"""Tells the process of the run that a member ends."""

from __future__ import annotations

from typing import Final

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from searchcrawl.members.link import Link
from searchcrawl.members.messages import Closed
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

#: The statistics that the process of the run adds to its own.
_OURS: Final = ("searchcrawl/", "downloader/", "item_", "response_received_count")


class MemberExtension:
    """Says why the member ends, and what it counted, once all of its visits are over."""

    def __init__(self, crawler: Crawler, run: Run, link: Link) -> None:
        self._crawler = crawler
        self._run = run
        self._link = link

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MemberExtension:
        stages = stages_of(crawler)
        extension = cls(crawler, stages.get(Run), stages.get(Link))
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        stats = self._crawler.stats.get_stats()
        ours = {name: count for name, count in stats.items() if name.startswith(_OURS) and isinstance(count, int)}
        attributes = self._run.attributes
        unreadable = {} if attributes is None else dict(attributes.unreadable)
        await self._link.channel.send_last(Closed(reason, ours, self._run.copy_counts(), unreadable))
