"""A receiver besides the index that is an index itself: what it has can be compared with what it was given (L14).

One that was emptied or put back, or whose store was, begins anew: it gets all documents with higher versions, and then what it has
besides is removed, within the limits on deleting.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from searchcrawl import urls
from searchcrawl.delivery.receivers.door import Door
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Batch, IndexEntry, SearchIndex
from searchcrawl.items import Removal
from searchcrawl.rules.lifecycle import is_within_limits
from searchcrawl.run import Run
from searchcrawl.store.receivers import log_counter, log_table, receiver_table
from searchcrawl.store.receivers.receiver_table import ReceiverRow, Sweep
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

_PART: Final = 1000


class KeptIndex:
    """The documents of a run's source in a receiver; raises as ``Door`` does, StoreError, LeaseLost."""

    def __init__(self, run: Run, door: Door, index: SearchIndex) -> None:
        self._run = run
        self._door = door
        self._index = index

    def commit(self) -> None:
        """Makes visible what was delivered."""
        self._door.call(self._index.commit)

    def compare(self) -> None:
        """Has it begin anew where it has newer documents than it was given, or has lost some."""
        source = self._run.source.name
        self._door.call(self._index.ping)
        # What a process that died has delivered and not shown yet.
        self.commit()
        row, highest = self._find_row(), self._door.call(lambda: self._index.find_highest_version(source))
        if row.sweeping is Sweep.ASKED and not row.sent and highest < row.lowest_version:
            # It has just begun anew.
            return
        if highest > max(row.sent, row.acknowledged):
            why = "has documents that it was not given"
        elif highest < row.acknowledged:
            why = "has lost documents"
        else:
            return
        logger.warning("the receiver %s %s: it gets all of them again", self._door.name, why)
        anew = partial(receiver_table.begin_anew, source_id=self._run.source_id, name=self._door.name)
        self._run.write(partial(anew, above=highest, sweeping=Sweep.WITHIN_LIMITS))

    def sweep(self) -> None:
        """Removes what it has and the log has not, once it has all of the log, if it began anew."""
        row = self._find_row()
        count = partial(log_table.count_waiting, source_id=self._run.source_id, after=row.place)
        if row.sweeping is Sweep.NO or self._run.read(count):
            return
        removed = 0
        if self._may_sweep(row):
            number = self._run.write(partial(log_counter.draw, source_id=self._run.source_id))
            for part in self._list_entries():
                removed += self._remove(number, self._select_strange(row, part))
            self.commit()
        if removed:
            what = counted(removed, "document", "documents")
            logger.warning("the receiver %s had %s that the index does not have: removed", self._door.name, what)
        self._run.write(partial(receiver_table.end_sweep, source_id=self._run.source_id, name=self._door.name))
        reach("receiver.swept")

    def empty(self) -> None:
        """Removes all documents of the source."""
        number = self._run.write(partial(log_counter.draw, source_id=self._run.source_id))
        for part in self._list_entries():
            self._remove(number, part)
        self.commit()

    def _find_row(self) -> ReceiverRow:
        return self._run.read(partial(receiver_table.require, source_id=self._run.source_id, name=self._door.name))

    def _may_sweep(self, row: ReceiverRow) -> bool:
        if row.sweeping is Sweep.ASKED:
            return True
        all_of_them = strange = 0
        for part in self._list_entries():
            all_of_them += len(part)
            strange += len(self._select_strange(row, part))
        lifecycle = self._run.source.lifecycle
        if is_within_limits(
            strange,
            all_of_them,
            max_delete_percent=lifecycle.max_delete_percent,
            max_delete_documents=lifecycle.max_delete_documents,
        ):
            return True
        logger.warning(
            "the receiver %s has %s that the index does not have, which is past the limits on deleting: searchcrawl resend "
            "%s --receiver %s removes them",
            self._door.name,
            counted(strange, "document", "documents"),
            self._run.source.name,
            self._door.name,
        )
        return False

    def _select_strange(self, row: ReceiverRow, part: Sequence[IndexEntry]) -> list[IndexEntry]:
        """Those of earlier generations that the log does not have."""
        old = {
            urls.key(entry.access_url or entry.url): entry for entry in part if entry.crawl_version < row.lowest_version
        }
        find = partial(log_table.find_shown, source_id=self._run.source_id, url_keys=old)
        shown = self._run.read(find) if old else set()
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
        note = partial(receiver_table.note_sending, source_id=self._run.source_id, name=self._door.name)
        self._run.write(partial(note, version=version))
        removals = [Removal(id=entry.id, url=entry.url, code=0) for entry in entries]
        batch = Batch(number=number, source=self._run.source.name, crawl_version=version, removals=removals)
        return sum(receipt.accepted for receipt in self._door.deliver(batch))
