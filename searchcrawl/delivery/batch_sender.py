"""Sends one batch to the index: its documents in parts, or its removals; each receipt is noted in the store.

The delivery thread of a run calls it, and commands between crawls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.opening import open_cache
from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.comparison.look import require_known
from searchcrawl.delivery.cache_space import CacheSpace
from searchcrawl.delivery.documents import read_parts
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.delivery.receivers.sending import send_rest
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Batch, HurryingReceiver, Receipt, Receiver, SearchIndex
from searchcrawl.items import IndexedDocument, Removal
from searchcrawl.run import Run
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.removal_table import Before, RemovalCandidate
from searchcrawl.store.states import BatchState

logger = logging.getLogger(__name__)

_REMOVALS_A_PART: Final = 1000


class Sent(NamedTuple):
    """How many documents and removals the index acknowledged; it refused ``failed`` documents.

    ``to_fetch`` are documents whose record the cache has lost: the next run fetches them.
    """

    documents: int = 0
    removed: int = 0
    failed: int = 0
    to_fetch: int = 0

    def plus(self, other: Sent) -> Sent:
        """The sum of both."""
        return Sent(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass(slots=True)
class BatchSender:
    """Sends sealed batches of one run; each method may be repeated without harm (D8).

    ``on_sent`` is called with the number of documents of each part that was sent.
    """

    run: Run
    receiver: Receiver
    cache: DocumentCache
    retry: IndexRetry
    on_sent: Callable[[int], None] | None = None
    space: CacheSpace = field(init=False)
    _checked: bool = False

    def __post_init__(self) -> None:
        self.space = CacheSpace(self.run, self.cache)

    def hurry(self) -> None:
        """Notes that no page is fetched any more: the processors are free for the index."""
        if isinstance(self.receiver, HurryingReceiver):
            self.receiver.hurry()

    def ask_index(self) -> None:
        """Raises DeliveryError where the index does not answer."""
        if isinstance(self.receiver, SearchIndex):
            self.retry.attempt(self.receiver.ping)

    def deliver(self, batch: SealedBatch) -> Sent:
        """Sends the rest of a batch, commits it and frees its segments; raises DeliveryError, LeaseLost, StoreError."""
        sent = self._send_documents(batch) if batch.state < BatchState.ACKNOWLEDGED else Sent()
        self.commit(batch)
        sent = sent._replace(removed=self.remove_copies())
        self.space.free()
        return sent

    def remove_copies(self) -> int:
        """Removes copies that were sent in this run before the better page came; returns how many.

        At once and without limits, because they were no documents of the index before.
        """
        run, removed = self.run, 0
        find = partial(removal_table.find_new_copies, source_id=run.source_id, before=find_beginning(run))
        while rows := run.read(find, is_away=run.is_index_away):
            removed += self.remove(rows, counted=False)
        return removed

    def remove(self, rows: Sequence[RemovalCandidate], *, counted: bool, decided: bool = False) -> int:
        """Removes documents, in a batch of their own; ``counted`` towards the limits. Returns how many left the index.

        ``decided``: an operator has it so, of documents that may have stood for their copies until now.
        """
        run = self.run
        batch = run.write(_seal, run=run, url_ids=[row.url_id for row in rows], counted=counted, decided=decided)
        reach("delete.selected")
        if run.is_index_away:
            # They are sent with what waits for it.
            return 0
        removed = self.send_removals(batch, rows)
        self.commit(batch)
        return removed

    def _send_documents(self, batch: SealedBatch) -> Sent:
        """Sends the documents of a batch that have no receipt yet."""
        self._check_index()
        taken = refused = lost = 0
        with closing(read_parts(self.run, self.cache, batch.number)) as parts:
            for part in parts:
                accepted = self._send_part(batch, part.documents) if part.documents else 0
                if part.lost:
                    self.run.write(_fetch_again, batch=batch, url_ids=part.lost)
                taken += accepted
                refused += len(part.documents) - accepted
                lost += len(part.lost)
        self._set_state(batch, BatchState.ACKNOWLEDGED)
        return Sent(taken, failed=refused, to_fetch=lost)

    def send_removals(self, batch: SealedBatch, candidates: Sequence[RemovalCandidate]) -> int:
        """Sends removals of a batch; returns how many the index acknowledged.

        Those that count towards the limits are counted in the run too.
        """
        self._check_index()
        done = 0
        for start in range(0, len(candidates), _REMOVALS_A_PART):
            done += self._send_removals(batch, candidates[start : start + _REMOVALS_A_PART])
        self._set_state(batch, BatchState.ACKNOWLEDGED)
        return done

    def commit(self, batch: SealedBatch) -> None:
        """Makes an acknowledged batch durable and visible."""
        if isinstance(self.receiver, SearchIndex):
            self.retry.attempt(self.receiver.commit)
        reach("commit.sent")
        self._set_state(batch, BatchState.COMMITTED)

    def _check_index(self) -> None:
        """Checks the index, once; raises DeliveryError.

        One with a foreign schema would take documents and forget their versions. One that is newer than the store would
        get what it had before, and nothing would tell any more that the store is older.
        """
        index, run = self.receiver, self.run
        if not isinstance(index, SearchIndex) or self._checked:
            return
        self.retry.attempt(index.ping)
        self.retry.attempt(lambda: require_known(index, run.database, run.source.name))
        self._checked = True

    def _send_part(self, batch: SealedBatch, part: Sequence[tuple[int, IndexedDocument]]) -> int:
        reach("batch.post.begin")
        receipts = self._deliver(batch, documents=[document for _, document in part])
        reach("index.acked")
        accepted = [url_id for (url_id, _), receipt in zip(part, receipts, strict=True) if receipt.accepted]
        refused = [
            (url_id, receipt.error or "refused")
            for (url_id, _), receipt in zip(part, receipts, strict=True)
            if not receipt.accepted
        ]
        shown = {url_id: document.fields["url"] for url_id, document in part}
        for url_id, reason in refused:
            logger.error("the index refuses %s: %s", shown[url_id], reason)

        def note_receipts(transaction: Transaction) -> Mapping[str, int]:
            batch_table.note_accepted(transaction, batch, accepted)
            if self.run.source.copies.near == "remove":
                # Without ``cache.preserve`` the record, of which it would be made later, may be gone by then.
                # Empty for a text that is too short.
                made = {url_id: str(document.fields.get("text_signature", "")) for url_id, document in part}
                duplicate_key_table.note_signatures(transaction, batch, {url_id: made[url_id] for url_id in accepted})
            batch_table.note_refused(transaction, batch, refused)
            return {"indexed": len(accepted)}

        self._write(note_receipts, counted=True)
        reach("batch.marked")
        if self.on_sent is not None:
            self.on_sent(len(part))
        return len(accepted)

    def _send_removals(self, batch: SealedBatch, part: Sequence[RemovalCandidate]) -> int:
        source = self.run.source.name
        removals = [Removal(id=urls.document_id(source, row.url), url=row.url, code=row.code) for row in part]
        receipts = self._deliver(batch, removals=removals)
        reach("delete.sent")
        gone = [row for row, receipt in zip(part, receipts, strict=True) if receipt.accepted]

        def note_receipts(transaction: Transaction) -> Mapping[str, int]:
            removal_table.note_removed(transaction, [row.url_id for row in gone])
            return {"deleted": len(gone)}

        self._write(note_receipts, counted=batch.removals > 0)
        reach("delete.marked")
        return len(gone)

    def _deliver(
        self, batch: SealedBatch, *, documents: Sequence[IndexedDocument] = (), removals: Sequence[Removal] = ()
    ) -> Sequence[Receipt]:
        part = Batch(
            number=batch.number,
            source=self.run.source.name,
            crawl_version=batch.crawl_version,
            documents=documents,
            removals=removals,
        )
        receipts = self.retry.attempt(lambda: self.receiver.deliver(part))
        expected = len(documents) + len(removals)
        if len(receipts) != expected:
            raise RuntimeError(f"{type(self.receiver).__name__} gave {len(receipts)} receipts for {expected}")
        if logger.isEnabledFor(logging.DEBUG):
            _log_delivery(part, receipts)
        return receipts

    def _write(self, note: Callable[[Transaction], Mapping[str, int]], *, counted: bool) -> None:
        # A run that was cut off is continued later: what a command between crawls sends counts in it.
        if counted and self.run.row.ended_ms is None:
            self.run.write_counted(note)
        else:
            self.run.write(note)

    def _set_state(self, batch: SealedBatch, state: BatchState) -> None:
        self.run.write(batch_table.set_state, batch.number, state)


def _log_delivery(part: Batch, receipts: Sequence[Receipt]) -> None:
    """Writes a line for each document and removal that the index took or refused (J4)."""
    done = [("indexed", str(document.fields["url"])) for document in part.documents]
    done += [(f"removed for {removal.code}", removal.url) for removal in part.removals]
    for (what, url), receipt in zip(done, receipts, strict=True):
        logger.debug("batch %d: %s: %s", part.number, url, what if receipt.accepted else "refused")


@contextmanager
def open_sender(
    run: Run,
    receiver: Receiver,
    *,
    retry_seconds: float,
    on_sent: Callable[[int], None] | None = None,
    tells_receivers: bool = True,
) -> Iterator[BatchSender]:
    """A sender for a command between crawls, which waits ``retry_seconds`` at most; tells the receiver how it ended.

    Afterwards the receivers besides the index get what they do not have, unless the caller sees to that.
    """
    retry = IndexRetry(retry_seconds)
    retry.limit_to_end()
    cache = open_cache(run.project, run.source.name)
    receiver.begin(run.source.name, run.id)
    outcome = "failed"
    try:
        sender = BatchSender(run, receiver, cache, retry, on_sent)
        sender.hurry()
        yield sender
        outcome = "finished"
    finally:
        receiver.end(outcome)
    if tells_receivers and send_rest(run, cache):
        sender.space.free()


def find_beginning(run: Run) -> Before:
    """What was there before the run."""
    return Before(run.row.batch_before, run.row.horizon_ms)


def _seal(transaction: Transaction, *, run: Run, url_ids: Sequence[int], counted: bool, decided: bool) -> SealedBatch:
    before = duplicate_key_table.load(transaction, url_ids) if decided else {}
    batch = removal_table.seal(transaction, run.source_id, run.id, clock.now_ms(), url_ids, counted=counted)
    # In the same step: a process that dies after it must not leave copies of a page that is gone.
    resolve_again(transaction, run.source_id, before)
    return batch


def _fetch_again(transaction: Transaction, *, batch: SealedBatch, url_ids: Sequence[int]) -> None:
    batch_table.fetch_again(transaction, batch_table.select_still_in_batch(transaction, batch, url_ids))
