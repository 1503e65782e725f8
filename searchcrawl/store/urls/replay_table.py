"""Part of the URL table: the rows whose answer the cache has, for processing them again without a request (D9)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update

from searchcrawl.codes import ANSWERED, REFUSALS, REFUSED, ROBOTS_UNAVAILABLE, WITH_DOCUMENT
from searchcrawl.store.documents.presence import IS_RECORD_LOST
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import is_one_of, split, unindexed
from searchcrawl.store.states import INDEXABLE, FetchState
from searchcrawl.store.urls import url_classes

#: Rows that are read at once; a source may have millions.
PAGE_ROWS: Final = 1000

_READ_WELL: Final = urls.c.code.in_(sorted(WITH_DOCUMENT))
_SETTLED: Final = urls.c.fetch_state == int(FetchState.SETTLED)
_TODO: Final = urls.c.fetch_state == int(FetchState.TODO)
_ROWS: Final = urls.outerjoin(documents, documents.c.url_id == urls.c.id)


class StoredAnswer(NamedTuple):
    """A row, the redirects of its last visit as JSON, where its record is (``cache.segment.Place``), and its bytes.

    ``redirected``: the page came from another URL, also where the row has been refused since, and does not say how.
    """

    url_id: int
    redirects: str | None
    segment: int
    offset: int
    response_bytes: int
    fields_bytes: int
    content_length: int
    redirected: bool = False


def find(transaction: Transaction, source_id: int, *, after: int, limit: int, horizon_ms: int) -> list[StoredAnswer]:
    """The next rows by rising id that are due in this run, whose last visit was good, and whose record is there.

    Also those that were refused, and that edited rules allow again. Rows whose document is lost, or differs from what the
    index has, are left to a visit.
    """
    columns = documents.c.segment, documents.c.record_offset, documents.c.response_bytes, documents.c.fields_bytes
    query = (
        select(
            urls.c.id,
            urls.c.redirects,
            *columns,
            documents.c.content_length,
            documents.c.answered_key.is_not(None),
        )
        .select_from(_ROWS)
        .where(unindexed(urls.c.source_id) == source_id, urls.c.id > after, _has_answer(horizon_ms))
        .order_by(urls.c.id)
        .limit(limit)
    )
    return [StoredAnswer._make(row) for row in transaction.execute(query)]


def _has_answer(horizon_ms: int) -> ColumnElement[bool]:
    # A process that died may have claimed it. One that was reopened for a visit (``recrawl``) has no moment.
    claimed = and_(_READ_WELL, urls.c.due_ms > 0)
    # Where redirects led to what was refused, they are none of the record, and may lead to another page now.
    refused = and_(urls.c.code.in_(sorted(REFUSED)), urls.c.redirects.is_(None))
    again = and_(_TODO, or_(claimed, refused))
    due = and_(_SETTLED, urls.c.due_ms <= horizon_ms, _READ_WELL)
    has_record = and_(documents.c.segment.is_not(None), ~IS_RECORD_LOST)
    return and_(or_(again, due), has_record)


def count_answers(transaction: Transaction, source_id: int, *, horizon_ms: int) -> tuple[int, int]:
    """How many rows ``find`` would find in all, and how many a run would visit."""
    due = or_(urls.c.fetch_state != int(FetchState.SETTLED), urls.c.due_ms <= horizon_ms)
    stored = func.sum(case((_has_answer(horizon_ms), 1), else_=0))
    query = select(func.coalesce(stored, 0), func.count()).select_from(_ROWS)
    row = transaction.execute(query.where(unindexed(urls.c.source_id) == source_id, due)).one()
    return int(row[0]), int(row[1])


def count_left(transaction: Transaction, source_id: int, *, horizon_ms: int, codes: Collection[int] | None) -> int:
    """How many rows have to be visited: those to do, and those due whose last code is one of ``codes`` (None: all)."""
    due = and_(_SETTLED, urls.c.due_ms <= horizon_ms)
    if codes is not None:
        due = and_(due, urls.c.code.in_(sorted(codes)))
    waits = urls.c.fetch_state != int(FetchState.SETTLED)
    query = select(func.count()).select_from(urls).where(unindexed(urls.c.source_id) == source_id, or_(waits, due))
    return int(transaction.execute(query).scalar_one())


def count_undecided(transaction: Transaction, source_id: int) -> int:
    """How many documents of the index are not looked at again because the last visit of their URL failed.

    An edit decides about them once a visit brings their page.
    """
    query = (
        select(func.count())
        .select_from(urls.join(documents, documents.c.url_id == urls.c.id))
        .where(
            unindexed(urls.c.source_id) == source_id,
            _SETTLED,
            or_(urls.c.code.not_in(sorted(ANSWERED | REFUSALS | WITH_DOCUMENT)), urls.c.rule == ROBOTS_UNAVAILABLE),
            documents.c.indexed_version.is_not(None),
            is_one_of("documents.state", INDEXABLE),
        )
    )
    return int(transaction.execute(query).scalar_one())


def put_off(transaction: Transaction, source_id: int, *, after: int, horizon_ms: int) -> int | None:
    """Leaves the rows that are still due to the next run, a page of them: an edit has no effect on them.

    Documents of theirs are processed again at their next visit, whatever bytes it brings. Returns the last id, None at the
    end.
    """
    query = (
        select(urls.c.id)
        .where(unindexed(urls.c.source_id) == source_id, urls.c.id > after, _SETTLED, urls.c.due_ms <= horizon_ms)
        .order_by(urls.c.id)
        .limit(PAGE_ROWS)
    )
    found = list(transaction.execute(query).scalars())
    for part in split(found):
        with url_classes.watch(transaction, part):
            transaction.execute(update(urls).where(urls.c.id.in_(part)).values(due_ms=horizon_ms + 1))
        transaction.execute(update(documents).where(documents.c.url_id.in_(part)).values(unavailable_ms=0))
    return found[-1] if found else None
