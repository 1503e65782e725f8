"""Starts the delivery of a crawl with the spider, and ends the run once everything is sent.

It is an extension and no pipeline, because it takes batches instead of items and must end after the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from searchcrawl.cache.opening import open_cache
from searchcrawl.delivery.delivery_thread import DeliveryThread
from searchcrawl.delivery.receivers.sending import Receivers, note_receivers
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.index.opening import open_index
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.batches.batch_table import SealedBatch

logger = logging.getLogger(__name__)


class DeliveryExtension:
    """Opens the index of the project and starts the delivery thread; waits for its end.

    Once everything is delivered it calls ``at_end`` in their order, in a thread, with the reason why the crawl ended.
    """

    def __init__(
        self,
        run: Run,
        *,
        at_end: Sequence[Callable[[str], None]],
        retry_seconds: float,
        hand_over: Callable[[], None] = lambda: None,
    ) -> None:
        self._run = run
        self._hand_over = hand_over
        self._at_end = at_end
        self._retry_seconds = retry_seconds
        self._delivery: DeliveryThread | None = None
        self._receivers: Receivers | None = None
        self._ended: asyncio.Event | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeliveryExtension:
        extension = stages_of(crawler).get(cls)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(extension.engine_stopped, signal=signals.engine_stopped)
        return extension

    def submit(self, batch: SealedBatch) -> None:
        """Puts a sealed batch into the queue; any thread may call it."""
        if self._delivery is not None:
            self._delivery.submit(batch)
        if self._receivers is not None:
            self._receivers.wake()

    def has_room(self) -> bool:
        """Whether the cache may grow; any thread may call it."""
        return self._delivery is None or self._delivery.has_room()

    def has_sent(self) -> bool:
        """Has everything sent that waits for the index; whether nothing is left of it. Any thread may call it."""
        return self._delivery is None or self._delivery.has_sent()

    def find_outage(self) -> Exception | None:
        """Why the index is waited for, None while it answers; any thread may call it."""
        return None if self._delivery is None else self._delivery.outage

    async def spider_opened(self, spider: Spider) -> None:
        self._ended = asyncio.Event()
        try:
            self._delivery = await asyncio.to_thread(self._open)
        except SearchcrawlError as error:
            logger.warning("the delivery cannot begin: %s", error)
            self._run.shutdown.fail(error)
            return
        except Exception as error:
            logger.exception("the delivery cannot begin")
            self._run.shutdown.fail(error)
            return

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        try:
            await self._finish(reason)
        finally:
            if self._ended is not None:
                self._ended.set()

    async def engine_stopped(self) -> None:
        """Waits for the delivery: the engine does not, if a first signal to stop comes while the crawl ends (X-I1)."""
        if self._ended is not None:
            await self._ended.wait()

    async def _finish(self, reason: str) -> None:
        if self._delivery is None and self._run.shutdown.failure is None:
            # Another error kept the crawl from beginning: the next run continues this one.
            return
        try:
            if self._delivery is not None:
                await asyncio.to_thread(self._finish_delivery, self._delivery, reason)
        except Exception as error:
            logger.exception("the delivery cannot end")
            self._run.shutdown.fail(error)
        for call in self._at_end:
            # It runs in a thread, because it may have to wait for the store.
            await asyncio.to_thread(call, reason)

    def _finish_delivery(self, delivery: DeliveryThread, reason: str) -> None:
        delivery.finish(reason)
        if self._receivers is not None:
            self._receivers.finish(delivery.outcome)
            delivery.free_space()

    def _open(self) -> DeliveryThread:
        run, cache = self._run, open_cache(self._run.project, self._run.source.name)
        delivery = DeliveryThread(
            run, open_index(run.project), cache, retry_seconds=self._retry_seconds, hand_over=self._hand_over
        )
        if names := note_receivers(run):
            self._receivers = Receivers(run, cache, names, retry_seconds=self._retry_seconds, is_crawl=True)
        return delivery
