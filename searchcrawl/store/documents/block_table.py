"""The blocks that stand on most pages of a host, and the documents that are looked at for them (C8)."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import and_, delete, insert, or_, select, update

from searchcrawl.codes import Code
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.site_schema import host_blocks
from searchcrawl.store.statements import unindexed
from searchcrawl.store.states import REMOVALS, DocumentState

#: Types of documents that have menus.
HTML: Final = ("text/html", "application/xhtml+xml")
#: So many documents of a source are looked at, those with the smallest keys: a sample that no order of visits changes.
_SAMPLE: Final = 20_000
#: Documents that are read at once.
_PAGE_ROWS: Final = 500
_PLACE: Final = (
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


class HostBlocks(NamedTuple):
    """What is frozen of a host; ``previous``: what was, while documents that differ are still to be found."""

    host: str
    version: int
    sample: bytes
    blocks: bytes
    previous: bytes | None


def load(transaction: Transaction, source_id: int) -> dict[str, HostBlocks]:
    """What is frozen, by host."""
    columns = (getattr(host_blocks.c, name) for name in HostBlocks._fields)
    query = select(*columns).where(host_blocks.c.source_id == source_id)
    return {row.host: HostBlocks._make(row) for row in transaction.execute(query)}


def freeze(transaction: Transaction, source_id: int, frozen: HostBlocks) -> None:
    """Puts this in the place of what was frozen of its host."""
    forget(transaction, source_id, frozen.host)
    transaction.execute(insert(host_blocks).values(source_id=source_id, **frozen._asdict()))


def settle(transaction: Transaction, source_id: int) -> None:
    """Notes that all documents that differ are to be sent again; hosts without blocks and pages are forgotten."""
    here = host_blocks.c.source_id == source_id
    transaction.execute(update(host_blocks).where(here, host_blocks.c.previous.is_not(None)).values(previous=None))
    transaction.execute(delete(host_blocks).where(here, host_blocks.c.sample == b""))


def find_sample(transaction: Transaction, source_id: int) -> list[SampledDocument]:
    """Documents that say what is on most pages.

    Near copies are among them: they are found once it is known what is on most pages, and must not change that.
    """
    states = DocumentState.CACHED, DocumentState.SENDING, DocumentState.PRESENT
    indexed = and_(documents.c.code == 200, documents.c.state.in_([int(state) for state in states]))
    near = and_(
        documents.c.code == int(Code.DUPLICATE),
        documents.c.near_digest.is_not(None),
        documents.c.state.in_([int(DocumentState.WITHHELD), *sorted(REMOVALS)]),
    )
    query = (
        select(urls.c.id, urls.c.url, documents.c.fields_digest, documents.c.copy_digest, *_PLACE)
        .select_from(urls.join(documents, documents.c.url_id == urls.c.id))
        .where(
            urls.c.source_id == source_id,
            or_(indexed, near),
            documents.c.leaving == 0,
            documents.c.mimetype.in_(HTML),
            documents.c.fields_digest.is_not(None),
        )
        .order_by(urls.c.key)
        .limit(_SAMPLE)
    )
    return [SampledDocument._make(row) for row in transaction.execute(query)]


def find_sent(transaction: Transaction, source_id: int, *, after: int) -> list[SampledDocument]:
    """The next documents with a record by rising id that were sent, or are being sent."""
    query = (
        select(urls.c.id, urls.c.url, documents.c.fields_digest, documents.c.copy_digest, *_PLACE)
        .select_from(documents.join(urls, documents.c.url_id == urls.c.id))
        .where(
            unindexed(documents.c.source_id) == source_id,
            documents.c.url_id > after,
            documents.c.state.in_([int(DocumentState.PRESENT), int(DocumentState.SENDING)]),
            documents.c.leaving == 0,
            documents.c.segment.is_not(None),
            documents.c.mimetype.in_(HTML),
        )
        .order_by(documents.c.url_id)
        .limit(_PAGE_ROWS)
    )
    return [SampledDocument._make(row) for row in transaction.execute(query)]


def forget(transaction: Transaction, source_id: int, host: str) -> None:
    """Forgets what is frozen of a host."""
    transaction.execute(delete(host_blocks).where(host_blocks.c.source_id == source_id, host_blocks.c.host == host))
