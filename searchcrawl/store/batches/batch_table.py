"""Deliveries (batches). A sealed one is kept in rows, so that a crash repeats it with the same ids and versions (D8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import and_, bindparam, case, func, insert, literal, or_, select, text, update

from searchcrawl.codes import Code
from searchcrawl.store.documents.document_table import IS_COPY, OUT_OF_QUARANTINE
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import batches, documents, urls
from searchcrawl.store.statements import is_one_of, split
from searchcrawl.store.states import PENDING, BatchState, DocumentState, Leaving

_PENDING: Final = is_one_of("documents.state", PENDING)
_HAS_EVIDENCE: Final = text("documents.leaving > 0")
_IS_INDEXED_COPY: Final = text("documents.duplicate_of IS NOT NULL AND documents.indexed_version IS NOT NULL")


class SealedBatch(NamedTuple):
    """A delivery; ``number`` is its id, and rises from one to the next."""

    number: int
    crawl_version: int
    state: BatchState


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDocument:
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


_BATCH_COLUMNS: Final = [documents.c[name] if name in documents.c else urls.c[name] for name in BatchDocument.__slots__]


class RemovalCandidate(NamedTuple):
    """A document to be removed, and why: what its last visit brought, or else ``leaving``."""

    url_id: int
    url: str
    code: int
    rule: str | None
    leaving: int = Leaving.EVIDENCE


_CANDIDATES: Final = (
    select(documents.c.url_id, urls.c.url, urls.c.code, urls.c.rule, documents.c.leaving)
    .select_from(documents.join(urls, urls.c.id == documents.c.url_id))
    .order_by(documents.c.url_id)
)


def choose_version(transaction: Transaction, now_ms: int) -> int:
    """Chooses the ``crawl_version`` of the next delivery: larger than those of all earlier deliveries."""
    last = transaction.execute(select(func.max(batches.c.crawl_version))).scalar() or 0
    # The version is a time. So a store that was lost and made again still has larger versions than the index.
    return max(int(last) + 1, now_ms)


def add_batch(transaction: Transaction, source_id: int, run_id: int, now_ms: int) -> SealedBatch:
    """Adds an empty delivery."""
    version = choose_version(transaction, now_ms)
    number = transaction.execute(
        insert(batches)
        .values(
            source_id=source_id, run_id=run_id, crawl_version=version, state=int(BatchState.SEALED), created_ms=now_ms
        )
        .returning(batches.c.id)
    ).scalar_one()
    return SealedBatch(number, version, BatchState.SEALED)


def seal_documents(transaction: Transaction, source_id: int, run_id: int, now_ms: int) -> SealedBatch | None:
    """Puts all cached documents of a source into a new batch; None where there are none."""
    ready = and_(
        _PENDING,
        documents.c.source_id == source_id,
        documents.c.state == int(DocumentState.CACHED),
        documents.c.leaving == 0,
    )
    if transaction.execute(select(literal(1)).where(ready).limit(1)).scalar() is None:
        return None
    batch = add_batch(transaction, source_id, run_id, now_ms)
    transaction.execute(update(documents).where(ready).values(state=int(DocumentState.SENDING), batch_id=batch.number))
    return batch


def seal_removals(
    transaction: Transaction, source_id: int, run_id: int, now_ms: int, url_ids: Sequence[int]
) -> SealedBatch:
    """Puts removals into a new batch."""
    batch = add_batch(transaction, source_id, run_id, now_ms)
    _set(
        transaction,
        url_ids,
        state=int(DocumentState.REMOVING),
        batch_id=batch.number,
        # A removal that an operator approved is one of the run that held it back.
        removed_run=func.coalesce(documents.c.quarantine_run, run_id),
        quarantine_run=None,
    )
    return batch


def find_unfinished(transaction: Transaction, source_id: int) -> list[SealedBatch]:
    """Batches that are not yet committed by the index, oldest first."""
    query = (
        select(batches.c.id, batches.c.crawl_version, batches.c.state)
        .where(batches.c.source_id == source_id, batches.c.state < int(BatchState.COMMITTED))
        .order_by(batches.c.id)
    )
    return [SealedBatch(row.id, row.crawl_version, BatchState(row.state)) for row in transaction.execute(query)]


def set_state(transaction: Transaction, number: int, state: BatchState) -> None:
    """Sets the state of a batch."""
    transaction.execute(update(batches).where(batches.c.id == number).values(state=int(state)))


def find_without_receipt(transaction: Transaction, number: int, *, after: int, limit: int) -> list[BatchDocument]:
    """Documents of a batch that have no receipt yet, by rising id."""
    query = (
        select(*_BATCH_COLUMNS)
        .select_from(documents.join(urls, urls.c.id == documents.c.url_id))
        .join(batches, batches.c.id == documents.c.batch_id)
        .where(
            documents.c.batch_id == number,
            or_(
                documents.c.state == int(DocumentState.SENDING),
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
    return [BatchDocument(**row._mapping) for row in transaction.execute(query)]


def note_accepted(transaction: Transaction, batch: SealedBatch, url_ids: Sequence[int]) -> None:
    """Notes receipts: the index has these documents in this version.

    A document that changed meanwhile keeps its newer state. One that may not be indexed any more is marked for removal.
    """
    sent = and_(documents.c.state == int(DocumentState.SENDING), documents.c.batch_id == batch.number)
    _set(
        transaction,
        url_ids,
        indexed_version=batch.crawl_version,
        state=case((sent, int(DocumentState.PRESENT)), else_=documents.c.state),
        leaving=case(
            # An operator kept it.
            (documents.c.rejected_run.is_not(None), documents.c.leaving),
            # The document may not be indexed any more, or its display URL belongs to another document now.
            (or_(documents.c.state == int(DocumentState.NONE), documents.c.code == int(Code.DISPLAY_URL_CLASH)), 1),
            else_=documents.c.leaving,
        ),
        # It was sent again as it is while its removal waits.
        held_state=case(
            (
                and_(
                    documents.c.state == int(DocumentState.QUARANTINED),
                    documents.c.batch_id == batch.number,
                ),
                int(DocumentState.PRESENT),
            ),
            else_=documents.c.held_state,
        ),
        index_error=None,
    )


def note_refused(transaction: Transaction, batch: SealedBatch, refused: Sequence[tuple[int, str]]) -> None:
    """Withholds documents that the index refuses, and stores its reason. The index keeps their earlier versions."""
    if refused:
        sending = documents.c.state == int(DocumentState.SENDING)
        statement = (
            update(documents)
            .where(
                documents.c.url_id == bindparam("row_id"),
                or_(sending, documents.c.state == int(DocumentState.QUARANTINED)),
                documents.c.batch_id == batch.number,
            )
            .values(
                state=case((sending, int(DocumentState.WITHHELD)), else_=documents.c.state),
                batch_id=None,
                index_error=bindparam("reason"),
            )
        )
        transaction.execute(statement, [{"row_id": url_id, "reason": reason} for url_id, reason in refused])


def select_still_in_batch(transaction: Transaction, batch: SealedBatch, url_ids: Sequence[int]) -> list[int]:
    """Those of ``url_ids`` whose documents are still in the batch. The others were fetched again meanwhile."""
    query = select(documents.c.url_id).where(documents.c.url_id.in_(url_ids), documents.c.batch_id == batch.number)
    return list(transaction.execute(query).scalars())


def mark_records_lost(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Notes that the records of documents to be sent are gone or damaged: their pages have to be fetched again."""
    in_quarantine = documents.c.state == int(DocumentState.QUARANTINED)
    state = case((in_quarantine, documents.c.state), else_=int(DocumentState.RECORD_LOST))
    _set(transaction, url_ids, state=state, batch_id=None, segment=None)


