"""The documents of a source as the index has them, for files that are written of them (K4)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select

from searchcrawl.store.batches.batch_table import BATCH_COLUMNS, BatchDocument
from searchcrawl.store.documents.document_events import HELD_CHANGED
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.feed_schema import feed_documents
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import unindexed
from searchcrawl.store.states import DocumentState

#: The index has the document as its row and its record say, also where its removal waits for an approval.
_IS_READABLE: Final = and_(
    documents.c.indexed_version > 0,
    documents.c.fields_digest.is_not(None),
    or_(
        documents.c.state == int(DocumentState.PRESENT),
        and_(
            documents.c.state == int(DocumentState.QUARANTINED),
            documents.c.held_state.in_([int(DocumentState.PRESENT), HELD_CHANGED]),
            documents.c.duplicate_of.is_(None),
        ),
    ),
)


class IndexedRow(NamedTuple):
    """A document in the index: the values of its row, and the version that the index has."""

    row: BatchDocument
    version: int


def find_indexed(
    transaction: Transaction, source_id: int, *, after: int, limit: int, feed_id: int | None = None
) -> list[IndexedRow]:
    """Documents that the index has as they are in the cache, by rising id of the URL.

    With a feed only those that its deltas do not have in the version of the index.
    """
    rows, changed = _join(source_id, feed_id)
    query = (
        select(*BATCH_COLUMNS, documents.c.indexed_version)
        .select_from(rows)
        .where(
            unindexed(documents.c.source_id) == source_id,
            documents.c.indexed_version.is_not(None),
            documents.c.url_id > after,
            _IS_READABLE,
            *changed,
        )
        .order_by(documents.c.url_id)
        .limit(limit)
    )
    return [
        IndexedRow(version=version, row=BatchDocument._make(values)) for *values, version in transaction.execute(query)
    ]


def count_unreadable(transaction: Transaction, source_id: int, *, feed_id: int | None = None) -> int:
    """How many documents the index has in another version than the cache; with a feed as above."""
    rows, changed = _join(source_id, feed_id)
    query = (
        select(func.count())
        .select_from(rows)
        .where(
            documents.c.source_id == source_id,
            documents.c.indexed_version.is_not(None),
            # Not ``~``: of a value that is not known nothing is denied.
            func.coalesce(_IS_READABLE, False).is_(False),
            *changed,
        )
    )
    return int(transaction.execute(query).scalar_one())


def _join(source_id: int, feed_id: int | None) -> tuple[Any, tuple[ColumnElement[bool], ...]]:
    """The tables, and the condition that the deltas of a feed do not have a document as the index has it."""
    rows = documents.join(urls, urls.c.id == documents.c.url_id)
    if feed_id is None:
        return rows, ()
    of_feed = and_(
        feed_documents.c.source_id == source_id,
        feed_documents.c.feed_id == feed_id,
        feed_documents.c.url_id == urls.c.id,
        feed_documents.c.url_key == urls.c.key,
    )
    return rows.outerjoin(feed_documents, of_feed), (
        or_(feed_documents.c.version.is_(None), feed_documents.c.version != documents.c.indexed_version),
    )
