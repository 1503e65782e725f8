"""Starts the browser of a source before its first request, and ends it after its last document."""

from __future__ import annotations

import logging

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.render.renderer import Renderer
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)


class BrowserPipeline:
    """A pipeline, because pipelines are opened before anything is requested; items pass as they are."""

    def __init__(self, run: Run, renderer: Renderer) -> None:
        self._run = run
        self._renderer = renderer

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BrowserPipeline:
        stages = stages_of(crawler)
        renderer = stages.find(Renderer)
        if renderer is None:
            raise NotConfigured
        return cls(stages.get(Run), renderer)

    async def open_spider(self) -> None:
        try:
            await self._renderer.open()
        except SearchcrawlError as error:
            logger.warning("no page can be rendered: %s", error)
            self._run.shutdown.fail(error)

    async def close_spider(self) -> None:
        await self._renderer.close()

    def process_item(self, item: object) -> object:
        return item
