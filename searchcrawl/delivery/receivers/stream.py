"""What one receiver besides the index gets of a source: the entries of the change log that it does not have yet (L14).

A receiver has read up to a place in the log (``store.receivers.receiver_table``). What lies after it is handed over in
requests, each of which may be repeated: the place moves once a page of entries has its receipts. A process that dies
between both sends the page again, with versions that the receiver knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.documents import DocumentReader
from searchcrawl.delivery.receivers.door import Door
from searchcrawl.exceptions import DeliveryError
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Batch, IndexEntry, Receipt, SearchIndex
from searchcrawl.items import Change, IndexedDocument, Removal
from searchcrawl.run import Run
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import BatchDocument
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.receivers import log_counter, log_table, receiver_table
from searchcrawl.store.receivers.log_table import Entry, Place, Tombstone
from searchcrawl.store.receivers.receiver_table import Fault, ReceiverRow
from searchcrawl.store.urls import url_table
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

_REMOVALS_A_PART: Final = 1000


@dataclass(slots=True)
class _Page:
    """What is handed over at once, and what came of it."""

    entries: Sequence[Entry]
    tombstones: Sequence[Tombstone]
    place: Place
    acknowledged: int
    taken: list[int] = field(default_factory=list)
    refused: dict[int, Fault] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)


class _Going(NamedTuple):
    """A document to be removed: its entry, its id, and its row if that is left."""

    seq: int
    id: str
    row: BatchDocument | None = None


class Stream:
    """Hands the change log of one run's source to one receiver; one thread calls it.

    Raises DeliveryError where the receiver cannot be reached or is no receiver, and StoreError, LeaseLost, CacheError.
    """

    def __init__(self, run: Run, door: Door, cache: DocumentCache) -> None:
        self.door = door
        self._run = run
        self._cache = cache
        self._row: ReceiverRow | None = None
        #: where it was before this process sent anything
        self._began_at: Place | None = None

    @property
    def name(self) -> str:
        """The name of the receiver."""
        return self.door.name

    def send(self, *, is_over: Callable[[], bool] = lambda: False, looks: bool = False) -> int:
        """Hands over what the receiver does not have, until ``is_over``; returns how many documents and removals it took.

        With ``looks`` it is asked what it has also where nothing waits: it may have lost that.
        """
        sent = 0
        if self._find_row().is_paused or not (looks or self._run.read(self._is_waiting)):
            return sent
        self._open()
        reader = DocumentReader(self._run, self._cache)
        while not is_over() and (page := self._run.read(self._find_page)) is not None:
            sent += self._send_page(page, reader)
        if sent:
            self._commit()
        self._sweep()
        return sent

    def report_unchanged(self) -> None:
        """Tells the receiver of each document that is there and was not told of since this process began."""
        if self._find_row().is_paused:
            return
        self._open()
        before = self._began_at or self._find_row().place
        reader, after = DocumentReader(self._run, self._cache), 0
        while entries := self._run.read(
            partial(log_table.find_present, source_id=self._run.source_id, after=after, before=before)
        ):
            after = entries[-1].row.url_id
            by_id = {entry.row.url_id: entry for entry in entries if entry.place <= before}
            for part in reader.read([entry.row for entry in by_id.values()]):
                documents = [replace(document, change=Change.UNCHANGED) for _, document in part.documents]
                if documents:
                    self._deliver(max(by_id[url_id].seq for url_id, _ in part.documents), documents=documents)

    def remove_rest(self) -> None:
        """Removes what the receiver has of the source, if it is an index: nothing of it is to be left."""
        if self._find_row().is_paused:
            raise DeliveryError(f"the receiver {self.name} is paused, and has documents of {self._run.source.name}")
        self._open()
        if (index := self.door.index) is not None:
            number = self._run.write(partial(log_counter.draw, source_id=self._run.source_id))
            for part in self._list_entries(index, below=None):
                self._remove(number, part)
            self._commit()

    def note_error(self, error: Exception) -> None:
        """Notes why the receiver gets nothing."""
        note = partial(receiver_table.set_error, name=self.name, error=str(error), now_ms=clock.now_ms())
        self._run.write(partial(note, source_id=self._run.source_id))

    def _find_row(self) -> ReceiverRow:
        row = self._run.read(partial(receiver_table.find, source_id=self._run.source_id, name=self.name))
        self._row = row or ReceiverRow(name=self.name)
        return self._row

    def _is_waiting(self, transaction: Transaction) -> bool:
        return self._row is not None and (
            self._row.is_sweeping
            or log_table.count_waiting(transaction, self._run.source_id, self._row.place) > 0
            or self._row.error is not None
        )

    def _open(self) -> None:
        """Tells the receiver of the run, once; one that has other documents than it had gets all of them again."""
        if self._began_at is not None:
            return
        source = self._run.source.name
        self.door.begin(source, self._run.id)
        if (index := self.door.index) is not None:
            self.door.call(index.ping)
            # What a process that died has delivered and not shown yet.
            self.door.call(index.commit)
            self._compare(self.door.call(partial(index.find_highest_version, source)))
        row = self._find_row()
        if row.error is not None:
            self._run.write(partial(receiver_table.clear_error, source_id=self._run.source_id, name=self.name))
        self._began_at = row.place

    def _compare(self, highest: int) -> None:
        """Begins anew where the receiver has newer versions than the log, or has lost some."""
        row = self._find_row()
        newest = row.compute_version(self._run.read(partial(log_counter.find_last, source_id=self._run.source_id)))
        if highest > (newest if row.acknowledged else row.lowest_version):
            why = "has newer documents than the store"
            generation = row.find_generation_above(highest)
        elif highest < row.acknowledged:
            why = "has lost documents"
            generation = row.generation + 1
        else:
            return
        if row.acknowledged:
            logger.warning("the receiver %s %s: it gets all of them again", self.name, why)
        anew = partial(receiver_table.begin_anew, source_id=self._run.source_id, name=self.name, sweeping=False)
        self._run.write(partial(anew, generation=generation))

    def _find_page(self, transaction: Transaction) -> _Page | None:
        """The next entries; None at the end of the log, or where the receiver was paused."""
        source_id = self._run.source_id
        self._row = receiver_table.find(transaction, source_id, self.name)
        if self._row is None or self._row.is_paused:
            return None
        before = self._row.place
        entries = log_table.find_page(transaction, source_id, before)
        is_last = len(entries) < log_table.PAGE_ROWS
        end = entries[-1].place if entries else before
        buried = log_table.find_tombstones(
            transaction, source_id, after=before.seq, up_to=None if is_last else end.seq - 1
        )
        if not entries and not buried:
            return None
        if is_last and buried:
            end = max(end, Place(buried[-1].seq))
        return _Page(entries, buried, end, self._row.acknowledged)

    def _send_page(self, page: _Page, reader: DocumentReader) -> int:
        shown = [entry for entry in page.entries if entry.is_shown and entry.can_be_sent]
        gone = [entry for entry in page.entries if not entry.is_shown]
        self._send_documents(page, [*shown, *self._find_survivors(page, gone)], reader)
        source = self._run.source.name
        removals = [_Going(entry.seq, urls.document_id(source, entry.row.url), entry.row) for entry in gone]
        removals += [_Going(each.seq, f"{source}:{each.digest.hex()}") for each in page.tombstones]
        removals.sort(key=lambda each: each.seq)
        for start in range(0, len(removals), _REMOVALS_A_PART):
            self._send_removals(page, removals[start : start + _REMOVALS_A_PART])
        reach("receiver.sent")
        self._run.write(partial(self._note, page=page))
        reach("receiver.moved")
        return len(page.taken) + len(page.tombstones)

    def _find_survivors(self, page: _Page, gone: Sequence[Entry]) -> list[Entry]:
        """The documents that are indexed instead of those that go, and that the receiver would get only later."""
        ids = {entry.survivor_id for entry in gone if entry.survivor_id is not None}
        found = self._run.read(partial(log_table.find_entries, url_ids=ids)) if ids else []
        return [entry for entry in found if entry.is_shown and entry.can_be_sent and entry.place > page.place]

    def _send_documents(self, page: _Page, entries: Sequence[Entry], reader: DocumentReader) -> None:
        by_id = {entry.row.url_id: entry for entry in entries}
        lost = self._send_parts(page, by_id, reader)
        # Records may have been moved in the cache since the page was read.
        again = {
            entry.row.url_id: entry
            for entry in (self._run.read(partial(log_table.find_entries, url_ids=lost)) if lost else ())
            if entry.can_be_sent and entry.seq == by_id[entry.row.url_id].seq
        }
        for url_id in self._send_parts(page, again, reader):
            page.lost.append(url_id)
            page.refused[url_id] = self._build_fault(again[url_id], receiver_table.NO_RECORD)

    def _send_parts(self, page: _Page, by_id: dict[int, Entry], reader: DocumentReader) -> list[int]:
        """Sends the documents of entries, a part at a time; returns the rows whose record cannot be read."""
        lost: list[int] = []
        for part in reader.read([entry.row for entry in by_id.values()]):
            lost += part.lost
            if part.documents:
                self._send_part(page, by_id, part.documents)
        return lost

    def _send_part(
        self, page: _Page, by_id: dict[int, Entry], documents: Sequence[tuple[int, IndexedDocument]]
    ) -> None:
        told = [replace(document, change=self._judge(by_id[url_id])) for url_id, document in documents]
        # No entry that is drawn from now on has a lower number: the versions of a document rise.
        number = max(by_id[url_id].seq for url_id, _ in documents)
        receipts = self._deliver(number, documents=told)
        for (url_id, _), receipt in zip(documents, receipts, strict=True):
            if receipt.accepted:
                page.taken.append(url_id)
            else:
                page.refused[url_id] = self._build_fault(by_id[url_id], receipt.error)
        if any(receipt.accepted for receipt in receipts):
            page.acknowledged = max(page.acknowledged, self._require_row().compute_version(number))

    def _judge(self, entry: Entry) -> Change:
        return Change.CHANGED if entry.is_known_at(self._require_row().place) else Change.NEW

    def _build_fault(self, entry: Entry, error: str | None) -> Fault:
        return Fault(entry.seq, error or "refused", entry.is_known_at(self._require_row().place))

    def _send_removals(self, page: _Page, part: Sequence[_Going]) -> None:
        removals = [Removal(id=each.id, url="" if each.row is None else each.row.url, code=0) for each in part]
        receipts = self._deliver(part[-1].seq, removals=removals)
        for each, receipt in zip(part, receipts, strict=True):
            if each.row is None:
                continue
            if receipt.accepted:
                page.taken.append(each.row.url_id)
            else:
                page.refused[each.row.url_id] = Fault(each.seq, receipt.error or "refused", is_known=True)

    def _deliver(
        self, number: int, *, documents: Sequence[IndexedDocument] = (), removals: Sequence[Removal] = ()
    ) -> Sequence[Receipt]:
        version = self._require_row().compute_version(number)
        return self.door.deliver(
            Batch(
                number=number,
                source=self._run.source.name,
                crawl_version=version,
                documents=documents,
                removals=removals,
            )
        )

    def _note(self, transaction: Transaction, *, page: _Page) -> None:
        source_id = self._run.source_id
        receiver_table.move(
            transaction,
            source_id,
            self.name,
            place=page.place,
            acknowledged=page.acknowledged,
            refused=page.refused,
            taken=page.taken,
        )
        batch_table.mark_records_lost(transaction, page.lost)
        url_table.reopen(transaction, page.lost)

    def _commit(self) -> None:
        if (index := self.door.index) is not None:
            self.door.call(index.commit)

    def _sweep(self) -> None:
        """Removes what the receiver has and the log has not, once it has all of the log (``resend --receiver``)."""
        row, index = self._find_row(), self.door.index
        source_id = self._run.source_id
        if not row.is_sweeping or self._run.read(
            partial(log_table.count_waiting, source_id=source_id, after=row.place)
        ):
            return
        if index is not None:
            removed = 0
            number = self._run.write(partial(log_counter.draw, source_id=source_id))
            for part in self._list_entries(index, below=row.lowest_version):
                keys = {urls.key(entry.access_url or entry.url): entry for entry in part}
                shown = self._run.read(partial(log_table.find_shown, source_id=source_id, url_keys=keys))
                removed += self._remove(number, [entry for key, entry in keys.items() if key not in shown])
            self._commit()
            if removed:
                what = counted(removed, "document", "documents")
                logger.warning("the receiver %s had %s that the index does not have: removed", self.name, what)
        self._run.write(partial(receiver_table.end_sweep, source_id=source_id, name=self.name))
        reach("receiver.swept")

    def _list_entries(self, index: SearchIndex, *, below: int | None) -> Iterator[list[IndexEntry]]:
        """What the receiver has of the source, with versions below one, in parts; of one moment."""
        entries: Iterable[IndexEntry] = index.scan(self._run.source.name)
        part: list[IndexEntry] = []
        for entry in entries:
            if below is None or entry.crawl_version < below:
                part.append(entry)
            if len(part) == _REMOVALS_A_PART:
                yield part
                part = []
        if part:
            yield part

    def _remove(self, number: int, entries: Sequence[IndexEntry]) -> int:
        if not entries:
            return 0
        removals = [Removal(id=entry.id, url=entry.url, code=0) for entry in entries]
        return sum(receipt.accepted for receipt in self._deliver(number, removals=removals))

    def _require_row(self) -> ReceiverRow:
        return self._row or self._find_row()
