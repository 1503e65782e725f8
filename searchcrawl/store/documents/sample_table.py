"""The documents that are looked at to find out what those of a host have in common, and those that are in the index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, or_, select, true

from searchcrawl.codes import Code
from searchcrawl.store.documents.document_table import AS_IT_IS
from searchcrawl.store.documents.presence import is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import unindexed
from searchcrawl.store.states import AT_HAND, REMOVALS, SHOWN, DocumentState

#: Types of documents that have menus.
HTML: Final = ("text/html", "application/xhtml+xml")
#: So many documents of a source are looked at, those with the smallest keys: a sample that no order of visits changes.
_SAMPLE: Final = 20_000
#: Documents that are read at once.
_PAGE_ROWS: Final = 500
_COLUMNS: Final = (
    urls.c.id,
    urls.c.url,
    documents.c.fields_digest,
    documents.c.copy_digest,
    documents.c.segment,
    documents.c.record_offset,
    documents.c.response_bytes,
    documents.c.fields_bytes,
)


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


def find_sample(transaction: Transaction, source_id: int, types: Collection[str] | None) -> list[SampledDocument]:
    """Documents of these types (None: of all) that say what documents have in common.

    Near copies are among them: they are found once it is known what is on most pages, and must not change that.
    """
    query = (
        select(*_COLUMNS)
        .select_from(urls.join(documents, documents.c.url_id == urls.c.id))
        .where(urls.c.source_id == source_id, _tells(), _is_of(types))
        .order_by(urls.c.key)
        .limit(_SAMPLE)
    )
    return [SampledDocument._make(row) for row in transaction.execute(query)]


def load(
    transaction: Transaction, source_id: int, url_ids: Sequence[int], types: Collection[str], *, is_sent: bool
) -> list[SampledDocument]:
    """Those of some documents that say what documents have in common or, with ``is_sent``, that were sent, by rising id."""
    query = (
        select(*_COLUMNS)
        .select_from(urls.join(documents, documents.c.url_id == urls.c.id))
        .where(
            documents.c.url_id.in_(url_ids),
            urls.c.source_id == source_id,
            and_(AS_IT_IS, documents.c.segment.is_not(None)) if is_sent else _tells(),
            _is_of(types),
        )
        .order_by(documents.c.url_id)
    )
    return [SampledDocument._make(row) for row in transaction.execute(query)]


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
    query = (
        select(*_COLUMNS)
        .select_from(documents.join(urls, documents.c.url_id == urls.c.id))
        .where(
            unindexed(documents.c.source_id) == source_id,
            documents.c.url_id > after,
            AS_IT_IS,
            documents.c.segment.is_not(None),
            _is_of(types),
        )
        .order_by(documents.c.url_id)
        .limit(_PAGE_ROWS)
    )
    return [SampledDocument._make(row) for row in transaction.execute(query)]


def _is_of(types: Collection[str] | None) -> ColumnElement[bool]:
    return true() if types is None else documents.c.mimetype.in_(types)
