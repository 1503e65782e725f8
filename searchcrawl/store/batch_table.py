"""Deliveries (batches). A sealed one is kept in rows, so that a crash repeats it with the same ids and versions (D8).

So does a resend, which is sealed batch by batch (E7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    TextClause,
    and_,
    bindparam,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from searchcrawl.items import Place
from searchcrawl.store import source_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.documents.document_events import (
    ACKNOWLEDGED,
    INDEX_REFUSED,
    MENDED,
    RECORD_GONE,
    REFUSED_RESENT,
    RESENT,
    SEALED,
)
from searchcrawl.store.documents.presence import IS_CACHED, IS_REFUSED, IS_REMOVING, IS_SENDING, is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.written_tables import MOVES_ALONE
from searchcrawl.store.many_rows import count_rows, find_among, has_row, read_page, write_parts, write_rows
from searchcrawl.store.run_schema import batches
from searchcrawl.store.runs.run_table import draw_log_number
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, documents, urls
from searchcrawl.store.statements import is_one_of, unindexed
from searchcrawl.store.states import DELIVERED, PENDING, BatchState, DocumentState
from searchcrawl.store.urls import url_table

_PENDING: Final = is_one_of("documents.state", PENDING)
#: Documents that wait for the index, or are in a delivery without a receipt.
TO_SEND: Final = or_(IS_CACHED, IS_SENDING)


class SealedBatch(NamedTuple):
    """A delivery; ``number`` is its id, and rises from one to the next.

    ``removals`` is how many removals it has that count towards the limits on deleting.
    """

    number: int
    crawl_version: int
    state: BatchState
    removals: int = 0


class BatchDocument(NamedTuple):
    """A document of a sealed batch: its record, and the values of its row that are indexed."""

    url_id: int
    url: str
    depth: int
    segment: int | None
    record_offset: int | None
    response_bytes: int | None
    fields_bytes: int | None
    fields_digest: bytes
    mimetype: str
    content_length: int
    last_modified: str | None
    first_seen_ms: int
    last_fetched_ms: int
    display_url: str | None = None
    failures: str | None = None

    @property
    def place(self) -> Place | None:
        """Where its record is; None: the cache has none."""
        return Place.read((self.segment, self.record_offset, self.response_bytes, self.fields_bytes))


BATCH_COLUMNS: Final = [documents.c[name] if name in documents.c else urls.c[name] for name in BatchDocument._fields]


def choose_version(transaction: Transaction, now_ms: int) -> int:
    """Chooses the ``crawl_version`` of the next delivery: larger than those of all earlier deliveries."""
    last = transaction.execute(select(func.max(batches.c.crawl_version))).scalar() or 0
    # The version is a time. So a store that was lost and made again still has larger versions than the index.
    return max(int(last) + 1, now_ms)


def add_batch(transaction: Transaction, source_id: int, run_id: int, now_ms: int, *, removals: int = 0) -> SealedBatch:
    """Adds an empty delivery."""
    version = choose_version(transaction, now_ms)
    number = transaction.execute(
        insert(batches)
        .values(
            source_id=source_id,
            run_id=run_id,
            crawl_version=version,
            state=int(BatchState.SEALED),
            created_ms=now_ms,
            removals=removals,
        )
        .returning(batches.c.id)
    ).scalar_one()
    return SealedBatch(number, version, BatchState.SEALED, removals)


def seal_documents(transaction: Transaction, source_id: int, run_id: int, now_ms: int) -> SealedBatch | None:
    """Puts all cached documents of a source into a new batch: they are being sent; None where there are none."""
    ready = and_(_PENDING, documents.c.source_id == source_id, IS_CACHED, documents.c.leaving == 0)
    if not has_row(transaction, ready):
        return None
    batch = add_batch(transaction, source_id, run_id, now_ms)
    statement = update(documents).where(ready).values(**SEALED.values, batch_id=batch.number)
    number = {"log_seq": draw_log_number(transaction, source_id)}
    transaction.execute(statement, number, execution_options=MOVES_ALONE)
    return batch


def find_unfinished(transaction: Transaction, source_id: int) -> list[SealedBatch]:
    """Batches that are not yet committed by the index, oldest first."""
    return load_batches(transaction, batches.c.source_id == source_id, batches.c.state < int(BatchState.COMMITTED))


def find_emptied(transaction: Transaction, source_id: int) -> list[SealedBatch]:
    """Batches that are not yet committed by the index, and that no document names: removals with their receipts."""
    named = exists().where(documents.c.source_id == source_id, documents.c.batch_id == batches.c.id)
    return load_batches(
        transaction, batches.c.source_id == source_id, batches.c.state < int(BatchState.COMMITTED), ~named
    )


def load_batches(transaction: Transaction, *conditions: ColumnElement[bool] | TextClause) -> list[SealedBatch]:
    """Batches, oldest first."""
    query = select(batches.c.id, batches.c.crawl_version, batches.c.state, batches.c.removals).where(*conditions)
    return [
        SealedBatch(number, version, BatchState(state), removals)
        for number, version, state, removals in transaction.execute(query.order_by(batches.c.id))
    ]


def holds_removals(transaction: Transaction, source_id: int, number: int) -> bool:
    """Whether a batch has removals without a receipt."""
    return has_row(
        transaction, _PENDING, documents.c.source_id == source_id, IS_REMOVING, documents.c.batch_id == number
    )


def set_state(transaction: Transaction, number: int, state: BatchState) -> None:
    """Sets the state of a batch."""
    transaction.execute(update(batches).where(batches.c.id == number).values(state=int(state)))


def find_without_receipt(transaction: Transaction, number: int, *, after: int, limit: int) -> list[BatchDocument]:
    """Documents of a batch that have no receipt yet, by rising id."""
    query = (
        select(*BATCH_COLUMNS)
        .select_from(DOCUMENTS_WITH_URLS)
        .join(batches, batches.c.id == documents.c.batch_id)
        .where(
            documents.c.batch_id == number,
            or_(
                IS_SENDING,
                # These documents are sent again unchanged, while their removal waits.
                and_(
                    documents.c.state.in_([int(DocumentState.WITHHELD), int(DocumentState.QUARANTINED)]),
                    documents.c.indexed_version < batches.c.crawl_version,
                ),
            ),
            documents.c.url_id > after,
        )
        .order_by(documents.c.url_id)
        .limit(limit)
    )
    return [BatchDocument._make(row) for row in transaction.execute(query)]


_ACCEPT: Final = (
    update(documents)
    .where(documents.c.url_id == bindparam("row_id"))
    .values(ACKNOWLEDGED.values)
    .execution_options(**MOVES_ALONE)
)


def note_accepted(transaction: Transaction, batch: SealedBatch, url_ids: Sequence[int]) -> None:
    """Notes receipts: the index has these documents in this version; those that were being sent are present.

    A document that changed meanwhile keeps its newer state. One that may not be indexed any more is marked for removal.
    """
    rows = [{"row_id": url_id, "number": batch.number, "version": batch.crawl_version} for url_id in url_ids]
    write_rows(transaction, _ACCEPT, rows)


def note_refused(transaction: Transaction, batch: SealedBatch, refused: Sequence[tuple[int, str]]) -> None:
    """Withholds documents that the index refuses, and stores its reason. The index keeps their earlier versions."""
    if refused:
        statement = (
            update(documents)
            .where(
                documents.c.url_id == bindparam("row_id"),
                or_(IS_SENDING, documents.c.state == int(DocumentState.QUARANTINED)),
                documents.c.batch_id == batch.number,
            )
            .values(INDEX_REFUSED.values)
        )
        transaction.execute(statement, [{"row_id": url_id, "reason": reason} for url_id, reason in refused])


def select_still_in_batch(transaction: Transaction, batch: SealedBatch, url_ids: Sequence[int]) -> list[int]:
    """Those of ``url_ids`` whose documents are still in the batch. The others were fetched again meanwhile."""
    return find_among(transaction, documents.c.url_id, url_ids, documents.c.batch_id == batch.number)


def mark_records_lost(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Notes that the records of documents to be sent are gone or damaged: their pages have to be fetched again."""
    set_documents(transaction, url_ids, **RECORD_GONE.values)


