"""The delivery thread: sealed batches go to the index beside the crawl (decision 1 of requirements.md)."""

from __future__ import annotations

import logging
import queue
import threading

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery import delivery_queue, removals
from searchcrawl.delivery.batch_sender import BatchSender, free_segments
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.exceptions import DeliveryError, SearchcrawlError
from searchcrawl.index.receiver import Receiver
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import SealedBatch
from searchcrawl.store.states import EndReason

logger = logging.getLogger(__name__)


class Delivery:
    """Delivers the batches of one run in their order, those first that an earlier process left.

    ``failed`` of ``run`` is called where store or cache fail; an index that cannot be reached at
    the end, or is misconfigured, becomes ``run.delivery_failure`` and its documents wait.
    """

    def __init__(self, run: Run, receiver: Receiver, cache: DocumentCache, *, retry_seconds: float) -> None:
        self._run = run
        self._receiver = receiver
        self._cache = cache
        self._retry = IndexRetry(retry_seconds)
        self._sender = BatchSender(run, receiver, cache, self._retry)
        self._queue: queue.SimpleQueue[SealedBatch | None] = queue.SimpleQueue()
        for batch in self._unfinished():
            self._queue.put(batch)
        self._thread = threading.Thread(target=self._work, name="delivery", daemon=True)
        self._thread.start()

    def submit(self, batch: SealedBatch) -> None:
        """Takes a sealed batch."""
        self._queue.put(batch)

    def has_room(self) -> bool:
        """Whether the cache may grow: not while it is full of what is on its way to the index."""
        run = self._run
        if not self._is_full():
            return True
        free_segments(self._run, self._cache)
        if not self._is_full():
            return True
        # No page comes in now that would fill the batch.
        self._seal()
        if not self._unfinished():
            return True
        self._retry.limit_until_answer()
        if run.delivery_failure is not None:
            run.shutdown.stop(EndReason.INDEX_AWAY)
        return False

    def _unfinished(self) -> list[SealedBatch]:
        run = self._run
        return run.read(lambda transaction: batch_table.unfinished(transaction, run.source_id))

    def _is_full(self) -> bool:
        return sum(size for _, size in self._cache.segments()) >= self._run.project.cache.max_bytes

    def _seal(self, *, rotate: bool = False) -> None:
        batch = delivery_queue.seal_batch(self._run, rotate=rotate)
        if batch is not None:
            self._queue.put(batch)

    def finish(self, reason: str) -> None:
        """Sends what is left, waits for all receipts, carries out the removals; blocks.

        The receiver hears ``failed`` where documents wait too; ``reason`` is why the crawl ended.
        """
        self._retry.limit_to_end()
        if self._run.shutdown.failure is None:
            self._last_batch()
        self._queue.put(None)
        self._thread.join()
        failed = self._run.shutdown.failure or self._run.delivery_failure
        self._receiver.end("failed" if failed else "finished" if reason == EndReason.FINISHED else "stopped")

    def _last_batch(self) -> None:
        try:
            # The segment that was written to last is complete: it can be given up as well (E2).
            self._seal(rotate=not self._run.project.cache.preserve)
        except SearchcrawlError as error:
            logger.warning("the last batch cannot be sealed: %s", error)
            self._run.shutdown.fail(error)

    def _work(self) -> None:
        run = self._run
        try:
            self._receiver.begin(run.source.name, run.id)
            removals.finish_removals(self._sender)
            if run.shutdown.failure is None:
                delivery_queue.continue_resend(self._sender)
            # The batches of a run that failed stay sealed; the next run sends them.
            while (batch := self._queue.get()) is not None:
                if run.shutdown.failure is None:
                    delivery_queue.deliver_batch(self._sender, batch)
            if run.shutdown.failure is None:
                removals.remove_documents(self._sender)
        except DeliveryError as error:
            run.delivery_failure = error
            logger.error("documents wait for the index: %s", error)
        except SearchcrawlError as error:
            logger.warning("the delivery stops: %s", error)
            run.shutdown.fail(error)
        except Exception as error:
            logger.exception("the delivery stops")
            run.shutdown.fail(error)
