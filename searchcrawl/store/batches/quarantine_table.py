"""Removals that an operator decides about: those in quarantine, and those that were rejected (L3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Column, ColumnElement, TextClause, func, or_, select, text, update

from searchcrawl.rules.lifecycle import describe_evidence
from searchcrawl.store.batches.removal_table import COLUMNS, PAGE_ROWS, ROWS, RemovalCandidate
from searchcrawl.store.documents.document_events import LET_GO, TAKEN_BACK
from searchcrawl.store.documents.presence import IS_REMOVING, may_be_there
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.run_schema import runs
from searchcrawl.store.schema import documents, sources, urls
from searchcrawl.store.statements import split
from searchcrawl.store.states import DocumentState

# The literal lets the planner use the partial index.
_IS_QUARANTINED: Final = text(f"documents.state = {DocumentState.QUARANTINED}")


class HeldRemoval(NamedTuple):
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


def list_waiting(transaction: Transaction, source_id: int, *, after: int) -> list[HeldRemoval]:
    """The removals in quarantine by rising row id, a page of them."""
    return _list(transaction, source_id, documents.c.quarantine_run, _IS_QUARANTINED, after=after)


def list_rejected(transaction: Transaction, source_id: int, *, after: int) -> list[HeldRemoval]:
    """The removals that were rejected and not let go since, by rising row id, a page of them."""
    return _list(transaction, source_id, documents.c.rejected_run, documents.c.rejected_run.is_not(None), after=after)


def find_times(transaction: Transaction, run_id: int) -> tuple[int, int | None]:
    """When a run started, and when it ended; None for one that goes on, or was killed."""
    row = transaction.execute(select(runs.c.started_ms, runs.c.ended_ms).where(runs.c.id == run_id)).one()
    return row.started_ms, row.ended_ms


def find_listed_run(transaction: Transaction, source_id: int) -> int | None:
    """The newest run whose removals were listed; None where none were ever."""
    found: int | None = transaction.execute(select(sources.c.listed_run).where(sources.c.id == source_id)).scalar()
    return found


def set_listed_run(transaction: Transaction, source_id: int, run_id: int) -> None:
    """Notes the newest run whose removals were listed; an earlier one changes nothing."""
    newer = or_(sources.c.listed_run.is_(None), sources.c.listed_run < run_id)
    transaction.execute(update(sources).where(sources.c.id == source_id, newer).values(listed_run=run_id))


def find_waiting(transaction: Transaction, source_id: int, choice: Choice) -> list[RemovalCandidate]:
    """The next removals in quarantine, by rising row id, a page of them."""
    chosen = choice.build_condition(documents.c.quarantine_run)
    return _find_page(transaction, _IS_QUARANTINED, documents.c.source_id == source_id, chosen)


def count_waiting(transaction: Transaction, source_id: int, run_id: int) -> int:
    """How many removals of a run are in quarantine."""
    query = select(func.count()).select_from(documents)
    query = query.where(_IS_QUARANTINED, documents.c.source_id == source_id, documents.c.quarantine_run == run_id)
    return int(transaction.execute(query).scalar_one())


def find_rejected(transaction: Transaction, source_id: int, choice: Choice) -> list[RemovalCandidate]:
    """The next rejected removals of documents that the index has or may have, by rising row id, a page of them."""
    chosen = choice.build_condition(documents.c.rejected_run)
    of_source = documents.c.source_id == source_id
    return _find_page(transaction, documents.c.rejected_run.is_not(None), of_source, chosen, may_be_there())


def find_unsent(transaction: Transaction, source_id: int, choice: Choice) -> list[int]:
    """The next documents with a rejected removal that neither the index nor a delivery has, a page of them."""
    query = (
        select(documents.c.url_id)
        .where(
            documents.c.rejected_run.is_not(None),
            documents.c.source_id == source_id,
            choice.build_condition(documents.c.rejected_run),
            ~may_be_there(),
        )
        .limit(PAGE_ROWS)
    )
    return list(transaction.execute(query).scalars())


def drop(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Lets documents go that ``find_unsent`` found; their duplicates have to be resolved afterwards."""
    for part in split(url_ids):
        transaction.execute(update(documents).where(documents.c.url_id.in_(part)).values(LET_GO.values))


def find_removed(transaction: Transaction, source_id: int, run_id: int) -> dict[int, str | None]:
    """The next removals of a run that may be taken back, a page of them: what was held against each, by row id."""
    query = (
        select(documents.c.url_id, documents.c.evidence)
        .where(documents.c.removed_run == run_id, documents.c.source_id == source_id)
        .where(or_(documents.c.indexed_version.is_(None), IS_REMOVING))
        .limit(PAGE_ROWS)
    )
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


def _find_page(transaction: Transaction, *conditions: ColumnElement[bool] | TextClause) -> list[RemovalCandidate]:
    query = select(*COLUMNS).select_from(ROWS).where(*conditions).order_by(documents.c.url_id).limit(PAGE_ROWS)
    return [RemovalCandidate._make(row) for row in transaction.execute(query)]


def _list(
    transaction: Transaction,
    source_id: int,
    run: Column[int | None],
    *conditions: ColumnElement[bool] | TextClause,
    after: int,
) -> list[HeldRemoval]:
    query = (
        select(documents.c.url_id, urls.c.url, run, documents.c.evidence, urls.c.code, urls.c.rule)
        .select_from(ROWS)
        .where(*conditions, documents.c.source_id == source_id, documents.c.url_id > after)
        .order_by(documents.c.url_id)
        .limit(PAGE_ROWS)
    )
    return [
        HeldRemoval(url_id, url, number, evidence or describe_evidence(code, rule))
        for url_id, url, number, evidence, code, rule in transaction.execute(query)
    ]
