"""The documents of a source as the index has them, for an export (K4)."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from searchcrawl.store.batches.batch_table import BATCH_COLUMNS, BatchDocument
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import unindexed
from searchcrawl.store.states import DocumentState


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
            documents.c.state == int(DocumentState.PRESENT),
            documents.c.indexed_version.is_not(None),
            documents.c.url_id > after,
        )
        .order_by(documents.c.url_id)
        .limit(limit)
    )
    found = [dict(row._mapping) for row in transaction.execute(query)]
    return [IndexedRow(version=row.pop("indexed_version"), row=BatchDocument(**row)) for row in found]