def find_removals_under_way(
    transaction: Transaction, source_id: int
) -> list[tuple[int, SealedBatch, list[RemovalCandidate]]]:
    """Sealed removals without a receipt, by batch."""
    query = (
        select(batches.c.id, batches.c.crawl_version, documents.c.url_id, urls.c.url, urls.c.code, urls.c.rule)
        .select_from(
            documents.join(urls, urls.c.id == documents.c.url_id).join(batches, batches.c.id == documents.c.batch_id)
        )
        .where(_PENDING, documents.c.source_id == source_id, documents.c.state == int(DocumentState.REMOVING))
        .order_by(batches.c.id, documents.c.url_id)
    )
    found: dict[int, tuple[int, SealedBatch, list[RemovalCandidate]]] = {}
    for row in transaction.execute(query):
        batch = SealedBatch(row[0], row[1], BatchState.SEALED)
        found.setdefault(row[0], (row[0], batch, []))[2].append(RemovalCandidate(*row[2:]))
    return list(found.values())


def find_removal_candidates(transaction: Transaction, source_id: int) -> list[RemovalCandidate]:
    """Documents in the index with evidence against them, whose removal is neither sealed nor in quarantine."""
    query = _CANDIDATES.where(
        _HAS_EVIDENCE,
        documents.c.source_id == source_id,
        documents.c.indexed_version.is_not(None),
        documents.c.state.not_in([int(DocumentState.REMOVING), int(DocumentState.QUARANTINED)]),
    )
    return [RemovalCandidate(*row) for row in transaction.execute(query)]


