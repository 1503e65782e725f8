"""Rows of URLs that are forgotten: what was known of them goes, and the URL alone stays, with the rule that refuses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, and_, bindparam, delete, func, or_, select, update

from searchcrawl.codes import Code
from searchcrawl.store import log_table
from searchcrawl.store.batch_table import set_documents
from searchcrawl.store.documents import document_events
from searchcrawl.store.documents.presence import IS_NOTHING, may_be_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import count_rows, read_page, read_parts, select_fields, write_parts, write_rows
from searchcrawl.store.schema import (
    PLACE,
    URLS_WITH_DOCUMENTS,
    anchors,
    documents,
    former_documents,
    outlinks,
    unfollowed_links,
    urls,
)
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import MOVING, FetchState
from searchcrawl.store.urls import url_classes
from searchcrawl.store.urls.fetch_events import FORGOTTEN, UNVISITED
from searchcrawl.store.urls.review_table import IN_ARCHIVE

#: Rows that are read at once.
PAGE_ROWS: Final = 5000
#: What is known of the content of a document, and what an operator decided about it.
EMPTY: Final = (
    *("segment", "record_offset", "response_bytes", "fields_bytes", "body_digest", "fields_digest", "mimetype"),
    *("etag", "last_modified", "last_changed_ms", "duplicate_of", "canonical_key", "display_key", "unavailable_ms"),
    *(
        "answered_key",
        "rendered",
        "parts",
        "content_digest",
        "read_version",
        "copy_digest",
        "near_digest",
        "near_signature",
        "url_fit",
        "bare",
    ),
    *("index_error", "evidence", "held_state", "quarantine_run", "rejected_run", "removed_run"),
)
_ROWS: Final = urls.join(documents, documents.c.url_id == urls.c.id)
REFUSE: Final = update(urls).where(urls.c.id == bindparam("row_id")).values(FORGOTTEN.values)
#: One whose page came from a forgotten URL is as if it was never visited.
_VISIT_AGAIN: Final = update(urls).where(urls.c.id == bindparam("row_id")).values(UNVISITED.values)


class NamedRow(NamedTuple):
    """A row with all URLs that it has: as it is fetched, as it was found, and as it is shown.

    ``in_archive``: its last good body was that of a file in an archive.
    """

    id: int
    source_id: int
    url: str
    found_as: str | None
    display_url: str | None
    in_archive: bool


class KnownRow(NamedTuple):
    """A row and what is known of it; ``state`` is that of its document, None without one. ``in_archive`` is as in NamedRow."""

    id: int
    url: str
    code: int
    rule: str | None
    fetch_state: int
    state: int | None
    indexed_version: int | None
    in_archive: bool

    @property
    def is_in_index(self) -> bool:
        """Whether the index has or may have the document."""
        return self.indexed_version is not None or self.state in MOVING

    def is_forgotten(self, rule: str | None) -> bool:
        """Whether nothing is left to be forgotten."""
        refused = (self.fetch_state, self.code, self.rule) == (FetchState.SETTLED, Code.OUTSIDE_BOUNDARY, rule)
        return refused and self.state is None


def load_rows(transaction: Transaction, *, after: int, source_id: int | None = None) -> list[NamedRow]:
    """The next rows of all sources, or of one, by rising id."""
    query = select_fields(NamedRow, urls, in_archive=IN_ARCHIVE)
    query = query.select_from(URLS_WITH_DOCUMENTS).where(urls.c.id > after)
    if source_id is not None:
        query = query.where(unindexed(urls.c.source_id) == source_id)
    return [NamedRow._make(row) for row in transaction.execute(query.order_by(urls.c.id).limit(PAGE_ROWS))]


def load_redirecting(transaction: Transaction, source_id: int, *, after: int) -> Sequence[Row[Any]]:
    """The next rows of a source with a record and a visit that was redirected, or that brought no page; by rising id.

    With their URLs, and where the records are (items.Place).
    """
    query = select(urls.c.id, urls.c.url, *(documents.c[name] for name in PLACE)).select_from(_ROWS)
    query = query.where(documents.c.segment.is_not(None), or_(urls.c.redirects.is_not(None), urls.c.code != 200))
    return read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=PAGE_ROWS)


def load_answered(transaction: Transaction, source_id: int, *, after: int) -> Sequence[Row[Any]]:
    """The next rows of a source without a record to which another URL answered, by rising id.

    With their redirects, as JSON, and the URL that answered; None where the source has no row of it.
    """
    answered = urls.alias("answered")
    same = and_(answered.c.source_id == source_id, answered.c.key == documents.c.answered_key)
    columns = urls.c.id, urls.c.url, urls.c.redirects, documents.c.answered_key
    query = select(*columns, answered.c.url.label("answered_url"))
    query = query.select_from(_ROWS.outerjoin(answered, same))
    query = query.where(documents.c.segment.is_(None), documents.c.answered_key.is_not(None))
    return read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=PAGE_ROWS)


def load_known(transaction: Transaction, source_id: int, url_ids: Sequence[int]) -> list[KnownRow]:
    """What is known of those of these rows that are of a source, by rising id."""
    query = select_fields(KnownRow, urls, documents, in_archive=IN_ARCHIVE).select_from(URLS_WITH_DOCUMENTS)
    query = query.where(urls.c.source_id == source_id)
    rows = read_parts(transaction, query.order_by(urls.c.id), urls.c.id, sorted(url_ids))
    return [KnownRow._make(row) for row in rows]


def empty(transaction: Transaction, rules: Mapping[int, str | None]) -> None:
    """Empties rows, by id with the rule that refuses them from now on; documents whose removal is sealed keep that alone.

    With None as the rule a row is to be visited again. The documents are still there, so that their copies can be decided about; ``purge`` deletes them.
    """
    url_ids = sorted(rules)
    set_documents(transaction, url_ids, **dict.fromkeys(EMPTY), **document_events.FORGOTTEN.values)
    for table in (former_documents, outlinks, unfollowed_links, anchors):
        write_parts(transaction, delete(table), table.c.url_id, url_ids)
    refused = [{"row_id": url_id, "new_rule": rule} for url_id, rule in rules.items() if rule is not None]
    again = [{"row_id": url_id} for url_id, rule in rules.items() if rule is None]
    with url_classes.watch(transaction, url_ids):
        write_rows(transaction, REFUSE, refused)
        write_rows(transaction, _VISIT_AGAIN, again)


def purge(transaction: Transaction, source_id: int, name: str, url_ids: Sequence[int]) -> int:
    """Deletes the emptied documents that the index does not have; returns how many of these rows still have one.

    ``name`` is that of the source.
    """
    left = 0
    for part in split(url_ids):
        here = documents.c.url_id.in_(part)
        gone = IS_NOTHING, documents.c.indexed_version.is_(None), documents.c.segment.is_(None)
        buried = list(transaction.execute(select(documents.c.url_id).where(here, *gone)).scalars())
        log_table.bury(transaction, source_id, name, buried)
        transaction.execute(delete(documents).where(here, *gone))
        left += count_rows(transaction, documents, here)
    return left


def count_documents(transaction: Transaction, url_ids: Sequence[int]) -> int:
    """How many of these rows have a document that the index has, or may have."""
    query = select(func.count()).select_from(documents).where(may_be_there())
    return sum(int(row[0]) for row in read_parts(transaction, query, documents.c.url_id, url_ids))
