"""All that the store knows of one URL, for ``explain``; nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row, and_, bindparam, select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import batches, documents, hosts, sitemaps, urls
from searchcrawl.store.states import BatchState
from searchcrawl.store.urls import url_queries
from searchcrawl.store.urls.url_queries import ListedUrl

#: So many copies are named.
_MAX_COPIES: Final = 10

_canonicals = urls.alias("canonicals")


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """A row of the URL table with its document, and what else is known of it.

    ``place`` is (segment, offset, bytes of the answer, bytes of the fields) of its record, None without one;
    ``canonical`` the URL that it names as canonical, where that is known; ``copies`` are URLs for which it
    stands, at most ten. ``host_allowed_ms`` is the moment from which its host may be asked.
    """

    listed: ListedUrl
    attempts: int
    failed_runs: int
    sitemap: str | None
    lastmod_ms: int | None
    host_allowed_ms: int | None
    mimetype: str | None
    content_length: int
    body_digest: bytes | None
    place: tuple[int, int, int, int] | None
    canonical: str | None
    copies: tuple[str, ...]
    batch_state: BatchState | None
    leaving: bool
    quarantine_run: int | None


def find(transaction: Transaction, source_id: int, key: int) -> UrlFacts | None:
    """What is known of the URL with this key (``urls.key``); None where the source never saw it."""
    listed = url_queries.listed_url(transaction, source_id, key)
    if listed is None:
        return None
    row = transaction.execute(_QUERY, {"url_id": listed.url_id}).one()
    copies = transaction.execute(_COPIES, {"url_id": listed.url_id}).scalars()
    return UrlFacts(
        listed=listed,
        attempts=row.attempts,
        failed_runs=row.failed_runs,
        sitemap=row.sitemap,
        lastmod_ms=row.lastmod_ms,
        host_allowed_ms=row.next_allowed_ms,
        mimetype=row.mimetype,
        content_length=row.content_length or 0,
        body_digest=row.body_digest,
        place=_place(row),
        canonical=row.canonical,
        copies=tuple(copies),
        batch_state=None if row.batch_state is None else BatchState(row.batch_state),
        leaving=bool(row.leaving),
        quarantine_run=row.quarantine_run,
    )


def shown_as(transaction: Transaction, source_id: int, display_key: int) -> str | None:
    """The access URL of the document that is shown with the display URL of this key, the indexed one first."""
    place = {"source_id": source_id, "display_key": display_key}
    found: str | None = transaction.execute(_SHOWN_AS, place).scalar()
    return found


_OF_DOCUMENTS: Final = select(urls.c.url).join(documents, documents.c.url_id == urls.c.id)
_SHOWN_AS: Final = (
    _OF_DOCUMENTS.where(
        documents.c.source_id == bindparam("source_id"), documents.c.display_key == bindparam("display_key")
    )
    .order_by(documents.c.code, urls.c.id)
    .limit(1)
)
_COPIES: Final = (
    _OF_DOCUMENTS.where(documents.c.duplicate_of == bindparam("url_id")).order_by(urls.c.url).limit(_MAX_COPIES)
)
_SELECTED: Final = select(
    urls.c.attempts,
    urls.c.failed_runs,
    urls.c.lastmod_ms,
    sitemaps.c.url.label("sitemap"),
    hosts.c.next_allowed_ms,
    documents.c.mimetype,
    documents.c.content_length,
    documents.c.body_digest,
    documents.c.segment,
    documents.c.record_offset,
    documents.c.response_bytes,
    documents.c.fields_bytes,
    documents.c.leaving,
    documents.c.quarantine_run,
    batches.c.state.label("batch_state"),
    _canonicals.c.url.label("canonical"),
).select_from(
    urls.outerjoin(documents, documents.c.url_id == urls.c.id)
    .outerjoin(batches, batches.c.id == documents.c.batch_id)
    .outerjoin(sitemaps, sitemaps.c.id == urls.c.sitemap_id)
    .outerjoin(hosts, hosts.c.id == urls.c.host_id)
    .outerjoin(
        _canonicals,
        and_(_canonicals.c.source_id == urls.c.source_id, _canonicals.c.key == documents.c.canonical_key),
    )
)
_QUERY: Final = _SELECTED.where(urls.c.id == bindparam("url_id"))


def _place(row: Row[*tuple[Any, ...]]) -> tuple[int, int, int, int] | None:
    if row.segment is None:
        return None
    return row.segment, row.record_offset, row.response_bytes, row.fields_bytes
