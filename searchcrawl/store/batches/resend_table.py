"""Sending everything again: which documents, a batch at a time, so that a crash goes on where it was (E7)."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update

from searchcrawl.store.batches.batch_table import SealedBatch, add_batch, choose_version
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, sources
from searchcrawl.store.statements import scanned
from searchcrawl.store.states import DocumentState

#: A batch has no more documents than this, however small they are.
_MOST_ROWS: Final = 20_000


class Chunk(NamedTuple):
    """A sealed part of a resend; ``last`` is its highest row id."""

    batch: SealedBatch
    last: int


def find_version(transaction: Transaction, source_id: int) -> int | None:
    """Documents with an older receipt than this are to be sent again; None: no resend is under way."""
    found: int | None = transaction.execute(select(sources.c.resend_version).where(sources.c.id == source_id)).scalar()
    return found


def begin(transaction: Transaction, source_id: int, now_ms: int) -> None:
    """Asks for all that should be in the index to be sent again, what it refused before included."""
    _set(transaction, source_id, choose_version(transaction, now_ms))
    refused = and_(
        documents.c.source_id == source_id,
        documents.c.index_error.is_not(None),
        documents.c.state == int(DocumentState.WITHHELD),
        documents.c.code == 200,
        documents.c.leaving == 0,
        documents.c.segment.is_not(None),
    )
    transaction.execute(update(documents).where(refused).values(state=int(DocumentState.CACHED)))


def end(transaction: Transaction, source_id: int) -> None:
    """Everything was sent again."""
    _set(transaction, source_id, None)


def seal(
    transaction: Transaction, source_id: int, run_id: int, now_ms: int, *, after: int, max_bytes: int
) -> Chunk | None:
    """Puts the next documents, by rising row id, into a batch; None where none is left.

    Together their decoded bodies have about ``max_bytes``. Those whose removal waits keep their state.
    """
    last = _find_end_of_chunk(transaction, source_id, after=after, max_bytes=max_bytes)
    if last is None:
        return None
    batch = add_batch(transaction, source_id, run_id, now_ms)
    present = documents.c.state == int(DocumentState.PRESENT)
    transaction.execute(
        update(documents)
        .where(_build_condition(transaction, source_id), documents.c.url_id > after, documents.c.url_id <= last)
        .values(batch_id=batch.number, state=case((present, int(DocumentState.SENDING)), else_=documents.c.state))
    )
    return Chunk(batch, last)


def count_left(transaction: Transaction, source_id: int) -> int:
    """How many documents are still to be sent again."""
    return _count(transaction, _build_condition(transaction, source_id))


def count_without_record(transaction: Transaction, source_id: int) -> int:
    """How many documents of the index cannot be sent again: the cache has them no more."""
    return _count(
        transaction,
        and_(
            documents.c.source_id == source_id,
            documents.c.indexed_version.is_not(None),
            documents.c.segment.is_(None),
        ),
    )


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
    """Documents in the index, by the table, whose receipt is from before the resend, and which can be sent."""
    return and_(
        # Otherwise a planner may sort the whole source for each batch.
        scanned(documents.c.source_id) == source_id,
        documents.c.indexed_version < (find_version(transaction, source_id) or 0),
        documents.c.segment.is_not(None),
        or_(
            documents.c.state.in_([int(DocumentState.PRESENT), int(DocumentState.QUARANTINED)]),
            # A copy that waits for its survivor.
            and_(documents.c.state == int(DocumentState.WITHHELD), documents.c.index_error.is_(None)),
        ),
    )


def _count(transaction: Transaction, condition: ColumnElement[bool]) -> int:
    return int(transaction.execute(select(func.count()).select_from(documents).where(condition)).scalar_one())


def _set(transaction: Transaction, source_id: int, value: int | None) -> None:
    transaction.execute(update(sources).where(sources.c.id == source_id).values(resend_version=value))
