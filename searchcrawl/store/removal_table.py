"""Removals from the index: what is to leave it, in deliveries or held back for an operator, a page of rows at a time (L3).

An operator decides about those in quarantine, and may undo what was decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, TextClause, and_, case, exists, func, or_, select, text, update

from searchcrawl.rules.lifecycle import describe_evidence
from searchcrawl.store.batch_table import SealedBatch, add_batch, load_batches, set_documents
from searchcrawl.store.documents.document_events import (
    HELD_BACK,
    IS_COPY,
    LET_GO,
    REMOVAL_OPENED,
    REMOVAL_REJECTED,
    REMOVAL_SEALED,
    REMOVED,
    TAKEN_BACK,
)
from searchcrawl.store.documents.presence import IS_RECORD_LOST, IS_REMOVING, IS_SENDING, is_in, is_there, may_be_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import count_rows, find_among, read_page, select_fields, write_parts
from searchcrawl.store.run_schema import batches, runs
from searchcrawl.store.runs.run_table import draw_log_number
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, documents, sources, urls
from searchcrawl.store.statements import is_one_of, split
from searchcrawl.store.states import PENDING, REMOVALS, BatchState, DocumentState, EndReason, FetchState, Leaving
from searchcrawl.store.urls import orphan_table

#: Rows that are read, sealed or held back at once: an edited scope may drop ten million documents.
PAGE_ROWS: Final = 5000

# The literals let the planner use the partial indexes.
_HAS_EVIDENCE: Final = text("documents.leaving > 0")
_IS_INDEXED_COPY: Final = text("documents.duplicate_of IS NOT NULL AND documents.indexed_version IS NOT NULL")
_COPY_IN_INDEX: Final = (
    _IS_INDEXED_COPY,
    documents.c.state == int(DocumentState.WITHHELD),
    documents.c.leaving == 0,
    documents.c.rejected_run.is_(None),
)
_PENDING: Final = is_one_of("documents.state", PENDING)
_IS_COPY: Final = documents.c.duplicate_of.is_not(None)


class RemovalCandidate(NamedTuple):
    """A document to be removed, and why: what its last visit brought, or else ``leaving``; 0 for a copy.

    ``evidence`` is what was noted against it, perhaps by an earlier visit.
    """

    url_id: int
    url: str
    code: int
    rule: str | None
    leaving: int = Leaving.EVIDENCE
    failures: str | None = None
    failed_runs: int = 0
    redirected: bool = False
    evidence: str | None = None


class Before(NamedTuple):
    """Where a run begins, with those that it continues: the last delivery from before it, and its horizon."""

    batch: int
    horizon_ms: int


#: A copy leaves for another document, whatever became of its last visit.
_CANDIDATES: Final = select_fields(
    RemovalCandidate,
    documents,
    urls,
    code=case((_IS_COPY, documents.c.code), else_=urls.c.code),
    rule=case((~_IS_COPY, urls.c.rule)),
    redirected=and_(~_IS_COPY, urls.c.redirects.is_not(None)),
)
_survivor, _end = documents.alias("survivor"), documents.alias("end")
_OF_SURVIVOR: Final = _survivor.c.url_id == documents.c.duplicate_of
_OF_END: Final = _end.c.url_id == _survivor.c.duplicate_of
_ROWS_OF_COPIES: Final = DOCUMENTS_WITH_URLS.join(_survivor, _OF_SURVIVOR).outerjoin(_end, _OF_END)


def find_candidates(
    transaction: Transaction, source_id: int, *, before: Before, is_away: bool = False, after: int = 0
) -> list[RemovalCandidate]:
    """The next documents to be removed within the limits, by rising id: with evidence against them, or copies now.

    Copies that came into the index only in the run are not among them. What is on its way
    to the index may have come there; where that is away (``is_away``) it counts as if it were there.
    """
    evidence = _HAS_EVIDENCE, may_be_there(), ~is_in(REMOVALS), documents.c.rejected_run.is_(None)
    found = _find_page(transaction, source_id, after, *evidence)
    found += _find_copies(transaction, source_id, after, ~_build_is_new(before, is_away=is_away), is_away=is_away)
    return sorted(found)[:PAGE_ROWS]


def find_due(transaction: Transaction, url_ids: Sequence[int], horizon_ms: int) -> set[int]:
    """Those of ``url_ids`` whose pages are still to be visited in a run with this horizon."""
    due = or_(urls.c.fetch_state != int(FetchState.SETTLED), urls.c.due_ms <= horizon_ms)
    return {*find_among(transaction, urls.c.id, url_ids, due)}


_successor = documents.alias("successor")
#: As in its index, and with the present text in the index.
_STAYS: Final = (
    text(f"successor.code = 200 AND successor.duplicate_of IS NULL AND successor.state <> {DocumentState.NONE}"),
    _successor.c.leaving == 0,
    is_there(_successor),
    _successor.c.source_id == documents.c.source_id,
    _successor.c.url_id != documents.c.url_id,
)
_HAS_TEXT: Final = exists().where(*_STAYS, _successor.c.copy_digest == documents.c.copy_digest)
# Of what is listed: it may have other values there, as its path.
_HAS_BYTES: Final = exists().where(
    *_STAYS, text("successor.content_digest IS NOT NULL"), _successor.c.content_digest == documents.c.content_digest
)


def find_moved(transaction: Transaction, url_ids: Sequence[int]) -> set[int]:
    """Those of the documents whose text, or bytes, the index has as those of another document of the source, which stays."""
    by_text = documents.c.copy_digest.is_not(None), _HAS_TEXT
    by_bytes = documents.c.content_digest.is_not(None), _HAS_BYTES
    return {
        url_id for here in (by_text, by_bytes) for url_id in find_among(transaction, documents.c.url_id, url_ids, *here)
    }


def find_new_copies(
    transaction: Transaction, source_id: int, *, before: Before, is_away: bool = False
) -> list[RemovalCandidate]:
    """Copies to be removed that were no documents of the index before the run: they were sent in it too early."""
    return _find_copies(transaction, source_id, 0, _build_is_new(before, is_away=is_away), is_away=is_away)


def count_copies(transaction: Transaction, source_id: int) -> int:
    """How many copies are in the index, whatever it has of their survivors."""
    return count_rows(transaction, documents, documents.c.source_id == source_id, *_COPY_IN_INDEX)


def _find_copies(
    transaction: Transaction, source_id: int, after: int, condition: ColumnElement[bool], *, is_away: bool
) -> list[RemovalCandidate]:
    """Copies and non-canonical pages in the index, which has the present text of their survivors, or gets it before."""
    return _find_page(
        transaction,
        source_id,
        after,
        *_COPY_IN_INDEX,
        # A page that shows the display URL of another one may name a copy: then that one's survivor counts.
        or_(*(_is_there(one, is_away=is_away) for one in (_survivor, _end))),
        condition,
        rows=_ROWS_OF_COPIES,
    )


def _is_there(survivor: Any, *, is_away: bool) -> ColumnElement[bool]:
    """Whether the index has the present text of a document; or gets it once it is no longer away."""
    return or_(is_there(survivor), is_in({DocumentState.SENDING}, survivor)) if is_away else is_there(survivor)


def _build_is_new(before: Before, *, is_away: bool) -> ColumnElement[bool]:
    """Documents that the index got in the run, also where no receipt says so."""
    since = documents.c.indexed_since
    without_receipt = and_(since.is_(None), func.coalesce(documents.c.indexed_version, 0) == 0)
    if is_away:
        # An earlier run may have put it into a delivery that still waits.
        without_receipt = and_(without_receipt, urls.c.first_seen_ms >= before.horizon_ms)
    return or_(func.coalesce(since, 0) > before.batch, without_receipt)


def _find_page(
    transaction: Transaction, source_id: int, after: int, *conditions: Any, rows: Any = DOCUMENTS_WITH_URLS
) -> list[RemovalCandidate]:
    query = _CANDIDATES.select_from(rows).where(*conditions)
    page = read_page(
        transaction, query, source_id, by=documents.c.url_id, after=after, limit=PAGE_ROWS, is_indexed=True
    )
    return [RemovalCandidate._make(row) for row in page]


def seal(
    transaction: Transaction, source_id: int, run_id: int, now_ms: int, url_ids: Sequence[int], *, counted: bool
) -> SealedBatch:
    """Puts removals into a new batch: the documents are being removed; ``counted``: the limits on deleting count them."""
    batch = add_batch(transaction, source_id, run_id, now_ms, removals=len(url_ids) if counted else 0)
    set_documents(
        transaction,
        url_ids,
        draw_log_number(transaction, source_id),
        **REMOVAL_SEALED.values,
        batch_id=batch.number,
        # What an operator decided is a removal of the run that held it back; what never was a document is none.
        removed_run=func.coalesce(
            documents.c.quarantine_run, documents.c.rejected_run, run_id if counted else documents.c.removed_run
        ),
    )
    return batch


def find_under_way(transaction: Transaction, source_id: int) -> list[SealedBatch]:
    """Batches with removals that have no receipt."""
    numbers = select(documents.c.batch_id).where(_PENDING, documents.c.source_id == source_id, IS_REMOVING)
    return load_batches(transaction, batches.c.id.in_(numbers.distinct()))


def open_early(transaction: Transaction, source_id: int) -> int:
    """Takes removals of copies out of their deliveries where the index lacks the present text of their survivors.

    The end of a run decides about them again. Returns how many; 0 at the end.
    """
    found = _find_early(transaction, source_id)
    # They count once they are decided again.
    for number, count in Counter(batch for _, batch in found).items():
        fewer = case((batches.c.removals > count, batches.c.removals - count), else_=0)
        transaction.execute(update(batches).where(batches.c.id == number).values(removals=fewer))
    if found:
        ids = [url_id for url_id, _ in found]
        set_documents(transaction, ids, draw_log_number(transaction, source_id), **REMOVAL_OPENED.values)
    return len(found)


def _find_early(transaction: Transaction, source_id: int) -> list[tuple[int, int]]:
    """The rows and their batches."""
    query = (
        select(documents.c.url_id, documents.c.batch_id)
        .select_from(documents.outerjoin(_survivor, _OF_SURVIVOR).outerjoin(_end, _OF_END))
        .where(
            _PENDING,
            documents.c.source_id == source_id,
            IS_REMOVING,
            IS_COPY,
            documents.c.duplicate_of.is_not(None),
            ~func.coalesce(or_(*(_is_there(one, is_away=False) for one in (_survivor, _end))), False),
        )
        .limit(PAGE_ROWS)
    )
    return [(row.url_id, row.batch_id) for row in transaction.execute(query)]


def find_rowless(transaction: Transaction, source_id: int) -> list[SealedBatch]:
    """Sealed deliveries with removals of documents that have no rows: those of a process that died (``verify --repair``)."""
    return load_batches(
        transaction,
        batches.c.source_id == source_id,
        batches.c.state == int(BatchState.SEALED),
        text("batches.removals > 0"),
        ~exists().where(documents.c.batch_id == batches.c.id),
    )


def find_without_receipt(
    transaction: Transaction, source_id: int, number: int, *, after: int = 0
) -> list[RemovalCandidate]:
    """The next removals of a batch that have no receipt, by rising id."""
    return _find_page(transaction, source_id, after, documents.c.batch_id == number, IS_REMOVING)


def take_over(transaction: Transaction, batch: SealedBatch, run_id: int, now_ms: int) -> None:
    """Notes that removals which an earlier process sealed are sent only now: they count from now on.

    They are removals of the run that sends them, as its counters say. Those that count for no run stay what they are:
    somebody asked for them, or decided.
    """
    if not batch.removals:
        return
    sealed_in = select(batches.c.run_id).where(batches.c.id == batch.number).scalar_subquery()
    of_batch = documents.c.batch_id == batch.number, documents.c.removed_run == sealed_in, IS_REMOVING
    transaction.execute(update(documents).where(*of_batch).values(removed_run=run_id))
    statement = update(batches).where(batches.c.id == batch.number)
    transaction.execute(statement.values(run_id=run_id, created_ms=now_ms))


def count_under_way(transaction: Transaction, source_id: int) -> int:
    """How many documents more or less than those of the index there are once all that is sealed was sent."""
    moving = documents.c.source_id == source_id, _PENDING
    coming = IS_SENDING, documents.c.indexed_version.is_(None)
    going = IS_REMOVING, documents.c.indexed_version.is_not(None)
    return count_rows(transaction, documents, *moving, *coming) - count_rows(transaction, documents, *moving, *going)


def count_recent(transaction: Transaction, source_id: int, *, since_ms: int) -> int:
    """Removals that count towards the limits: those since the last completed run, and those since ``since_ms``."""
    completed = (
        select(runs.c.id)
        .where(runs.c.source_id == source_id, runs.c.end_reason == EndReason.FINISHED.value)
        .order_by(runs.c.id.desc())
        .limit(1)
    )
    last = transaction.execute(completed).scalar() or 0
    query = select(func.coalesce(func.sum(batches.c.removals), 0)).where(
        text("batches.removals > 0"),
        batches.c.source_id == source_id,
        or_(batches.c.created_ms >= since_ms, batches.c.run_id > last),
    )
    return int(transaction.execute(query).scalar_one())


def quarantine(transaction: Transaction, url_ids: Sequence[int], run_id: int) -> None:
    """Puts removals into quarantine, until an operator approves or rejects them."""
    set_documents(transaction, url_ids, **HELD_BACK.values, quarantine_run=run_id)


def reject(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Rejects removals in quarantine: the documents stay in the index until there is other evidence.

    Returns the ids of those that have to be fetched again: they are to be sent, and their record is gone.
    """
    set_documents(transaction, url_ids, **REMOVAL_REJECTED.values)
    return find_among(transaction, documents.c.url_id, url_ids, IS_RECORD_LOST)


