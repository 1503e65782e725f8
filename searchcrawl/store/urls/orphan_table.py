"""Documents whose URLs nothing names any more (``lifecycle.orphans``): which they are, and what is noted of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update

from searchcrawl.rules.lifecycle import ORPHAN, ORPHAN_RULE
from searchcrawl.store.documents.document_events import NAMED_AGAIN
from searchcrawl.store.documents.presence import IS_NOTHING
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import find_among, read_page, select_fields, write_parts
from searchcrawl.store.schema import documents, outlinks, urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import DocumentState, FetchState, Leaving
from searchcrawl.store.urls import url_classes

#: Rows that are read or written in one transaction.
PAGE_ROWS: Final = 5000
_PAGES_OF_LINKS: Final = 1000
_IS_SETTLED: Final = urls.c.fetch_state == int(FetchState.SETTLED)
#: A removed document whose page is being visited, as after an edit: its visit may be written already, in this transaction.
_IS_VISITED: Final = and_(
    IS_NOTHING,
    exists().where(
        urls.c.id == documents.c.url_id,
        or_(*(urls.c.fetch_state == int(state) for state in (FetchState.FETCHING, FetchState.ALONE))),
    ),
)


class StoredLinks(NamedTuple):
    """The encoded links of a page (``link_table``), and what became of the page; ``redirected``: by redirects."""

    url_id: int
    links: bytes
    code: int
    rule: str | None
    redirected: bool
    indexed_version: int | None


class OrphanRow(NamedTuple):
    """What decides whether a row is an orphan, and what is noted of it; the last values are None without a document."""

    url_id: int
    sitemap_id: int | None
    fetch_state: int
    rule: str | None
    due_ms: int | None
    state: int | None
    leaving: int | None
    evidence: str | None
    rejected_run: int | None
    indexed_version: int | None
    duplicate_of: int | None


def find_last_id(transaction: Transaction) -> int:
    """The highest id of a row of any source."""
    return transaction.execute(select(func.max(urls.c.id))).scalar() or 0


def load_links(transaction: Transaction, source_id: int, *, after: int) -> list[StoredLinks]:
    """The links of the next pages, by rising id."""
    query = (
        select_fields(StoredLinks, outlinks, urls, documents, redirected=urls.c.redirects.is_not(None))
        .select_from(outlinks.join(urls, urls.c.id == outlinks.c.url_id).outerjoin(documents, _document_above(after)))
        .where(unindexed(urls.c.source_id) == source_id, outlinks.c.url_id > after, urls.c.id > after)
        .order_by(outlinks.c.url_id)
        .limit(_PAGES_OF_LINKS)
    )
    return [StoredLinks._make(row) for row in transaction.execute(query)]


def load_rows(transaction: Transaction, source_id: int, *, after: int) -> list[OrphanRow]:
    """The next rows of a source, by rising id."""
    query = select_fields(OrphanRow, urls, documents, url_id=urls.c.id)
    query = query.select_from(urls.outerjoin(documents, _document_above(after)))
    page = read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=PAGE_ROWS)
    return [OrphanRow._make(row) for row in page]


def _document_above(after: int) -> ColumnElement[bool]:
    """The document of a row with an id above ``after``.

    PostgreSQL takes no bound from one table of a join to the next: it would read all tables from their beginnings for
    each page, and merge them.
    """
    return and_(documents.c.url_id == urls.c.id, documents.c.url_id > after)


def mark(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Marks documents of the index as orphans: they are to leave it, within the limits."""
    statement = update(documents).where(documents.c.leaving == int(Leaving.NO))
    marks = statement.values(leaving=int(Leaving.ORPHAN), evidence=ORPHAN, rejected_run=None)
    write_parts(transaction, marks, documents.c.url_id, url_ids)


def unmark(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Takes the marks of orphans away whose removal is not decided: they stay."""
    statement = update(documents).where(documents.c.leaving == int(Leaving.ORPHAN))
    write_parts(transaction, statement.values(leaving=int(Leaving.NO), evidence=None), documents.c.url_id, url_ids)


def park(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has rows not visited again until something names them."""
    statement = update(urls).where(_IS_SETTLED).values(due_ms=None, rule=ORPHAN_RULE)
    with url_classes.watch(transaction, url_ids):
        write_parts(transaction, statement, urls.c.id, url_ids)


def park_removed(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has the orphans among removed documents not visited again: as live pages they would come back."""
    park(transaction, find_among(transaction, documents.c.url_id, url_ids, documents.c.evidence == ORPHAN, IS_NOTHING))


def note_named(transaction: Transaction, url_ids: Sequence[int], *, due_ms: int) -> bool:
    """Notes that something names rows again: their removals are dropped, and they are due from ``due_ms`` on.

    Those that are being visited stay noted until the end of the run. Returns whether documents are to be sent: pages that
    were found well while nothing named them. No visit says it once more.
    """
    named = update(documents).where(
        or_(documents.c.evidence == ORPHAN, documents.c.leaving == int(Leaving.ORPHAN)), ~_IS_VISITED
    )
    returning = named.values(NAMED_AGAIN.values).returning(documents.c.url_id, documents.c.state)
    sends = False
    for part in split(url_ids):
        rows = transaction.execute(returning.where(documents.c.url_id.in_(part))).all()
        sends |= any(state == DocumentState.CACHED for _, state in rows)
        lost = [url_id for url_id, state in rows if state == DocumentState.RECORD_LOST]
        with url_classes.watch(transaction, lost):
            transaction.execute(update(urls).where(urls.c.id.in_(lost), _IS_SETTLED).values(due_ms=due_ms))
    unpark(transaction, url_ids, due_ms=due_ms)
    return sends


def unpark(transaction: Transaction, url_ids: Sequence[int], *, due_ms: int) -> None:
    """Has rows visited again from ``due_ms`` on, of those that waited to be named."""
    statement = update(urls).where(urls.c.rule == ORPHAN_RULE, _IS_SETTLED).values(due_ms=due_ms, rule=None)
    with url_classes.watch(transaction, url_ids):
        write_parts(transaction, statement, urls.c.id, url_ids)
