"""The signatures of documents, and which content stands for them where near copies are taken out (F6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import bindparam, select, text, update

from searchcrawl.codes import Code
from searchcrawl.store.batches.batch_table import SealedBatch
from searchcrawl.store.documents.duplicate_key_table import KEYED_DOCUMENTS, KeyedDocument
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import split
from searchcrawl.store.states import DocumentState

#: Rows that are read at once.
PAGE_ROWS: Final = 5000
_PLACE: Final = tuple(documents.c[name] for name in ("segment", "record_offset", "response_bytes", "fields_bytes"))
#: The label of a column of ``KEYED_DOCUMENTS`` is another digest.
_DIGESTS: Final = (documents.c.copy_digest.label("own_digest"), documents.c.near_digest)
_WIDTH: Final = len(KeyedDocument._fields)
#: The literals let the planner use the partial indexes.
_SIGNED: Final = text("documents.near_signature IS NOT NULL")
_NEAR: Final = text("documents.near_digest IS NOT NULL")
#: Documents that are indexed themselves, or are copies: no other page is the canonical one, or shown in their place.
_CODES: Final = (200, int(Code.DUPLICATE))


class NearRow(NamedTuple):
    """A good document; ``own_digest`` is that of its own content, ``near_digest`` that of what it is a near copy of, if any.

    ``signature`` is None where none was made of its present text. ``place`` is where its record is, None without one.
    """

    document: KeyedDocument
    own_digest: bytes
    near_digest: bytes | None
    signature: str | None
    mimetype: str
    place: tuple[int, int, int, int] | None

    @property
    def url_id(self) -> int:
        """The id of its row."""
        return self.document.url_id


def load_page(transaction: Transaction, source_id: int, *, after: int) -> tuple[list[NearRow], int | None]:
    """The good ones of the next documents that may be copies, by rising id; and the id of the last one, None after all."""
    query = (
        KEYED_DOCUMENTS.add_columns(*_DIGESTS, documents.c.near_signature, documents.c.mimetype, *_PLACE)
        .where(
            documents.c.source_id == source_id,
            documents.c.url_id > after,
            documents.c.code.in_(_CODES),
            documents.c.copy_digest.is_not(None),
        )
        .order_by(documents.c.url_id)
        .limit(PAGE_ROWS)
    )
    rows = transaction.execute(query).all()
    found = []
    for row in rows:
        keyed = KeyedDocument._make(row[:_WIDTH])
        own, near, signature, mimetype, *place = row[_WIDTH:]
        if keyed.is_good and own:
            found.append(NearRow(keyed, own, near, signature, mimetype or "", None if None in place else (*place,)))
    return found, rows[-1].url_id if len(rows) == PAGE_ROWS else None


def find_near(transaction: Transaction, source_id: int, *, limit: int) -> list[int]:
    """Ids of documents that are near copies, whatever became of them since."""
    query = select(documents.c.url_id).where(documents.c.source_id == source_id, _NEAR)
    return list(transaction.execute(query.limit(limit)).scalars())


def find_signed(transaction: Transaction, source_id: int, *, after: int) -> list[tuple[int, str]]:
    """Id and URL of the next documents with a signature, by rising id."""
    here = documents.c.source_id == source_id, documents.c.url_id > after, _SIGNED
    query = select(documents.c.url_id, urls.c.url).join(urls, urls.c.id == documents.c.url_id).where(*here)
    return [(row.url_id, row.url) for row in transaction.execute(query.order_by(documents.c.url_id).limit(PAGE_ROWS))]


def set_signatures(transaction: Transaction, signatures: Mapping[int, str]) -> None:
    """Writes the signatures of documents by row id."""
    if signatures:
        transaction.execute(
            update(documents).where(documents.c.url_id == bindparam("row_id")).values(near_signature=bindparam("new")),
            [{"row_id": url_id, "new": signature} for url_id, signature in signatures.items()],
        )


def note_sent(transaction: Transaction, batch: SealedBatch, signatures: Mapping[int, str]) -> None:
    """Writes the signatures of documents that the index has taken, by row id, but of those that changed meanwhile."""
    if signatures:
        as_sent = documents.c.batch_id == batch.number, documents.c.state == int(DocumentState.PRESENT)
        transaction.execute(
            update(documents)
            .where(documents.c.url_id == bindparam("row_id"), *as_sent, documents.c.copy_digest.is_not(None))
            .values(near_signature=bindparam("new")),
            [{"row_id": url_id, "new": signature} for url_id, signature in signatures.items()],
        )


def forget_signatures(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Takes the signatures of documents away."""
    for part in split(url_ids):
        transaction.execute(update(documents).where(documents.c.url_id.in_(part)).values(near_signature=None))


def set_digests(transaction: Transaction, digests: Mapping[int, bytes | None]) -> None:
    """Writes which content stands for documents, by row id, None: their own; their duplicates have to be resolved after it."""
    transaction.execute(
        update(documents).where(documents.c.url_id == bindparam("row_id")).values(near_digest=bindparam("new")),
        [{"row_id": url_id, "new": digest} for url_id, digest in digests.items()],
    )