def set_documents(transaction: Transaction, url_ids: Sequence[int], log_seq: int | None = None, **values: Any) -> None:
    """Sets columns of the documents of these rows; ``log_seq`` as in ``document_events``."""
    number = {} if log_seq is None else {"log_seq": log_seq}
    write_parts(transaction, update(documents).values(values), documents.c.url_id, url_ids, number)


def find_segments_in_use(transaction: Transaction, source_id: int) -> set[int]:
    """Segments with documents that wait for the index, or are in a delivery that it has not committed."""
    columns = select(documents.c.segment).where(documents.c.source_id == source_id, documents.c.segment.is_not(None))
    waiting = columns.where(_PENDING, TO_SEND).distinct()
    under_way = columns.where(documents.c.batch_id.in_(_list_unfinished(transaction, source_id))).distinct()
    return {*transaction.execute(waiting).scalars(), *transaction.execute(under_way).scalars()}


def waits_for_index(transaction: Transaction, source_id: int) -> ColumnElement[bool]:
    """The condition on ``documents`` for those that wait for the index, or are in a delivery that it has not committed."""
    unfinished = _list_unfinished(transaction, source_id)
    return or_(TO_SEND, and_(documents.c.batch_id.is_not(None), documents.c.batch_id.in_(unfinished)))