def note_removed(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Notes that the index acknowledged removals: of what was being removed nothing is to be indexed.

    A copy stays a copy of its survivor. A page that came back meanwhile stays in its new batch.
    """
    set_documents(transaction, url_ids, **REMOVED.values)
    orphan_table.park_removed(transaction, url_ids)


# The literal lets the planner use the partial index.
_IS_QUARANTINED: Final = text(f"documents.state = {DocumentState.QUARANTINED}")


class HeldRow(NamedTuple):
    """A removal that waits or was rejected: the run that held it back, and what is held against the document."""

    url_id: int
    url: str
    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Which removals are meant: those of the run ``only``, else those of runs up to ``last``; None is no restriction."""

    only: int | None = None
    last: int | None = None

    def build_condition(self, column: Column[int | None]) -> ColumnElement[bool]:
        """The condition of the documents whose run is in ``column``; others have NULL there."""
        if self.only is not None:
            return column == self.only
        return column.is_not(None) if self.last is None else column <= self.last


def list_waiting(transaction: Transaction, source_id: int, *, after: int) -> list[HeldRow]:
    """The removals in quarantine by rising row id, a page of them."""
    return _list(transaction, source_id, documents.c.quarantine_run, _IS_QUARANTINED, after=after)


def list_rejected(transaction: Transaction, source_id: int, *, after: int) -> list[HeldRow]:
    """The removals that were rejected and not let go since, by rising row id, a page of them."""
    return _list(transaction, source_id, documents.c.rejected_run, documents.c.rejected_run.is_not(None), after=after)


def find_times(transaction: Transaction, run_id: int) -> tuple[int, int | None]:
    """When a run started, and when it ended; None for one that goes on, or was killed."""
    row = transaction.execute(select(runs.c.started_ms, runs.c.ended_ms).where(runs.c.id == run_id)).one()
    return row.started_ms, row.ended_ms


def set_listed_run(transaction: Transaction, source_id: int, run_id: int) -> None:
    """Notes the newest run whose removals were listed; an earlier one changes nothing."""
    newer = or_(sources.c.listed_run.is_(None), sources.c.listed_run < run_id)
    transaction.execute(update(sources).where(sources.c.id == source_id, newer).values(listed_run=run_id))


def find_waiting(transaction: Transaction, source_id: int, choice: Choice) -> list[RemovalCandidate]:
    """The next removals in quarantine, by rising row id, a page of them."""
    chosen = choice.build_condition(documents.c.quarantine_run)
    return _find_page(transaction, source_id, 0, _IS_QUARANTINED, chosen)


def count_waiting(transaction: Transaction, source_id: int, run_id: int) -> int:
    """How many removals of a run are in quarantine."""
    waiting = _IS_QUARANTINED, documents.c.source_id == source_id, documents.c.quarantine_run == run_id
    return count_rows(transaction, documents, *waiting)


def find_rejected(transaction: Transaction, source_id: int, choice: Choice) -> list[RemovalCandidate]:
    """The next rejected removals of documents that the index has or may have, by rising row id, a page of them."""
    chosen = choice.build_condition(documents.c.rejected_run)
    return _find_page(transaction, source_id, 0, documents.c.rejected_run.is_not(None), chosen, may_be_there())


def find_unsent(transaction: Transaction, source_id: int, choice: Choice) -> list[int]:
    """The next documents with a rejected removal that neither the index nor a delivery has, a page of them."""
    here = documents.c.rejected_run.is_not(None), documents.c.source_id == source_id, ~may_be_there()
    chosen = choice.build_condition(documents.c.rejected_run)
    return list(transaction.execute(select(documents.c.url_id).where(*here, chosen).limit(PAGE_ROWS)).scalars())


def drop_unsent(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Lets documents go that ``find_unsent`` found; their duplicates have to be resolved afterwards."""
    write_parts(transaction, update(documents).values(LET_GO.values), documents.c.url_id, url_ids)


def find_removed(transaction: Transaction, source_id: int, run_id: int) -> dict[int, str | None]:
    """The next removals of a run that may be taken back, a page of them: what was held against each, by row id."""
    here = documents.c.removed_run == run_id, documents.c.source_id == source_id
    undoable = or_(documents.c.indexed_version.is_(None), IS_REMOVING)
    query = select(documents.c.url_id, documents.c.evidence).where(*here, undoable).limit(PAGE_ROWS)
    return {row.url_id: row.evidence for row in transaction.execute(query)}


def take_back(transaction: Transaction, url_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Takes removals back: the documents count as kept by an operator.

    Those with a record are to be sent. Returns the ids of these, and of the others, which have to be fetched.
    """
    by_record: tuple[list[int], list[int]] = ([], [])
    for part in split(url_ids):
        statement = update(documents).where(documents.c.url_id.in_(part)).values(TAKEN_BACK.values)
        for url_id, state in transaction.execute(statement.returning(documents.c.url_id, documents.c.state)):
            by_record[state == DocumentState.RECORD_LOST].append(url_id)
    return by_record


def _list(
    transaction: Transaction,
    source_id: int,
    run: Column[int | None],
    *conditions: ColumnElement[bool] | TextClause,
    after: int,
) -> list[HeldRow]:
    columns = documents.c.url_id, urls.c.url, run, documents.c.evidence, urls.c.code, urls.c.rule
    query = select(*columns).select_from(DOCUMENTS_WITH_URLS).where(*conditions)
    page = read_page(
        transaction, query, source_id, by=documents.c.url_id, after=after, limit=PAGE_ROWS, is_indexed=True
    )
    return [
        HeldRow(url_id, url, number, evidence or describe_evidence(code, rule))
        for url_id, url, number, evidence, code, rule in page
    ]
