"""A copy of what the store knows of one source, in which ``plan`` tries an edit, and what the edit changed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    MetaData,
    Select,
    Table,
    and_,
    false,
    func,
    insert,
    not_,
    or_,
    select,
)

from searchcrawl.codes import REFUSED
from searchcrawl.store import source_table
from searchcrawl.store.documents import segment_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.many_rows import count_rows
from searchcrawl.store.run_schema import ALL_TABLES, faulty, leases, receivers, tombstones
from searchcrawl.store.schema import (
    documents,
    host_owners,
    hosts,
    name_answers,
    name_turns,
    outlinks,
    robots_copies,
    sources,
    urls,
)
from searchcrawl.store.states import DocumentState, FetchState, Sharing

_ROWS: Final = 2_000
#: Not of one source, or only of the process that runs it, or of no concern to what is tried.
_LEFT_OUT: Final = (leases, host_owners, robots_copies, name_answers, name_turns, receivers, faulty, tombstones)
#: The rows as they were copied; in copies only.
_before = Table(
    "before_plan",
    MetaData(),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("fetch_state", Integer),
    Column("code", Integer),
    Column("indexed_version", BigInteger),
    Column("state", Integer),
)
_HAS_DIGEST: Final = documents.c.copy_digest.is_not(None)
_ROWS_OF_BOTH: Final = urls.outerjoin(_before, _before.c.id == urls.c.id).outerjoin(
    documents, documents.c.url_id == urls.c.id
)


def copy_source(database: Database, side: Database, source_id: int | None) -> None:
    """Copies everything of a source into an empty store, at one moment; nothing of one that never ran (None).

    Of sources with which it may share copies it copies the documents that may stand for others.

    The copy goes on in a new segment of the cache. Raises StoreError.
    """
    if source_id is not None:
        database.read(_copy, side=side, source_id=source_id)
    side.write(_prepare, source_id=source_id)


def _copy(transaction: Transaction, *, side: Database, source_id: int) -> None:
    queries = [(table, _select_rows(table, source_id)) for table in ALL_TABLES.sorted_tables if table not in _LEFT_OUT]
    queries += [(table, _select_shared(table, source_id)) for table in (sources, urls, documents)]
    for table, query in queries:
        result = transaction.execute(query)
        while rows := result.fetchmany(_ROWS):
            side.write(_add, table=table, values=[dict(row._mapping) for row in rows])


def _add(transaction: Transaction, *, table: Table, values: Sequence[Mapping[str, Any]]) -> None:
    transaction.execute(insert(table), values)


def _select_rows(table: Table, source_id: int) -> Select[*tuple[Any, ...]]:
    query = select(table)
    if table is sources:
        return query.where(sources.c.id == source_id)
    if "source_id" in table.c:
        return query.where(table.c.source_id == source_id)
    if table is hosts:
        return query.where(hosts.c.id.in_(select(urls.c.host_id).where(urls.c.source_id == source_id)))
    if table is outlinks:
        return query.where(outlinks.c.url_id.in_(select(urls.c.id).where(urls.c.source_id == source_id)))
    raise AssertionError(f"the table {table.name} is not copied yet")


def _select_shared(table: Table, source_id: int) -> Select[*tuple[Any, ...]]:
    """The rows of other sources that decide which documents of a source are copies of theirs."""
    others = select(sources.c.id).where(sources.c.shares_copies == int(Sharing.YES), sources.c.id != source_id)
    if table is sources:
        return select(sources).where(sources.c.id.in_(others))
    survivors = and_(
        documents.c.source_id.in_(others), documents.c.code == 200, documents.c.duplicate_of.is_(None), _HAS_DIGEST
    )
    if table is urls:
        return select(urls).join(documents, documents.c.url_id == urls.c.id).where(survivors)
    return select(documents).where(survivors)


def _prepare(transaction: Transaction, *, source_id: int | None) -> None:
    if source_id is not None:
        segment_table.begin(transaction, source_id)
        # Fences begin anew in it.
        source_table.note(transaction, source_id, closed=None)
    _before.create(transaction)
    columns = urls.c.id, urls.c.fetch_state, urls.c.code, documents.c.indexed_version, documents.c.state
    rows = select(*columns).select_from(urls.outerjoin(documents, documents.c.url_id == urls.c.id))
    transaction.execute(insert(_before).from_select([column.name for column in columns], rows))


class Changed(NamedTuple):
    """A row that an edit changes; ``evidence`` is what is held against its document."""

    url: str
    code: int
    rule: str | None
    evidence: str | None


def _is_there(table: Table) -> ColumnElement[bool]:
    held = int(DocumentState.QUARANTINED)
    return func.coalesce(and_(table.c.indexed_version.is_not(None), table.c.state != held), false())


_SETTLED: Final = int(FetchState.SETTLED)
#: To be visited, and unknown or refused before.
_IS_TO_ENTER: Final = and_(
    urls.c.fetch_state != _SETTLED,
    or_(
        _before.c.id.is_(None),
        and_(_before.c.code.in_(sorted(REFUSED)), _before.c.fetch_state == _SETTLED),
    ),
)
_CONDITIONS: Final[Mapping[str, ColumnElement[bool]]] = {
    "enter": or_(and_(_is_there(documents), not_(_is_there(_before))), _IS_TO_ENTER),
    "leave": and_(_is_there(_before), not_(_is_there(documents))),
}


def list_changed(transaction: Transaction, action: str) -> Iterator[Changed]:
    """The rows that ``enter`` or ``leave`` in a copy where an edit was tried, by rising id."""
    columns = urls.c.url, urls.c.code, urls.c.rule, documents.c.evidence
    query = select(*columns).select_from(_ROWS_OF_BOTH).where(_CONDITIONS[action]).order_by(urls.c.id)
    return (Changed._make(row) for row in transaction.execute(query))


def count_to_enter(transaction: Transaction) -> int:
    """How many rows are to be visited that were unknown or refused before."""
    return count_rows(transaction, _ROWS_OF_BOTH, _IS_TO_ENTER)


def count_held(transaction: Transaction) -> int:
    """How many removals wait in quarantine that did not before."""
    held = int(DocumentState.QUARANTINED)
    return count_rows(transaction, _ROWS_OF_BOTH, documents.c.state == held, func.coalesce(_before.c.state, 0) != held)