def find_removable_copies(transaction: Transaction, source_id: int) -> list[RemovalCandidate]:
    """Copies and non-canonical pages in the index that can be removed: the index has the present text of their survivor."""
    survivor = documents.alias("survivor")
    query = (
        select(documents.c.url_id, urls.c.url, documents.c.code, urls.c.rule)
        .select_from(
            documents.join(urls, urls.c.id == documents.c.url_id).join(
                survivor, survivor.c.url_id == documents.c.duplicate_of
            )
        )
        .where(
            _IS_INDEXED_COPY,
            IS_COPY,
            documents.c.source_id == source_id,
            survivor.c.indexed_version > 0,
            survivor.c.state == int(DocumentState.PRESENT),
            documents.c.state == int(DocumentState.WITHHELD),
        )
        .order_by(documents.c.url_id)
    )
    return [RemovalCandidate(*row) for row in transaction.execute(query)]


def quarantine(transaction: Transaction, url_ids: Sequence[int], run_id: int) -> None:
    """Puts removals into quarantine, until an operator approves or rejects them."""
    _set(
        transaction,
        url_ids,
        state=int(DocumentState.QUARANTINED),
        held_state=documents.c.state,
        quarantine_run=run_id,
        batch_id=None,
    )


def find_quarantined(transaction: Transaction, source_id: int) -> list[tuple[RemovalCandidate, int]]:
    """Documents whose removal is in quarantine, each with the run that put it there."""
    query = _CANDIDATES.add_columns(documents.c.quarantine_run).where(
        _PENDING, documents.c.source_id == source_id, documents.c.state == int(DocumentState.QUARANTINED)
    )
    return [(RemovalCandidate(*row[:-1]), row[-1]) for row in transaction.execute(query)]


def reject_removals(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Rejects removals in quarantine: the documents stay in the index until there is other evidence.

    Returns the ids of those that have to be fetched again: they are to be sent, and their record is gone.
    """
    _set(
        transaction,
        url_ids,
        state=OUT_OF_QUARANTINE,
        # The index has an earlier text than the one that may not be indexed: a text to be indexed is a new one.
        fields_digest=case((documents.c.held_state == int(DocumentState.NONE), None), else_=documents.c.fields_digest),
        leaving=0,
        rejected_run=documents.c.quarantine_run,
        quarantine_run=None,
    )
    lost: list[int] = []
    for part in split(url_ids):
        query = select(documents.c.url_id).where(
            documents.c.url_id.in_(part), documents.c.state == int(DocumentState.RECORD_LOST)
        )
        lost += transaction.execute(query).scalars()
    return lost


def note_removed(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Notes that the index acknowledged removals.

    A copy stays a copy of its survivor. A page that came back meanwhile stays in its new batch.
    """
    still = documents.c.state == int(DocumentState.REMOVING)
    _set(
        transaction,
        url_ids,
        indexed_version=None,
        leaving=0,
        batch_id=case((still, None), else_=documents.c.batch_id),
        state=case(
            (and_(still, documents.c.duplicate_of.is_not(None)), int(DocumentState.WITHHELD)),
            (still, int(DocumentState.NONE)),
            else_=documents.c.state,
        ),
    )


def _set(transaction: Transaction, url_ids: Sequence[int], **values: Any) -> None:
    """Sets columns of the documents of these rows, one row after the other."""
    if url_ids:
        statement = update(documents).where(documents.c.url_id == bindparam("row_id")).values(**values)
        transaction.execute(statement, [{"row_id": url_id} for url_id in url_ids])


def find_segments_in_use(transaction: Transaction, source_id: int) -> set[int]:
    """Segments with documents that the index has not acknowledged yet."""
    query = (
        select(documents.c.segment)
        .where(
            _PENDING,
            documents.c.source_id == source_id,
            documents.c.segment.is_not(None),
            or_(documents.c.state == int(DocumentState.CACHED), documents.c.state == int(DocumentState.SENDING)),
        )
        .distinct()
    )
    return set(transaction.execute(query).scalars())


def forget_segment(transaction: Transaction, source_id: int, number: int) -> None:
    """Notes that a segment was deleted: its documents have no record any more."""
    transaction.execute(
        update(documents)
        .where(documents.c.source_id == source_id, documents.c.segment == number)
        .values(segment=None, record_offset=None, response_bytes=None, fields_bytes=None)
    )
