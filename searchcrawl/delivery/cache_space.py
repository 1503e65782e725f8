"""Keeps the cache within ``cache.max_gb``: superseded records go first, then the oldest segments (E2).

Records that are still needed move out of segments with superseded ones, into a new segment. The copies are on the disk
before any row names them, and a segment is deleted after no row names it: a crash at any moment loses no record. What it
leaves behind is superseded itself. Records that wait for the index stay where they are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import SegmentWriter
from searchcrawl.exceptions import CacheError, DamagedRecord
from searchcrawl.failpoints import reach
from searchcrawl.run import Run
from searchcrawl.store import batch_table, log_table, source_table
from searchcrawl.store.documents import segment_table
from searchcrawl.store.documents.segment_table import MovedRecord, Needed
from searchcrawl.store.engine.database import Transaction

logger = logging.getLogger(__name__)

#: So much stays free on the disk while records are moved.
_SPARE_BYTES: Final = 256 << 20
#: The needed records of several segments are moved into one of so many bytes, or of such a part of the cache: the oldest
#: ones are given up a segment at a time.
_MOST_BYTES: Final = 64 << 20
_LEAST_SEGMENTS: Final = 32


class CacheSpace:
    """Frees the cache of a run; any thread may call ``free``."""

    def __init__(self, run: Run, cache: DocumentCache) -> None:
        self._run = run
        self._cache = cache
        self._lock = threading.Lock()
        #: segments of which none was worth to be rewritten, and those that were in use
        self._seen: tuple[dict[int, int], set[int]] | None = None

    def count_bytes(self) -> int:
        """The size of the cache."""
        return sum(size for _, size in self._cache.list_segments())

    def free(self) -> None:
        """Deletes records that the index has, and all receivers; none while everything is sent again.

        Without ``cache.preserve`` all of them go. Else those beyond ``max_gb``: first superseded ones, then the oldest. A full
        cache does not wait for receivers besides the index: they get later what is fetched again.
        Raises StoreError, LeaseLost, CacheError.
        """
        with self._lock:
            source_id = self._run.source_id
            used = self._run.read(_find_in_use, source_id=source_id)
            if used is None or (self._run.project.cache.preserve and not self._count_excess()):
                return
            unread = self._run.read(log_table.find_segments_unread, source_id=source_id) - used
            self._free(used | unread)
            if unread and self._count_excess():
                self._free(used)

    def _free(self, used: set[int]) -> None:
        sizes = dict(self._cache.list_segments())
        if not self._run.project.cache.preserve:
            for number in sorted(sizes.keys() - used):
                give_up(self._run, self._cache, number)
        elif self._count_excess():
            self._give_up_oldest(used, self._compact(sizes, used))

    def _count_excess(self, leaving: AbstractSet[int] = frozenset()) -> int:
        """How many bytes are too many, without segments that are about to leave."""
        size = sum(size for number, size in self._cache.list_segments() if number not in leaving)
        return max(0, size - self._run.project.cache.max_bytes)

    def _compact(self, sizes: dict[int, int], used: set[int]) -> set[int]:
        """Has superseded records go, as far as that is necessary; returns the segments that can be deleted later."""
        leaving: set[int] = set()
        if self._seen == (sizes, used):
            return leaving
        groups = self._plan(sizes, used)
        self._seen = None if groups else (sizes, used)
        for group in groups:
            spare = self._cache.storage.find_free_bytes() - sum(segment.needed for segment in group)
            if not self._count_excess(leaving) or spare < _SPARE_BYTES:
                break
            try:
                leaving |= compact(self._run, self._cache, group)
            except CacheError as error:
                logger.warning("superseded records cannot be taken out of the cache: %s", error)
                break
        return leaving

    def _plan(self, sizes: dict[int, int], used: set[int]) -> list[list[Segment]]:
        run = self._run
        needed = run.read(segment_table.count_needed, run.source_id)
        ages = self._find_ages()
        segments = [
            Segment(ages.get(number, number), number, size, needed.get(number, 0))
            for number, size in sizes.items()
            if number not in used
        ]
        return list(plan(segments, target_bytes=min(_MOST_BYTES, run.project.cache.max_bytes // _LEAST_SEGMENTS)))

    def _give_up_oldest(self, used: set[int], leaving: set[int]) -> None:
        ages = self._find_ages()
        excess = self._count_excess(leaving)
        sizes = {number: size for number, size in self._cache.list_segments() if number not in {*used, *leaving}}
        for number in sorted(sizes, key=lambda number: (ages.get(number, number), number)):
            if excess <= 0:
                break
            if give_up(self._run, self._cache, number):
                excess -= sizes[number]

    def _find_ages(self) -> dict[int, int]:
        run = self._run
        return run.read(segment_table.find_ages, run.source_id)


def _find_in_use(transaction: Transaction, *, source_id: int) -> set[int] | None:
    """The segments that must stay; None means all of them."""
    if source_table.find(transaction, source_id, "resend_version") is not None:
        return None
    return segment_table.find_in_use(transaction, source_id)


#: Segments that are smaller than this part of the target are moved along with their neighbours, or their number would
#: rise for ever.
_SMALL_PART: Final = 16
#: A segment is worth it if this part of it is superseded: each byte that is freed costs so many that are copied.
_WORTH: Final = 20
#: One step: it is synced, and noted in one transaction.
_STEP_BYTES: Final = 8 << 20
_STEP_RECORDS: Final = 1000


class Segment(NamedTuple):
    """A segment that may be rewritten, and how many of its bytes are needed; the smallest ``age`` is the oldest."""

    age: int
    number: int
    size: int
    needed: int

    @property
    def is_worth_it(self) -> bool:
        """Whether enough of it is superseded."""
        return self.size <= (self.size - self.needed) * _WORTH


def plan(segments: Sequence[Segment], *, target_bytes: int) -> Iterator[list[Segment]]:
    """Groups segments of one age that are to become one each: first those of which the largest part is superseded.

    Several are joined up to ``target_bytes``.
    """
    ordered = sorted(segments)
    left = set(range(len(ordered)))
    places = [place for place, segment in enumerate(ordered) if segment.is_worth_it]
    for place in sorted(places, key=lambda place: (ordered[place].needed / max(ordered[place].size, 1), place)):
        if place in left:
            group = [place, *_find_neighbours(ordered, left, place, target_bytes)]
            left.difference_update(group)
            yield [ordered[one] for one in sorted(group)]


def _find_neighbours(ordered: Sequence[Segment], left: set[int], place: int, target_bytes: int) -> list[int]:
    found: list[int] = []
    needed = ordered[place].needed
    for step in (1, -1):
        beside = place + step
        while beside in left and needed + ordered[beside].needed <= target_bytes:
            if not ordered[beside].is_worth_it and ordered[beside].size > target_bytes // _SMALL_PART:
                break
            found.append(beside)
            needed += ordered[beside].needed
            beside += step
    return found


def compact(run: Run, cache: DocumentCache, group: Sequence[Segment]) -> set[int]:
    """Makes one segment of a group, and deletes these; returns those that stay, as records in them wait by now.

    Raises StoreError, LeaseLost, and CacheError where the copies cannot be written: then no record is lost either.
    """
    if not any(segment.needed for segment in group):
        return {segment.number for segment in group if not give_up(run, cache, segment.number)}
    stay: set[int] = set()
    newest = max(segment.age for segment in group)
    target = run.write(segment_table.begin, source_id=run.source_id, newest=newest)
    with closing(cache.open_writer(target, 0)) as writer:
        for segment in group:
            _move(run, cache, writer, segment.number)
            if not give_up(run, cache, segment.number):
                stay.add(segment.number)
    return stay


def rewrite(run: Run, cache: DocumentCache, number: int) -> bool:
    """Has a segment go, with all that no row names; what is needed of it moves to a new one, also what waits for the index.

    For a command that holds the source between runs, and sends nothing meanwhile. Raises as ``compact``. Returns whether
    the segment is gone; records that cannot be read go with it.
    """
    opened = run.read(segment_table.find_open, source_id=run.source_id)[0]
    if opened == number:
        # Nothing is appended to it any more.
        run.write(segment_table.begin, source_id=run.source_id)
    find_needed = partial(segment_table.find_needed, source_id=run.source_id, number=number, with_waiting=True)
    if run.read(find_needed):
        target = run.write(segment_table.begin, source_id=run.source_id, newest=number)
        with closing(cache.open_writer(target, 0)) as writer:
            _move(run, cache, writer, number, with_waiting=True)
    if damaged := [row.url_id for row in run.read(find_needed)]:
        run.write(_fetch_again, url_ids=damaged)
    return give_up(run, cache, number)


def _fetch_again(transaction: Transaction, *, url_ids: Sequence[int]) -> None:
    """Has the pages fetched whose records cannot be read and are to be sent."""
    batch_table.fetch_again(transaction, segment_table.select_waiting(transaction, url_ids))


def _move(run: Run, cache: DocumentCache, writer: SegmentWriter, number: int, *, with_waiting: bool = False) -> None:
    rows = run.read(segment_table.find_needed, source_id=run.source_id, number=number, with_waiting=with_waiting)
    for step in _split(rows):
        moved = _copy(cache, writer, number, step)
        writer.sync()
        reach("segment.copied")
        note = partial(_note_moved, number=number, writer=writer, moved=moved, with_waiting=with_waiting)
        run.write(note, source_id=run.source_id)
        reach("segment.moved")


def _split(rows: Sequence[Needed]) -> Iterator[Sequence[Needed]]:
    start = size = 0
    for end, row in enumerate(rows):
        size += row.size
        if size >= _STEP_BYTES or end + 1 - start >= _STEP_RECORDS:
            yield rows[start : end + 1]
            start, size = end + 1, 0
    if start < len(rows):
        yield rows[start:]


def _copy(cache: DocumentCache, writer: SegmentWriter, number: int, rows: Sequence[Needed]) -> list[MovedRecord]:
    moved: list[MovedRecord] = []
    now, copied = 0, -1
    for row in rows:
        # Several rows may name one record.
        if row.offset != copied:
            try:
                now, copied = writer.copy(cache.read_pieces(number, row.offset, row.size)), row.offset
            except DamagedRecord as error:
                logger.error("%s; its page is fetched again when it is needed", error)
                continue
        moved.append(MovedRecord(row.url_id, row.offset, now))
    return moved


def _note_moved(
    transaction: Transaction,
    *,
    source_id: int,
    number: int,
    writer: SegmentWriter,
    moved: Sequence[MovedRecord],
    with_waiting: bool,
) -> None:
    segment_table.move(transaction, source_id, number, target=writer.number, moved=moved, with_waiting=with_waiting)
    segment_table.set_committed(transaction, source_id, writer.number, writer.position)


def give_up(run: Run, cache: DocumentCache, number: int) -> bool:
    """Deletes a segment, with the records that it has; False if one of them waits for the index by now."""
    if not run.write(segment_table.forget, source_id=run.source_id, number=number):
        return False
    cache.delete(number)
    return True
