"""Documents of pages without text of their own (``rules.traps``) that no start list or sitemap names (L8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import Select, select, text

from searchcrawl.store.documents.presence import is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.states import UNSENT, DocumentState, FetchState

_BARE: Final = text("documents.bare = 1")
_ROWS_AT_ONCE: Final = 1_000
#: Documents that may still be sent, or take the place of one that may.
_WAITING: Final = is_in({DocumentState.WITHHELD, *UNSENT})


class BareDocument(NamedTuple):
    """The row of a page without text of its own."""

    url_id: int
    url: str


def find_undelivered(transaction: Transaction, source_id: int, *, after: int, limit: int) -> list[BareDocument]:
    """Those that no index ever had, by rising row id above ``after``."""
    query = _build_query(source_id, after, limit).where(
        documents.c.indexed_version.is_(None),
        _WAITING,
        urls.c.fetch_state == int(FetchState.SETTLED),
    )
    return [BareDocument._make(row) for row in transaction.execute(query)]


def list_indexed(transaction: Transaction, source_id: int) -> Iterator[str]:
    """The URLs of those that the index has."""
    after = 0
    while True:
        query = _build_query(source_id, after, _ROWS_AT_ONCE).where(documents.c.indexed_version.is_not(None))
        rows = [BareDocument._make(row) for row in transaction.execute(query)]
        yield from (row.url for row in rows)
        if len(rows) < _ROWS_AT_ONCE:
            return
        after = rows[-1].url_id


def _build_query(source_id: int, after: int, limit: int) -> Select[tuple[int, str]]:
    return (
        select(urls.c.id, urls.c.url)
        .select_from(documents.join(urls, urls.c.id == documents.c.url_id))
        .where(_BARE, documents.c.source_id == source_id, documents.c.url_id > after)
        .where(urls.c.depth > 0, urls.c.sitemap_id.is_(None))
        .order_by(documents.c.url_id)
        .limit(limit)
    )
