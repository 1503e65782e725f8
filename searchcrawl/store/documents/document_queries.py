"""Documents of a source that others look at: a sample of a host, those that were sent, those without text, those of exports.

And those whose records are used again: for the same bytes, or for a body that is as it was.

Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Row, and_, func, or_, select, text, true

from searchcrawl.codes import Code
from searchcrawl.items import Place
from searchcrawl.store.batch_table import BATCH_COLUMNS, BatchDocument
from searchcrawl.store.documents.document_events import HELD_CHANGED
from searchcrawl.store.documents.document_table import AS_IT_IS
from searchcrawl.store.documents.presence import is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import count_rows, read_page, read_parts, select_fields
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, documents, urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import AT_HAND, REMOVALS, SHOWN, UNSENT, DocumentState, FetchState

#: Types of documents that have menus.
HTML: Final = ("text/html", "application/xhtml+xml")
#: So many documents of a source are looked at, those with the smallest keys: a sample that no order of visits changes.
_SAMPLE: Final = 20_000
#: Documents that are read at once.
_PAGE_ROWS: Final = 500


class SampledDocument(NamedTuple):
    """A document in the index, or on its way there, and where its record is; all None: the cache has none."""

    url_id: int
    url: str
    fields_digest: bytes
    copy_digest: bytes | None
    segment: int | None
    record_offset: int | None
    response_bytes: int | None
    fields_bytes: int | None

    @property
    def place(self) -> Place | None:
        """Where its record is; None: the cache has none."""
        return Place.read((self.segment, self.record_offset, self.response_bytes, self.fields_bytes))


_SAMPLED: Final = select_fields(SampledDocument, urls, documents, url_id=urls.c.id).select_from(DOCUMENTS_WITH_URLS)


def find_sample(transaction: Transaction, source_id: int, types: Collection[str] | None) -> list[SampledDocument]:
    """Documents of these types (None: of all) that say what documents have in common.

    Near copies are among them: they are found once it is known what is on most pages, and must not change that.
    """
    query = _SAMPLED.where(urls.c.source_id == source_id, _tells(), _is_of(types)).order_by(urls.c.key).limit(_SAMPLE)
    return [SampledDocument._make(row) for row in transaction.execute(query)]


def load_sampled(
    transaction: Transaction, source_id: int, url_ids: Sequence[int], types: Collection[str], *, is_sent: bool
) -> list[SampledDocument]:
    """Those of some documents that say what documents have in common or, with ``is_sent``, that were sent, by rising id."""
    here = documents.c.url_id.in_(url_ids), unindexed(urls.c.source_id) == source_id
    query = _SAMPLED.where(*here, _WAS_SENT if is_sent else _tells(), _is_of(types)).order_by(documents.c.url_id)
    return [SampledDocument._make(row) for row in transaction.execute(query)]


class RecordOf(NamedTuple):
    """The record of a document of a listed source: the URL of its page, and what it was read from."""

    url: str
    key: int
    content_digest: bytes | None
    segment: int
    record_offset: int
    response_bytes: int
    fields_bytes: int

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.segment, self.record_offset, self.response_bytes, self.fields_bytes)


_RECORDS: Final = (
    select_fields(RecordOf, urls, documents).select_from(DOCUMENTS_WITH_URLS).where(documents.c.segment.is_not(None))
)


def find_records(transaction: Transaction, source_id: int, keys: Collection[int]) -> dict[int, RecordOf]:
    """The records of documents, by the keys of their URLs; those that have none are left out."""
    query = _RECORDS.where(urls.c.source_id == source_id)
    return {row.key: RecordOf._make(row) for row in read_parts(transaction, query, urls.c.key, keys, are_keys=True)}


def find_same_bytes(transaction: Transaction, source_id: int, digests: Collection[bytes]) -> dict[bytes, RecordOf]:
    """A record of each of these bodies, by their digests, as the source file has documents read now."""
    is_new = or_(documents.c.unavailable_ms.is_(None), documents.c.unavailable_ms > 0)
    # The index has rows with a digest alone. To say so here would have SQLite look through all of them.
    query = _RECORDS.where(documents.c.source_id == source_id, is_new)
    found = dict[bytes, RecordOf]()
    for part in split(list(dict.fromkeys(digests))):
        wanted, most = part, len(part)
        while wanted:
            # Very many documents may have the same bytes.
            rows = transaction.execute(query.where(documents.c.content_digest.in_(wanted)).limit(most)).all()
            found |= {row.content_digest: RecordOf._make(row) for row in rows}
            wanted = [digest for digest in wanted if digest not in found] if len(rows) == most else []
    return found


_WAS_SENT: Final = and_(AS_IT_IS, documents.c.segment.is_not(None))


def _tells() -> ColumnElement[bool]:
    indexed = and_(documents.c.code == 200, is_in(SHOWN & AT_HAND))
    near = and_(
        documents.c.code == int(Code.DUPLICATE),
        documents.c.near_digest.is_not(None),
        is_in({DocumentState.WITHHELD, *REMOVALS}),
    )
    return and_(or_(indexed, near), documents.c.leaving == 0, documents.c.fields_digest.is_not(None))


def find_sent(
    transaction: Transaction, source_id: int, types: Collection[str] | None, *, after: int
) -> list[SampledDocument]:
    """The next documents with a record by rising id that were sent, or are being sent; their removal may wait."""
    query = _SAMPLED.where(_WAS_SENT, _is_of(types))
    page = read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=_PAGE_ROWS)
    return [SampledDocument._make(row) for row in page]


def _is_of(types: Collection[str] | None) -> ColumnElement[bool]:
    return true() if types is None else documents.c.mimetype.in_(types)


_BARE: Final = text("documents.bare = 1")
_ROWS_AT_ONCE: Final = 1_000
#: Documents that may still be sent, or take the place of one that may.
_WAITING: Final = is_in({DocumentState.WITHHELD, *UNSENT})


def find_bare_undelivered(transaction: Transaction, source_id: int, *, after: int, limit: int) -> Sequence[Row[Any]]:
    """Row id and URL of pages without text of their own that no index ever had, by rising id above ``after``."""
    settled = urls.c.fetch_state == int(FetchState.SETTLED)
    undelivered = documents.c.indexed_version.is_(None), _WAITING, settled
    return _read_bare(transaction, source_id, *undelivered, after=after, limit=limit)


def list_bare_indexed(transaction: Transaction, source_id: int) -> Iterator[str]:
    """The URLs of such pages that the index has."""
    after: int | None = 0
    while after is not None:
        is_there = documents.c.indexed_version.is_not(None)
        rows = _read_bare(transaction, source_id, is_there, after=after, limit=_ROWS_AT_ONCE)
        yield from (row.url for row in rows)
        after = rows[-1].url_id if len(rows) == _ROWS_AT_ONCE else None


def _read_bare(
    transaction: Transaction, source_id: int, *conditions: ColumnElement[bool], after: int, limit: int
) -> Sequence[Row[Any]]:
    query = select(urls.c.id.label("url_id"), urls.c.url).select_from(DOCUMENTS_WITH_URLS)
    query = query.where(_BARE, *conditions, urls.c.depth > 0, urls.c.sitemap_id.is_(None))
    return read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=limit, is_indexed=True)


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


class ReadableRow(NamedTuple):
    """A document in the index: the values of its row, and the version that the index has."""

    row: BatchDocument
    version: int


def find_readable(transaction: Transaction, source_id: int, *, after: int, limit: int) -> list[ReadableRow]:
    """Documents that the index has as they are in the cache, by rising id of the URL."""
    query = select(*BATCH_COLUMNS, documents.c.indexed_version).select_from(DOCUMENTS_WITH_URLS)
    query = query.where(documents.c.indexed_version.is_not(None), _IS_READABLE)
    page = read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=limit)
    return [ReadableRow(version=version, row=BatchDocument._make(values)) for *values, version in page]


def count_unreadable(transaction: Transaction, source_id: int) -> int:
    """How many documents the index has in another version than the cache."""
    return count_rows(
        transaction,
        documents,
        documents.c.source_id == source_id,
        documents.c.indexed_version.is_not(None),
        # Not ``~``: of a value that is not known nothing is denied.
        func.coalesce(_IS_READABLE, False).is_(False),
    )
