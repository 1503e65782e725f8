"""The documents of a source as the index has them, for files that are written of them (K4)."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import and_, func, or_, select

from searchcrawl.store.batches.batch_table import BATCH_COLUMNS, BatchDocument
from searchcrawl.store.documents.document_events import HELD_CHANGED
from searchcrawl.store.engine.database import Transaction
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


def find_indexed(transaction: Transaction, source_id: int, *, after: int, limit: int) -> list[IndexedRow]:
    """Documents that the index has as they are in the cache, by rising id of the URL."""
    query = (
        select(*BATCH_COLUMNS, documents.c.indexed_version)
        .select_from(documents.join(urls, urls.c.id == documents.c.url_id))
        .where(
            unindexed(documents.c.source_id) == source_id,
            documents.c.indexed_version.is_not(None),
            documents.c.url_id > after,
            _IS_READABLE,
        )
        .order_by(documents.c.url_id)
        .limit(limit)
    )
    return [
        IndexedRow(version=version, row=BatchDocument._make(values)) for *values, version in transaction.execute(query)
    ]


def count_unreadable(transaction: Transaction, source_id: int) -> int:
    """How many documents the index has in another version than the cache."""
    query = (
        select(func.count())
        .select_from(documents)
        .where(
            documents.c.source_id == source_id,
            documents.c.indexed_version.is_not(None),
            # Not ``~``: of a value that is not known nothing is denied.
            func.coalesce(_IS_READABLE, False).is_(False),
        )
    )
    return int(transaction.execute(query).scalar_one())