def _list_unfinished(transaction: Transaction, source_id: int) -> list[int]:
    return [batch.number for batch in find_unfinished(transaction, source_id)]


def forget_segment(transaction: Transaction, source_id: int, number: int) -> None:
    """Notes that a segment was deleted: its documents have no record any more."""
    transaction.execute(
        update(documents)
        .where(documents.c.source_id == source_id, documents.c.segment == number)
        .values(segment=None, record_offset=None, response_bytes=None, fields_bytes=None)
    )


#: A batch has no more documents than this, however small they are.
_MOST_ROWS: Final = 5_000
_PREPARED_ROWS: Final = 500


class Chunk(NamedTuple):
    """A sealed part of a resend; ``last`` is its highest row id."""

    batch: SealedBatch
    last: int


def begin_resend(transaction: Transaction, source_id: int, now_ms: int) -> None:
    """Begins a resend of all documents that belong in the index, including those that the index refused before."""
    source_table.note(transaction, source_id, resend_version=choose_version(transaction, now_ms))


def prepare_resend(transaction: Transaction, source_id: int, *, after: int) -> int | None:
    """Prepares the next documents by rising row id: those without a record are to be fetched, and refused ones sent.

    Returns the last row id; None where none is left. It may be repeated as long as the resend goes on.
    """
    lost = documents.c.segment.is_(None)
    older = documents.c.indexed_version < (source_table.find(transaction, source_id, "resend_version") or 0)
    query = select(documents.c.url_id, lost).where(
        documents.c.code == 200,
        documents.c.leaving == 0,
        or_(IS_REFUSED, and_(lost, older, documents.c.state == int(DocumentState.PRESENT))),
    )
    rows = read_page(transaction, query, source_id, by=documents.c.url_id, after=after, limit=_PREPARED_ROWS)
    fetched = [url_id for url_id, is_lost in rows if is_lost]
    fetch_again(transaction, fetched)
    again = update(documents).where(documents.c.url_id.in_([url_id for url_id, is_lost in rows if not is_lost]))
    transaction.execute(again.values(REFUSED_RESENT.values))
    return rows[-1][0] if rows else None


def fetch_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has the pages visited whose documents are to be sent, and whose records are gone or cannot be read."""
    mark_records_lost(transaction, url_ids)
    url_table.reopen(transaction, url_ids)


def send_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Sends documents again that differ by what other pages say; those whose record is lost are fetched again."""
    fetch_again(transaction, document_table.send_again(transaction, url_ids))


def seal_resend(
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
        .where(_is_to_resend(transaction, source_id), documents.c.url_id > after, documents.c.url_id <= last)
        .values(**RESENT.values, batch_id=batch.number)
    )
    return Chunk(batch, last)


def seal_chosen(
    transaction: Transaction, source_id: int, run_id: int, now_ms: int, *, url_ids: Sequence[int]
) -> SealedBatch:
    """Puts chosen documents with records into a batch, whatever receipts they have; also those that the index refused."""
    batch = add_batch(transaction, source_id, run_id, now_ms)
    statement = update(documents).values(**MENDED.values, batch_id=batch.number)
    write_parts(transaction, statement, documents.c.url_id, url_ids)
    return batch


def count_to_resend(transaction: Transaction, source_id: int) -> int:
    """How many documents are still to be sent again."""
    return count_rows(transaction, documents, _is_to_resend(transaction, source_id))


def _find_end_of_chunk(transaction: Transaction, source_id: int, *, after: int, max_bytes: int) -> int | None:
    query = (
        select(documents.c.url_id, documents.c.content_length)
        .where(_is_to_resend(transaction, source_id), documents.c.url_id > after)
        .order_by(documents.c.url_id)
        .limit(_MOST_ROWS)
    )
    last, size = None, 0
    for url_id, content_length in transaction.execute(query):
        last, size = url_id, size + content_length
        if size >= max_bytes:
            break
    return last


def _is_to_resend(transaction: Transaction, source_id: int) -> ColumnElement[bool]:
    """Documents in the index with a record and a receipt from before the resend."""
    return and_(
        # Without this condition a query planner may sort the whole source for each batch.
        unindexed(documents.c.source_id) == source_id,
        documents.c.indexed_version < (source_table.find(transaction, source_id, "resend_version") or 0),
        documents.c.segment.is_not(None),
        or_(
            is_in(DELIVERED),
            # A copy that stays in the index until its survivor is there.
            and_(documents.c.state == int(DocumentState.WITHHELD), documents.c.index_error.is_(None)),
        ),
    )
