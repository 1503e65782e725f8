"""The segments of the cache: which one is written, how old each is, and which records in it are still needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Table, bindparam, func, select, update

from searchcrawl.store import batch_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import find_among, upsert_rows
from searchcrawl.store.run_schema import segments
from searchcrawl.store.schema import documents, former_documents
from searchcrawl.store.statements import split

#: Tables whose rows say where a record is.
_TABLES: Final = (documents, former_documents)


class Needed(NamedTuple):
    """A record that is still needed, by its bytes in a segment."""

    offset: int
    size: int
    url_id: int


class MovedRecord(NamedTuple):
    """A record that was copied; both are offsets."""

    url_id: int
    before: int
    now: int


def find_open(transaction: Transaction, source_id: int) -> tuple[int, int]:
    """Number and committed bytes of the segment to append to; (1, 0) for the first one."""
    row = transaction.execute(
        select(segments.c.number, segments.c.committed_bytes)
        .where(segments.c.source_id == source_id, segments.c.newest.is_(None))
        .order_by(segments.c.number.desc())
        .limit(1)
    ).one_or_none()
    return (1, 0) if row is None else (row.number, row.committed_bytes)


def begin(transaction: Transaction, source_id: int, *, newest: int | None = None) -> int:
    """Adds the next segment and returns its number; with ``newest`` one that records are moved to.

    The number is noted before the file is made: it never had another one.
    """
    query = select(func.max(segments.c.number)).where(segments.c.source_id == source_id)
    number = (transaction.execute(query).scalar() or 1) + 1
    values = {"source_id": source_id, "number": number, "committed_bytes": 0, "newest": newest}
    transaction.execute(segments.insert().values(values))
    return number


def set_committed(transaction: Transaction, source_id: int, number: int, committed_bytes: int) -> None:
    """Writes how many bytes of a segment file belong to committed rows: after a crash the file is cut back to them.

    The writer calls it in the transaction of each group.
    """
    row = {"source_id": source_id, "number": number, "committed_bytes": committed_bytes}
    upsert_rows(transaction, segments, ("source_id", "number"), [row], ("committed_bytes",))


def find_ages(transaction: Transaction, source_id: int) -> dict[int, int]:
    """The segments by number, each with the number of the newest one whose records it has: the smallest is the oldest."""
    age = func.coalesce(segments.c.newest, segments.c.number).label("age")
    query = select(segments.c.number, age).where(segments.c.source_id == source_id)
    return {row.number: row.age for row in transaction.execute(query)}


def find_in_use(transaction: Transaction, source_id: int) -> set[int]:
    """The segments that stay as they are: records in them wait for the index, or one is being written."""
    return {find_open(transaction, source_id)[0], *batch_table.find_segments_in_use(transaction, source_id)}


def count_needed(transaction: Transaction, source_id: int) -> dict[int, int]:
    """The bytes of each segment that are still needed."""
    found: dict[int, int] = {}
    for table in _TABLES:
        size = func.sum(table.c.response_bytes + table.c.fields_bytes)
        query = select(table.c.segment, size.label("size")).where(
            table.c.source_id == source_id, table.c.segment.is_not(None)
        )
        for row in transaction.execute(query.group_by(table.c.segment)):
            found[row.segment] = found.get(row.segment, 0) + int(row.size)
    return found


def find_needed(transaction: Transaction, source_id: int, number: int, *, with_waiting: bool = False) -> list[Needed]:
    """The records of a segment that are still needed, in their order there.

    Without those that wait for the index, unless ``with_waiting``: a delivery may be reading them.
    """
    found: list[Needed] = []
    waits = batch_table.waits_for_index(transaction, source_id)
    for table in _TABLES:
        columns = table.c.record_offset, table.c.response_bytes + table.c.fields_bytes, table.c.url_id
        query = select(*columns).where(table.c.segment == number, table.c.source_id == source_id)
        if table is documents and not with_waiting:
            query = query.where(~waits)
        found += map(Needed._make, transaction.execute(query))
    return sorted(found)


def select_waiting(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Those of ``url_ids`` whose documents are to be sent, or are in a delivery that has not ended."""
    return find_among(transaction, documents.c.url_id, url_ids, batch_table.TO_SEND)


def move(
    transaction: Transaction,
    source_id: int,
    number: int,
    *,
    target: int,
    moved: Sequence[MovedRecord],
    with_waiting: bool = False,
) -> None:
    """Notes that records of segment ``number`` are in ``target`` now.

    Those that wait for the index meanwhile stay, unless ``with_waiting``.
    """
    waits = batch_table.waits_for_index(transaction, source_id)
    for part in split(moved):
        here = documents.c.url_id.in_([one.url_id for one in part])
        query = select(documents.c.url_id).where(here, waits)
        waiting = set() if with_waiting else set(transaction.execute(query).scalars())
        _set_places(transaction, documents, number, target, [one for one in part if one.url_id not in waiting])
        _set_places(transaction, former_documents, number, target, part)


def forget(transaction: Transaction, source_id: int, number: int) -> bool:
    """Notes that a segment is about to be deleted: its documents have no record any more. False if it is in use."""
    if number in find_in_use(transaction, source_id):
        return False
    batch_table.forget_segment(transaction, source_id, number)
    return True


def _set_places(transaction: Transaction, table: Table, number: int, target: int, moved: Sequence[MovedRecord]) -> None:
    if not moved:
        return
    statement = (
        update(table)
        .where(
            table.c.url_id == bindparam("row_id"),
            table.c.segment == number,
            table.c.record_offset == bindparam("before"),
        )
        .values(segment=target, record_offset=bindparam("now"))
    )
    transaction.execute(statement, [{"row_id": one.url_id, "before": one.before, "now": one.now} for one in moved])
