"""What one receiver besides the index gets of a source: the entries of the change log that it does not have yet (L14).

A receiver has read up to a place in the log (``store.receiver_table``). What lies after it is handed over in
requests, each of which may be repeated: the place moves once a page of entries has its receipts. A process that dies
between both sends the page again, with versions that the receiver knows.

One that is an index itself can be asked what it has. An index that was emptied or put back, or whose store was, begins
anew: it gets all documents with higher versions, and then what it has besides is removed, within the limits on deleting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.documents import DocumentReader
from searchcrawl.delivery.receivers.door import Door
from searchcrawl.exceptions import DeliveryError
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Batch, IndexEntry, Receipt, SearchIndex
from searchcrawl.items import Change, IndexedDocument, Removal
from searchcrawl.run import Run
from searchcrawl.store import batch_table, log_table, receiver_table
from searchcrawl.store.batch_table import BatchDocument
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.log_table import LoggedDocument, LogPlace, Tombstone
from searchcrawl.store.receiver_table import Fault, ReceiverRow, Sweep
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import DocumentState
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

_REMOVALS_A_PART: Final = 1000


@dataclass(slots=True)
class _Page:
    """What is handed over at once, to a receiver as ``row`` says, and what came of it; ``place`` is where it ends."""

    row: ReceiverRow
    entries: Sequence[LoggedDocument]
    tombstones: Sequence[Tombstone]
    place: LogPlace
    acknowledged: int
    taken: list[int] = field(default_factory=list)
    refused: dict[int, Fault] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)

    def build_fault(self, entry: LoggedDocument, error: str | None) -> Fault:
        """Why the receiver does not have an entry."""
        return Fault(entry.seq, error or "refused", entry.is_known_at(self.row.place))


class _Going(NamedTuple):
    """A document to be removed: the number of its entry, its id, and its row if that is left."""

    seq: int
    id: str
    row: BatchDocument | None = None


class _OfReceiver:
    """What the store says of a receiver of a run's source."""

    def __init__(self, run: Run, door: Door) -> None:
        self.door = door
        self._run = run
        self._here: dict[str, Any] = {"source_id": run.source_id, "name": door.name}

    @property
    def name(self) -> str:
        """The name of the receiver."""
        return self.door.name

    def _find_row(self) -> ReceiverRow:
        return self._run.read(receiver_table.require, **self._here)

    def _write(self, work: Callable[..., object], **values: Any) -> None:
        self._run.write(work, **self._here, **values)


