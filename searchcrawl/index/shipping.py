"""One batch on its way: documents read from the cache, delivered in parts, receipts noted (decision 6)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Final

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import Place
from searchcrawl.codes import Code
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.failpoints import passing
from searchcrawl.index.fields import indexed_document
from searchcrawl.index.patience import Patience
from searchcrawl.index.receiver import Batch, Receipt, Receiver, SearchIndex
from searchcrawl.items import IndexedDocument, Removal
from searchcrawl.run import Run
from searchcrawl.store import batch_table, lease, run_table, url_table
from searchcrawl.store.batch_table import Leaving, SealedBatch, Shipment
from searchcrawl.store.states import BatchState

logger = logging.getLogger(__name__)

#: A request to the index holds about so much text (interface: 5–10 MB).
_PART_CHARACTERS: Final = 5_000_000
_PART_ROWS: Final = 500
_REMOVALS_A_PART: Final = 1000


@dataclass(frozen=True, slots=True)
class Shipping:
    """Delivers sealed batches of one run; each method may be repeated without harm (D8)."""

    run: Run
    receiver: Receiver
    cache: DocumentCache
    patience: Patience
    _checked: Event = field(default_factory=Event)

    def documents(self, batch: SealedBatch) -> None:
        """Sends what of a batch has no receipt yet; raises DeliveryError, LeaseLost, StoreError."""
        self._check_index()
        after = 0
        while True:
            with self.run.database.read() as transaction:
                rows = batch_table.shipments(transaction, batch.number, after=after, limit=_PART_ROWS)
                duplicates = batch_table.duplicates(transaction, [row.url_id for row in rows])
            if not rows:
                break
            after = rows[-1].url_id
            self._rows(batch, rows, duplicates)
        self._set_state(batch, BatchState.ACKNOWLEDGED)

    def commit(self, batch: SealedBatch) -> None:
        """Makes an acknowledged batch durable and visible."""
        if isinstance(self.receiver, SearchIndex):
            self.patience.attempt(self.receiver.commit)
        passing("commit.sent")
        self._set_state(batch, BatchState.COMMITTED)

    def removals(self, batch: SealedBatch, leaving: Sequence[Leaving], *, counted: bool = False) -> int:
        """Sends removals; how many the index acknowledged. ``counted`` in the run too, but for copies."""
        self._check_index()
        done = 0
        for start in range(0, len(leaving), _REMOVALS_A_PART):
            part = leaving[start : start + _REMOVALS_A_PART]
            done += self._removals(batch, part, counted=counted)
        self._set_state(batch, BatchState.ACKNOWLEDGED)
        return done

    def _check_index(self) -> None:
        """Once: an index with a foreign schema would take documents and forget their versions."""
        if isinstance(self.receiver, SearchIndex) and not self._checked.is_set():
            self.patience.attempt(self.receiver.ping)
            self._checked.set()

    def _rows(self, batch: SealedBatch, rows: Sequence[Shipment], duplicates: dict[int, list[str]]) -> None:
        part: list[tuple[int, IndexedDocument]] = []
        characters = 0
        lost: list[int] = []
        for row in rows:
            try:
                record = self.cache.read_fields(_place(row), url=row.url)
            except DamagedRecord as error:
                logger.error("%s; %s is fetched again", error, row.url)
                lost.append(row.url_id)
                continue
            document = indexed_document(
                row, record, source=self.run.source.name, duplicates=duplicates.get(row.url_id, ())
            )
            part.append((row.url_id, document))
            characters += len(record.get("content", ""))
            if characters >= _PART_CHARACTERS:
                self._part(batch, part)
                part, characters = [], 0
        if part:
            self._part(batch, part)
        if lost:
            with self.run.database.write() as transaction:
                lease.check(transaction, self.run.lease)
                batch_table.lost_records(transaction, lost)
                url_table.reopen(transaction, lost)

    def _part(self, batch: SealedBatch, part: Sequence[tuple[int, IndexedDocument]]) -> None:
        parcel = Batch(
            number=batch.number,
            source=self.run.source.name,
            crawl_version=batch.crawl_version,
            documents=[document for _, document in part],
        )
        receipts = self._deliver(parcel, expected=len(part))
        accepted = [url_id for (url_id, _), receipt in zip(part, receipts, strict=True) if receipt.accepted]
        refused = [
            (url_id, receipt.error or "refused")
            for (url_id, _), receipt in zip(part, receipts, strict=True)
            if not receipt.accepted
        ]
        for url_id, reason in refused:
            logger.error("the index refuses document %d: %s", url_id, reason)
        with self.run.database.write() as transaction:
            lease.check(transaction, self.run.lease)
            batch_table.accept(transaction, batch, accepted)
            batch_table.refuse(transaction, batch, refused)
            self.run.count(indexed=len(accepted))
            self.run.save_counts(transaction)
        passing("batch.marked")

    def _deliver(self, batch: Batch, *, expected: int) -> Sequence[Receipt]:
        passing("batch.post.begin")
        receipts = self.patience.attempt(lambda: self.receiver.deliver(batch))
        if len(receipts) != expected:
            raise RuntimeError(f"{type(self.receiver).__name__} gave {len(receipts)} receipts for {expected}")
        passing("index.acked")
        return receipts

    def _removals(self, batch: SealedBatch, part: Sequence[Leaving], *, counted: bool) -> int:
        source = self.run.source.name
        parcel = Batch(
            number=batch.number,
            source=source,
            crawl_version=batch.crawl_version,
            removals=[Removal(id=urls.document_id(source, row.url), url=row.url, code=row.code) for row in part],
        )
        receipts = self.patience.attempt(lambda: self.receiver.deliver(parcel))
        passing("delete.sent")
        gone = [row for row, receipt in zip(part, receipts, strict=True) if receipt.accepted]
        with self.run.database.write() as transaction:
            lease.check(transaction, self.run.lease)
            batch_table.removed(transaction, [row.url_id for row in gone])
            if counted:
                self.run.count(deleted=sum(1 for row in gone if row.code != Code.DUPLICATE))
                self.run.save_counts(transaction)
        passing("delete.marked")
        return len(gone)

    def _set_state(self, batch: SealedBatch, state: BatchState) -> None:
        with self.run.database.write() as transaction:
            lease.check(transaction, self.run.lease)
            batch_table.set_state(transaction, batch.number, state)


def free_segments(run: Run, cache: DocumentCache, *, preserve: bool, max_bytes: int) -> None:
    """Gives up records that the index has: all of them without ``preserve``, else the oldest beyond ``max_bytes``."""
    sizes = dict(cache.segments())
    with run.database.read() as transaction:
        opened, _ = run_table.open_segment(transaction, run.source_id)
        used = batch_table.segments_in_use(transaction, run.source_id)
    total = sum(sizes.values())
    for number in sorted(sizes):
        if number == opened or number in used or (preserve and total <= max_bytes):
            continue
        with run.database.write() as transaction:
            lease.check(transaction, run.lease)
            batch_table.forget_segment(transaction, run.source_id, number)
        cache.delete(number)
        total -= sizes[number]


def _place(row: Shipment) -> Place:
    if row.segment is None or row.record_offset is None or row.response_bytes is None or row.fields_bytes is None:
        raise DamagedRecord(f"no record in the cache for {row.url}")
    return Place(
        segment=row.segment,
        offset=row.record_offset,
        response_bytes=row.response_bytes,
        fields_bytes=row.fields_bytes,
    )
