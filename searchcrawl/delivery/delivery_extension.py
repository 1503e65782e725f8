"""The delivery of a crawl: a thread sends sealed batches to the index while the crawl goes on, and then the run ends.

What starts it is an extension and no pipeline, because it takes batches instead of items and must end after the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.opening import open_cache
from searchcrawl.commit.shared_copies import settle_shared_copies
from searchcrawl.delivery import closing, delivery_queue, removals
from searchcrawl.delivery.batch_sender import BatchSender
from searchcrawl.delivery.closing import Closing
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.delivery.receivers.sending import Receivers, note_receivers
from searchcrawl.exceptions import DeliveryError, SearchcrawlError
from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import Receiver
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store import batch_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.states import EndReason

logger = logging.getLogger(__name__)


class DeliveryThread:
    """Delivers the batches of one run in their order, first those that an earlier process left.

    The run fails if the store or the cache fails. If the index cannot be reached at the end, or is misconfigured, the
    error becomes ``run.delivery_failure`` and the documents wait for the next run.

    Helper threads make it, and call ``finish`` and ``free_space``. The writer calls ``submit``, the claiming thread ``has_room`` and
    ``has_sent``; any thread may read the rest. What sends, and closes the run after the last batch, runs in the thread ``delivery``.

    Before documents leave at the end ``hand_over`` is called: other sources may have copies of them.
    """

    def __init__(
        self,
        run: Run,
        receiver: Receiver,
        cache: DocumentCache,
        *,
        retry_seconds: float,
        hand_over: Callable[[], None] = lambda: None,
    ) -> None:
        self._run = run
        self._receiver = receiver
        self._retry = IndexRetry(retry_seconds)
        self._sender = BatchSender(run, receiver, cache, self._retry)
        #: told by ``finish``
        self._closing = Closing(sender=self._sender, reason=EndReason.STOPPED, hand_over=hand_over)
        self._queue: queue.SimpleQueue[SealedBatch | None] = queue.SimpleQueue()
        self._has_last_batch = False
        self._counting = threading.Lock()
        #: how many batches wait or are being sent; what an earlier process left counts as one, too
        self._under_way = 1
        self._thread = threading.Thread(target=self._deliver_all, name="delivery", daemon=True)
        self._thread.start()

    def submit(self, batch: SealedBatch) -> None:
        """Puts a sealed batch into the queue."""
        with self._counting:
            self._under_way += 1
        self._queue.put(batch)

    @property
    def outage(self) -> Exception | None:
        """Why the index is waited for; None while it answers."""
        return self._retry.outage

    def has_room(self) -> bool:
        """Whether the cache may grow; not while it is full of records that the index does not have yet."""
        run = self._run
        if not self._is_full():
            return True
        self._sender.space.free()
        if not self._is_full():
            return True
        if not run.delivers:
            logger.warning("the cache is full of documents that wait because of %s", run.source.no_delivery_key)
            run.shutdown.stop(EndReason.INDEX_AWAY)
            return False
        # No page is fetched while the cache is full, so the batch will not become full: it is sealed now.
        self._seal()
        if not self._read_unfinished():
            return True
        self._retry.limit_until_answer()
        if run.delivery_failure is not None:
            run.shutdown.stop(EndReason.INDEX_AWAY)
        return False

    def has_sent(self) -> bool:
        """Has everything sent that waits; whether nothing is left to send in this run, and nothing is being sent."""
        if not self._thread.is_alive() or self._run.is_index_away or not self._run.delivers:
            # The index is away, or gets nothing in this run: what waits is sent by another run.
            return True
        self._seal()
        # In this order: the writer seals a batch before it submits it.
        if not self._read_unfinished():
            with self._counting:
                if not self._under_way:
                    return True
        # Fetching waits for the index.
        self._retry.limit_until_answer()
        return False

    def _read_unfinished(self) -> list[SealedBatch]:
        run = self._run
        return run.read(batch_table.find_unfinished, run.source_id)

    def _is_full(self) -> bool:
        return self._sender.space.count_bytes() >= self._run.project.cache.max_bytes

    def _seal(self, *, rotate: bool = False) -> None:
        batch = delivery_queue.seal_batch(self._run, rotate=rotate)
        if batch is not None:
            self.submit(batch)

    def _note_sent(self) -> None:
        with self._counting:
            self._under_way -= 1

    def finish(self, reason: str) -> None:
        """Sends what is left, waits for all receipts, and carries out the removals; blocks until then.

        ``reason`` is the reason why the crawl ended. The receiver gets ``failed`` also if documents wait.
        """
        self._retry.limit_to_end()
        self._sender.hurry()
        self._closing = replace(self._closing, reason=reason, changes=self._run.changes)
        if self._run.shutdown.failure is None and self._run.delivers:
            try:
                self._closing.take(closing.BEFORE_LAST_BATCH)
                # A new segment begins, so that the last one can be deleted as well (E2).
                self._seal(rotate=not self._run.project.cache.preserve)
            except Exception as error:
                known = isinstance(error, SearchcrawlError)
                logger.warning("the last batch cannot be sealed: %s", error, exc_info=not known)
                self._run.shutdown.fail(error)
        self._queue.put(None)
        self._thread.join()
        if not self._run.delivers:
            return
        failed = self._run.shutdown.failure or self._run.delivery_failure
        self._receiver.end("failed" if failed else self.outcome)

    @property
    def outcome(self) -> str:
        """How the run ended, in the word that receivers are told."""
        if self._run.shutdown.failure is not None:
            return "failed"
        return "finished" if self._closing.is_completed else "stopped"

    def free_space(self) -> None:
        """Gives up records of the cache that nobody is to get any more; a failure is one of the run."""
        try:
            if self._run.shutdown.failure is None and self._run.delivery_failure is None:
                self._sender.space.free()
        except SearchcrawlError as error:
            logger.warning("the cache cannot be freed: %s", error)
            self._run.shutdown.fail(error)

    def _deliver_all(self) -> None:
        run = self._run
        try:
            try:
                self._deliver_and_close()
            except DeliveryError as error:
                self._close_without_index(error)
        except SearchcrawlError as error:
            logger.warning("the delivery stops: %s", error)
            run.shutdown.fail(error)
        except Exception as error:
            logger.exception("the delivery stops")
            run.shutdown.fail(error)

    def _deliver_and_close(self) -> None:
        if self._run.delivers:
            self._deliver()
            self._closing.take(closing.AFTER_LAST_BATCH)
        else:
            self._deliver_nothing()
            self._closing.take(closing.WITHOUT_DELIVERY)

    def _close_without_index(self, error: DeliveryError) -> None:
        """Decides at the end of the run as if the index had what waits for it: other receivers need not wait."""
        self._run.delivery_failure = error
        logger.error("documents wait for the index: %s", error)
        self._deliver_nothing()
        self._closing.take(closing.AFTER_LAST_BATCH)

    def _deliver(self) -> None:
        run = self._run
        self._receiver.begin(run.source.name, run.id)
        delivery_queue.deliver_left(self._sender)
        if run.shutdown.failure is None:
            removals.finish_removals(self._sender)
        if run.shutdown.failure is None:
            delivery_queue.continue_resend(self._sender)
        if run.shutdown.failure is None and settle_shared_copies(run, gives_way=False):
            self._closing.send_copies()
        self._note_sent()
        # The batches of a run that failed stay sealed; the next run sends them.
        while (batch := self._take_batch()) is not None:
            if run.shutdown.failure is None:
                self._sender.deliver(batch)
            self._note_sent()

    def _deliver_nothing(self) -> None:
        while not self._has_last_batch and self._take_batch() is not None:
            # They stay sealed.
            pass

    def _take_batch(self) -> SealedBatch | None:
        """Waits for the next batch; None after the last one of the run."""
        batch = self._queue.get()
        self._has_last_batch = batch is None
        return batch


class DeliveryExtension:
    """Opens the index of the project and starts the delivery thread; waits for its end. The reactor calls it, unless said.

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