class Stream(_OfReceiver):
    """Hands the change log of one run's source to one receiver; one thread calls it.

    Raises DeliveryError where the receiver cannot be reached or is no receiver, and StoreError, LeaseLost, CacheError.
    """

    def __init__(self, run: Run, door: Door, cache: DocumentCache) -> None:
        super().__init__(run, door)
        self._cache = cache
        #: where it was before this process sent anything; None: it was not asked yet
        self._began_at: LogPlace | None = None

    def send(self, *, is_over: Callable[[], bool] = lambda: False, looks: bool = False) -> int:
        """Hands over what the receiver does not have, until ``is_over``; returns how many documents and removals it took.

        With ``looks`` it is asked what it has also where nothing waits: it may have lost that.
        """
        sent = 0
        if self._find_row().is_paused or not (looks or self._run.read(self._is_waiting)):
            return sent
        index = self._open()
        sent += self._send_later()
        while not is_over() and (page := self._run.read(self._find_page)) is not None:
            sent += self._send_page(page)
        if index is not None:
            if sent:
                index.commit()
            index.sweep()
        elif self._find_row().sweeping:
            # What a class of a user's own has besides cannot be listed.
            self._write(receiver_table.note, sweeping=0)
        return sent

    def report_unchanged(self) -> None:
        """Tells the receiver of each document that is there and was not told of since this process began."""
        row = self._find_row()
        if row.is_paused:
            return
        self._open()
        before = self._began_at or row.place
        for entries in self._run.read_pages(
            log_table.find_present, source_id=self._run.source_id, before=before, key=attrgetter("row.url_id")
        ):
            by_id = {entry.row.url_id: entry for entry in entries if entry.place <= before}
            reader = DocumentReader(self._run, self._cache)
            for part in reader.read([entry.row for entry in by_id.values()]):
                if documents := [replace(document, change=Change.UNCHANGED) for _, document in part.documents]:
                    self._deliver(row, max(by_id[url_id].seq for url_id, _ in part.documents), documents=documents)

    def remove_rest(self) -> None:
        """Removes what the receiver has of the source, if it is an index: nothing of it is to be left."""
        if self._find_row().is_paused:
            raise DeliveryError(f"the receiver {self.name} is paused, and has documents of {self._run.source.name}")
        if (index := self._open()) is not None:
            index.empty()

    def note_error(self, error: Exception) -> None:
        """Notes why the receiver gets nothing."""
        self._write(receiver_table.set_error, error=str(error), now_ms=clock.now_ms())

    def _is_waiting(self, transaction: Transaction) -> bool:
        row = receiver_table.require(transaction, self._run.source_id, self.name)
        waits = log_table.count_waiting(transaction, self._run.source_id, row.place) > 0
        later = log_table.find_later(transaction, self._run.source_id, self.name, limit=1)
        return waits or bool(later) or row.error is not None or bool(row.sweeping)

    def _open(self) -> KeptIndex | None:
        """Tells the receiver of the run, once; an index that has other documents than it had gets all of them again."""
        self.door.begin(self._run.source.name, self._run.id)
        found = self.door.find_index()
        index = None if found is None else KeptIndex(self._run, self.door, found)
        if self._began_at is None:
            if index is not None:
                index.compare()
            row = self._find_row()
            if row.error is not None:
                self._write(receiver_table.note, error=None, error_ms=None)
            self._began_at = row.place
        return index

    def _find_page(self, transaction: Transaction) -> _Page | None:
        """The next entries; None at the end of the log, or where the receiver was paused."""
        source_id = self._run.source_id
        row = receiver_table.find(transaction, source_id, self.name)
        if row is None or row.is_paused:
            return None
        entries = log_table.find_page(transaction, source_id, row.place)
        is_last = len(entries) < log_table.PAGE_ROWS
        end = entries[-1].place if entries else row.place
        buried = log_table.find_tombstones(
            transaction, source_id, after=row.place.seq, up_to=None if is_last else end.seq - 1
        )
        if not entries and not buried:
            return None
        if is_last and buried:
            end = max(end, LogPlace(buried[-1].seq))
        return _Page(row, entries, buried, end, row.acknowledged)

    def _send_page(self, page: _Page) -> int:
        shown = [entry for entry in page.entries if entry.is_shown and entry.can_be_sent]
        gone = [entry for entry in page.entries if not entry.is_shown]
        survivors = self._find_survivors(page, gone)
        highest = max([page.place.seq, *(entry.seq for entry in survivors)])
        self._write(receiver_table.note_sending, version=page.row.compute_version(highest))
        # A document that came again has an entry of its own, and must not be removed after it.
        self._send_removals(page, self._list_buried(page))
        for entry in page.entries:
            if entry.is_shown and not entry.can_be_sent:
                page.refused[entry.row.url_id] = page.build_fault(entry, log_table.NOT_NOW)
        self._send_documents(page, shown)
        self._send_documents(page, survivors)
        source = self._run.source.name
        self._send_removals(page, [_Going(each.seq, urls.document_id(source, each.row.url), each.row) for each in gone])
        reach("receiver.sent")
        self._run.write(self._note, page=page)
        reach("receiver.moved")
        return len(page.taken) + len(page.tombstones)

    def _send_later(self) -> int:
        """Sends what could not be sent when its entry was read, and can be now; returns how much the receiver took."""
        row, sent = self._find_row(), 0
        while entries := self._run.read(log_table.find_later, **self._here):
            page = _Page(row, entries, (), row.place, row.acknowledged)
            self._send_documents(page, entries)
            self._run.write(self._note, page=page)
            sent += len(page.taken)
            if len(page.taken) + len(page.refused) < len(entries):
                # Some have changed meanwhile, and have other entries now.
                break
        return sent

    def _list_buried(self, page: _Page) -> list[_Going]:
        source = self._run.source.name
        there = {urls.document_id(source, entry.row.url) for entry in page.entries}
        buried = [_Going(each.seq, f"{source}:{each.digest.hex()}") for each in page.tombstones]
        return [each for each in buried if each.id not in there]

    def _find_survivors(self, page: _Page, gone: Sequence[LoggedDocument]) -> list[LoggedDocument]:
        """The documents that are indexed instead of those that go, and that the receiver would get only later."""
        ids = {entry.survivor_id for entry in gone if entry.survivor_id is not None}
        found = self._run.read(log_table.find_entries, source_id=self._run.source_id, url_ids=ids) if ids else []
        return [entry for entry in found if entry.is_shown and entry.can_be_sent and entry.place > page.place]

    def _send_documents(self, page: _Page, entries: Sequence[LoggedDocument]) -> None:
        by_id = {entry.row.url_id: entry for entry in entries}
        # After the page was read: what is cut from texts, and titles, may have been frozen anew since, and not before.
        reader = DocumentReader(self._run, self._cache)
        lost = self._send_parts(page, by_id, reader)
        find = partial(log_table.find_entries, source_id=self._run.source_id, url_ids=lost)
        # Records may have been moved in the cache since the page was read.
        again = {
            entry.row.url_id: entry
            for entry in (self._run.read(find) if lost else ())
            if entry.can_be_sent and entry.seq == by_id[entry.row.url_id].seq
        }
        for url_id in self._send_parts(page, again, reader):
            page.lost.append(url_id)
            page.refused[url_id] = page.build_fault(again[url_id], receiver_table.NO_RECORD)

    def _send_parts(self, page: _Page, by_id: Mapping[int, LoggedDocument], reader: DocumentReader) -> list[int]:
        """Sends the documents of entries, a part at a time; returns the rows whose record cannot be read."""
        lost: list[int] = []
        for part in reader.read([entry.row for entry in by_id.values()]):
            lost += part.lost
            if part.documents:
                self._send_part(page, by_id, part.documents)
        return lost

    def _send_part(
        self, page: _Page, by_id: Mapping[int, LoggedDocument], documents: Sequence[tuple[int, IndexedDocument]]
    ) -> None:
        told = []
        for url_id, document in documents:
            known = by_id[url_id].is_known_at(page.row.place)
            told.append(replace(document, change=Change.CHANGED if known else Change.NEW))
        # No entry that is drawn from now on has a lower number: the versions of a document rise.
        number = max(by_id[url_id].seq for url_id, _ in documents)
        receipts = self._deliver(page.row, number, documents=told)
        self._note_receipts(page, number, [by_id[url_id] for url_id, _ in documents], receipts)

    def _send_removals(self, page: _Page, going: Sequence[_Going]) -> None:
        entries = {entry.row.url_id: entry for entry in page.entries}
        for start in range(0, len(going), _REMOVALS_A_PART):
            part = going[start : start + _REMOVALS_A_PART]
            removals = [Removal(id=each.id, url="" if each.row is None else each.row.url, code=0) for each in part]
            receipts = self._deliver(page.row, part[-1].seq, removals=removals)
            known = [None if each.row is None else entries[each.row.url_id] for each in part]
            self._note_receipts(page, part[-1].seq, known, receipts)

    def _note_receipts(
        self, page: _Page, number: int, entries: Sequence[LoggedDocument | None], receipts: Sequence[Receipt]
    ) -> None:
        for entry, receipt in zip(entries, receipts, strict=True):
            if receipt.accepted:
                page.acknowledged = max(page.acknowledged, page.row.compute_version(number))
            if entry is not None and receipt.accepted:
                page.taken.append(entry.row.url_id)
            elif entry is not None:
                page.refused[entry.row.url_id] = page.build_fault(entry, receipt.error)

    def _deliver(
        self,
        row: ReceiverRow,
        number: int,
        *,
        documents: Sequence[IndexedDocument] = (),
        removals: Sequence[Removal] = (),
    ) -> Sequence[Receipt]:
        return self.door.deliver(
            Batch(
                number=number,
                source=self._run.source.name,
                crawl_version=row.compute_version(number),
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
        # One that is being sent to the index is missed there as well; another one may have changed since.
        lost = [
            entry.row.url_id
            for entry in log_table.find_entries(transaction, source_id, page.lost)
            if entry.can_be_sent
            and entry.state != DocumentState.SENDING
            and entry.seq == page.refused[entry.row.url_id].seq
        ]
        batch_table.fetch_again(transaction, lost)


_PART: Final = 1000


class KeptIndex(_OfReceiver):
    """The documents of a run's source in a receiver; raises as ``Door`` does, StoreError, LeaseLost."""

    def __init__(self, run: Run, door: Door, index: SearchIndex) -> None:
        super().__init__(run, door)
        self._index = index

    def commit(self) -> None:
        """Makes visible what was delivered."""
        self.door.call(self._index.commit)

    def compare(self) -> None:
        """Has it begin anew where it has newer documents than it was given, or has lost some."""
        source = self._run.source.name
        self.door.call(self._index.ping)
        # What a process that died has delivered and not shown yet.
        self.commit()
        row, highest = self._find_row(), self.door.call(lambda: self._index.find_highest_version(source))
        if row.sweeping is Sweep.ASKED and not row.sent and highest < row.lowest_version:
            # It has just begun anew.
            return
        if highest > max(row.sent, row.acknowledged):
            why = "has documents that it was not given"
        elif highest < row.acknowledged:
            why = "has lost documents"
        else:
            return
        logger.warning("the receiver %s %s: it gets all of them again", self.name, why)
        self._write(receiver_table.begin_anew, above=highest, sweeping=Sweep.WITHIN_LIMITS)

    def sweep(self) -> None:
        """Removes what it has and the log has not, once it has all of the log, if it began anew."""
        row = self._find_row()
        if row.sweeping is Sweep.NO:
            return
        if self._run.read(log_table.count_waiting, source_id=self._run.source_id, after=row.place):
            return
        removed = 0
        if self._may_sweep(row):
            number = self._run.write(run_table.draw_log_number, source_id=self._run.source_id)
            for part in self._list_entries():
                removed += self._remove(number, self._select_strange(row, part))
            self.commit()
        if removed:
            what = counted(removed, "document", "documents")
            logger.warning("the receiver %s had %s that the index does not have: removed", self.name, what)
        self._write(receiver_table.note, sweeping=0)
        reach("receiver.swept")

    def empty(self) -> None:
        """Removes all documents of the source."""
        number = self._run.write(run_table.draw_log_number, source_id=self._run.source_id)
        for part in self._list_entries():
            self._remove(number, part)
        self.commit()

    def _may_sweep(self, row: ReceiverRow) -> bool:
        if row.sweeping is Sweep.ASKED:
            return True
        all_of_them = strange = 0
        for part in self._list_entries():
            all_of_them += len(part)
            strange += len(self._select_strange(row, part))
        if self._run.source.lifecycle.allows(strange, all_of_them):
            return True
        logger.warning(
            "the receiver %s has %s that the index does not have, which is past the limits on deleting: searchcrawl resend "
            "%s --receiver %s removes them",
            self.name,
            counted(strange, "document", "documents"),
            self._run.source.name,
            self.name,
        )
        return False

    def _select_strange(self, row: ReceiverRow, part: Sequence[IndexEntry]) -> list[IndexEntry]:
        """Those of earlier generations that the log does not have."""
        old = {
            urls.key(entry.access_url or entry.url): entry for entry in part if entry.crawl_version < row.lowest_version
        }
        shown = self._run.read(log_table.find_shown, source_id=self._run.source_id, url_keys=old) if old else set()
        return [entry for key, entry in old.items() if key not in shown]

    def _list_entries(self) -> Iterator[list[IndexEntry]]:
        """What it has of the source, in parts."""
        entries: Iterable[IndexEntry] = self._index.scan(self._run.source.name)
        part: list[IndexEntry] = []
        for entry in entries:
            part.append(entry)
            if len(part) == _PART:
                yield part
                part = []
        if part:
            yield part

    def _remove(self, number: int, entries: Sequence[IndexEntry]) -> int:
        if not entries:
            return 0
        version = self._find_row().compute_version(number)
        self._write(receiver_table.note_sending, version=version)
        removals = [Removal(id=entry.id, url=entry.url, code=0) for entry in entries]
        batch = Batch(number=number, source=self._run.source.name, crawl_version=version, removals=removals)
        return sum(receipt.accepted for receipt in self.door.deliver(batch))
