"""Which documents are still to be sent again (resend), batch by batch. After a crash the resend continues (E7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select, update

from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import SealedBatch, add_batch, choose_version
from searchcrawl.store.documents import document_table
from searchcrawl.store.documents.document_events import MENDED, REFUSED_RESENT, RESENT
from searchcrawl.store.documents.presence import IS_REFUSED, is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, sources
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import DELIVERED, DocumentState
from searchcrawl.store.urls import url_table

#: A batch has no more documents than this, however small they are.
_MOST_ROWS: Final = 5_000
_PREPARED_ROWS: Final = 500


class Chunk(NamedTuple):
    """A sealed part of a resend; ``last`` is its highest row id."""

    batch: SealedBatch
    last: int


def find_version(transaction: Transaction, source_id: int) -> int | None:
    """The version of the resend: documents with an older receipt are sent again. None without a resend."""
    found: int | None = transaction.execute(select(sources.c.resend_version).where(sources.c.id == source_id)).scalar()
    return found


def begin(transaction: Transaction, source_id: int, now_ms: int) -> None:
    """Begins a resend of all documents that belong in the index, including those that the index refused before."""
    _set(transaction, source_id, choose_version(transaction, now_ms))


def prepare(transaction: Transaction, source_id: int, *, after: int) -> int | None:
    """Prepares the next documents by rising row id: those without a record are to be fetched, and refused ones sent.

    Returns the last row id; None where none is left. It may be repeated as long as the resend goes on.
    """
    lost = documents.c.segment.is_(None)
    older = documents.c.indexed_version < (find_version(transaction, source_id) or 0)
    query = (
        select(documents.c.url_id, lost)
        .where(
            unindexed(documents.c.source_id) == source_id,
            documents.c.url_id > after,
            documents.c.code == 200,
            documents.c.leaving == 0,
            or_(IS_REFUSED, and_(lost, older, documents.c.state == int(DocumentState.PRESENT))),
        )
        .order_by(documents.c.url_id)
        .limit(_PREPARED_ROWS)
    )
    rows = transaction.execute(query).all()
    fetch_again(transaction, [row[0] for row in rows if row[1]])
    again = update(documents).where(documents.c.url_id.in_([row[0] for row in rows if not row[1]]))
    transaction.execute(again.values(REFUSED_RESENT.values))
    return rows[-1][0] if rows else None


def fetch_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has the pages visited whose documents are to be sent, and whose records are gone or cannot be read."""
    batch_table.mark_records_lost(transaction, url_ids)
    url_table.reopen(transaction, url_ids)


def send_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Sends documents again that differ by what other pages say; those whose record is lost are fetched again."""
    fetch_again(transaction, document_table.send_again(transaction, url_ids))


def end(transaction: Transaction, source_id: int) -> None:
    """Ends the resend."""
    _set(transaction, source_id, None)


def seal(
    transaction: Transaction, source_id: int, run_id: int, now_ms: int, *, after: int, max_bytes: int
) -> Chunk | None:
    """Puts the next documents, by rising row id, into a batch; None where none is left.

    Their decoded bodies have about ``max_bytes`` together. Documents in quarantine keep their state.
    """
    last = _find_end_of_chunk(transaction, source_id, after=after, max_bytes=max_bytes)
    if last is None:
        return None
    batch = add_batch(transaction, source_id, run_id, now_ms)
    transaction.execute(
        update(documents)
        .where(_build_condition(transaction, source_id), documents.c.url_id > after, documents.c.url_id <= last)
        .values(**RESENT.values, batch_id=batch.number)
    )
    return Chunk(batch, last)


def seal_chosen(
    transaction: Transaction, source_id: int, run_id: int, now_ms: int, *, url_ids: Sequence[int]
) -> SealedBatch:
    """Puts chosen documents with records into a batch, whatever receipts they have; also those that the index refused."""
    batch = add_batch(transaction, source_id, run_id, now_ms)
    for part in split(url_ids):
        transaction.execute(
            update(documents).where(documents.c.url_id.in_(part)).values(**MENDED.values, batch_id=batch.number)
        )
    return batch


def count_left(transaction: Transaction, source_id: int) -> int:
    """How many documents are still to be sent again."""
    query = select(func.count()).select_from(documents).where(_build_condition(transaction, source_id))
    return int(transaction.execute(query).scalar_one())


def _find_end_of_chunk(transaction: Transaction, source_id: int, *, after: int, max_bytes: int) -> int | None:
    query = (
        select(documents.c.url_id, documents.c.content_length)
        .where(_build_condition(transaction, source_id), documents.c.url_id > after)
        .order_by(documents.c.url_id)
        .limit(_MOST_ROWS)
    )
    last, size = None, 0
    for url_id, content_length in transaction.execute(query):
        last, size = url_id, size + content_length
        if size >= max_bytes:
            break
    return last


def _build_condition(transaction: Transaction, source_id: int) -> ColumnElement[bool]:
    """Documents in the index with a record and a receipt from before the resend."""
    return and_(
        # Without this condition a query planner may sort the whole source for each batch.
        unindexed(documents.c.source_id) == source_id,
        documents.c.indexed_version < (find_version(transaction, source_id) or 0),
        documents.c.segment.is_not(None),
        or_(
            is_in(DELIVERED),
            # A copy that stays in the index until its survivor is there.
            and_(documents.c.state == int(DocumentState.WITHHELD), documents.c.index_error.is_(None)),
        ),
    )


def _set(transaction: Transaction, source_id: int, value: int | None) -> None:
    transaction.execute(update(sources).where(sources.c.id == source_id).values(resend_version=value))
