"""Lists what there is with the crawl: from its beginning on, and until its end."""

from __future__ import annotations

import asyncio

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from searchcrawl.kinds.listing import Listing
from searchcrawl.stages import stages_of


class ListingExtension:
    """Begins to list with the engine, and ends with the spider."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ListingExtension:
        extension = cls(stages_of(crawler).get(Listing))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        # Before the first claim: an empty table must not end the crawl.
        self._listing.hold()

    def engine_started(self) -> None:
        self._listing.start()

    async def spider_closed(self, spider: Spider) -> None:
        await asyncio.to_thread(self._listing.stop)
