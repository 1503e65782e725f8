"""Moves the records that are still needed out of segments with superseded ones, into a new segment.

The copies are on the disk before any row names them, and a segment is deleted after no row names it: a crash at any moment
loses no record. What it leaves behind is superseded itself. Records that wait for the index stay where they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import SegmentWriter
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.failpoints import reach
from searchcrawl.run import Run
from searchcrawl.store.batches import resend_table
from searchcrawl.store.documents import segment_table
from searchcrawl.store.documents.segment_table import Moved, Needed
from searchcrawl.store.engine.database import Transaction

logger = logging.getLogger(__name__)

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
    resend_table.fetch_again(transaction, segment_table.select_waiting(transaction, url_ids))


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


def _copy(cache: DocumentCache, writer: SegmentWriter, number: int, rows: Sequence[Needed]) -> list[Moved]:
    moved: list[Moved] = []
    now, copied = 0, -1
    for row in rows:
        # Several rows may name one record.
        if row.offset != copied:
            try:
                records = cache.read_bytes(number, row.offset, row.size)
            except DamagedRecord as error:
                logger.error("%s; its page is fetched again when it is needed", error)
                continue
            now, copied = writer.copy(records), row.offset
        moved.append(Moved(row.url_id, row.offset, now))
    return moved


def _note_moved(
    transaction: Transaction,
    *,
    source_id: int,
    number: int,
    writer: SegmentWriter,
    moved: Sequence[Moved],
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
