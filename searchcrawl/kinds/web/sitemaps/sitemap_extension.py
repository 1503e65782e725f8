"""Reads the sitemaps of a run beside its pages: a sitemap is no row of the URL table and no page of the run."""

from __future__ import annotations

import asyncio

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.kinds.web.sitemaps.reading import SitemapReading
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store import sitemap_table


class SitemapExtension:
    """Begins to read with the engine, and ends with the spider."""

    def __init__(self, run: Run, reading: SitemapReading) -> None:
        self._run = run
        self._reading = reading

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SitemapExtension:
        stages = stages_of(crawler)
        reading = stages.find(SitemapReading)
        if reading is None:
            raise NotConfigured
        extension = cls(stages.get(Run), reading)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        # Before the first claim: an empty table must not end the crawl.
        self._reading.hold()

    async def engine_started(self) -> None:
        run = self._run
        roots, feeds = list[str](), list[str]()
        try:
            if run.source.start.sitemaps == "auto":
                feeds = await asyncio.to_thread(
                    run.read, lambda transaction: sitemap_table.find_feeds(transaction, run.source_id)
                )
            if run.source.lifecycle.trust_sitemap:
                roots = await asyncio.to_thread(
                    run.read, lambda transaction: sitemap_table.find_good_roots(transaction, run.source_id)
                )
        except SearchcrawlError as error:
            # The crawl is kept from ending, and nothing else would end it.
            run.shutdown.fail(error)
            return
        starts = [start.url for start in run.starts if not start.code]
        self._reading.start([url for url in starts if run.boundary.decide(url, 0).allowed], roots, feeds)

    async def spider_closed(self, spider: Spider) -> None:
        await self._reading.stop()
