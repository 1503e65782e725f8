"""Reads and writes many rows: page after page, a part of the ids at a time, or each with values of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Delete,
    Dialect,
    FromClause,
    Row,
    Select,
    Table,
    TextClause,
    Update,
    bindparam,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.sql.dml import UpdateBase

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.statements import split, unindexed

_Row = Mapping[str, Any]
_Query = Select[*tuple[Any, ...]]


def read_page(
    transaction: Transaction,
    query: _Query,
    source_id: int,
    *,
    by: Column[int],
    after: int,
    limit: int,
    is_indexed: bool = False,
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The next rows of a source by rising ``by``, the id of the rows of its table, which are read in that order.

    ``is_indexed``: there is an index for the query, with the source and the id.
    """
    source: Any = by.table.c.source_id
    of_source = (source if is_indexed else unindexed(source)) == source_id
    return transaction.execute(query.where(of_source, by > after).order_by(by).limit(limit)).all()


def select_fields(row: Any, *tables: FromClause, **others: ColumnElement[Any]) -> _Query:
    """The query for the fields of ``row``, a NamedTuple: columns of their names in the first table with one, or ``others``."""
    found = [others[name] if name in others else next(t.c[name] for t in tables if name in t.c) for name in row._fields]
    return select(*(column.label(name) for column, name in zip(found, row._fields, strict=True)))


def count_rows(transaction: Transaction, table: FromClause, *conditions: ColumnElement[bool] | TextClause) -> int:
    """How many rows of a table, or of a join, fulfil all conditions."""
    return int(transaction.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())


def has_row(transaction: Transaction, *conditions: ColumnElement[bool] | TextClause) -> bool:
    """Whether any row of the table that the conditions are about fulfils all of them."""
    return transaction.execute(select(literal(1)).where(*conditions).limit(1)).scalar() is not None


def read_parts(
    transaction: Transaction, query: _Query, column: Column[Any], values: Collection[Any], *, are_keys: bool = False
) -> Iterator[Row[*tuple[Any, ...]]]:
    """The rows of a query with one of ``values`` in ``column``, a part of them at a time.

    ``are_keys``: they are no ids of rows, and a planner may not know yet that there is an index for them (``is_among``).
    """
    for part in split(list(values)):
        here = dialect_of(transaction).is_among(column, part) if are_keys else column.in_(part)
        yield from transaction.execute(query.where(here))


def find_among(
    transaction: Transaction, column: Column[Any], values: Collection[Any], *conditions: ColumnElement[bool]
) -> list[Any]:
    """Those of ``values`` that rows which fulfil all conditions have in ``column``."""
    return [row[0] for row in read_parts(transaction, select(column).where(*conditions), column, values)]


def write_parts(
    transaction: Transaction,
    statement: Update | Delete,
    column: ColumnElement[Any],
    values: Collection[Any],
    parameters: _Row | None = None,
) -> None:
    """Updates or deletes the rows with one of ``values`` in ``column``."""
    for part in split(list(values)):
        transaction.execute(statement.where(column.in_(part)), parameters)


def set_rows(
    transaction: Transaction, key: Column[int], rows: Mapping[int, _Row], *conditions: ColumnElement[bool]
) -> None:
    """Sets columns of rows by ``key``; all of them have values for the same columns."""
    if rows:
        columns = next(iter(rows.values()))
        statement = update(key.table).where(key == bindparam("row_id"), *conditions)
        transaction.execute(
            statement.values({name: bindparam(f"new_{name}") for name in columns}),
            [
                {"row_id": row_id, **{f"new_{name}": value for name, value in values.items()}}
                for row_id, values in rows.items()
            ],
        )


def write_rows(transaction: Transaction, statement: UpdateBase, rows: Sequence[_Row]) -> None:
    """Runs a statement that returns nothing once for each of ``rows``, which all have the same names.

    The driver gets the values as they are: to look at each of them takes SQLAlchemy longer than SQLite takes to write
    it. ``statement`` is one that is kept, because it is compiled once, and has two parameters or more, constants included.
    """
    if rows:
        sql, arrange = _compile(statement, transaction.dialect, tuple(rows[0]))
        options = statement.get_execution_options()
        transaction.exec_driver_sql(sql, [arrange(row) for row in rows], execution_options=options)


def upsert_rows(
    transaction: Transaction, table: Table, key: tuple[str, ...], rows: Sequence[_Row], changes: tuple[str, ...] = ()
) -> None:
    """Adds rows, as ``write_rows``; where one with the same ``key`` is there, its columns ``changes`` get the new values."""
    write_rows(transaction, _build_upsert(dialect_of(transaction), table, key, changes), rows)


# Kept: building it takes longer than writing a row with it.
@cache
def _build_upsert(dialect: Any, table: Table, key: tuple[str, ...], changes: tuple[str, ...]) -> UpdateBase:
    found: UpdateBase = dialect.upsert(
        table, key, (lambda new: {name: new[name] for name in changes}) if changes else None
    )
    return found


@lru_cache(maxsize=64)
def _compile(statement: UpdateBase, dialect: Dialect, names: tuple[str, ...]) -> tuple[str, Callable[[_Row], Any]]:
    """The text of a statement, and what brings the values of a row into its order, with the constants between them."""
    compiled: Any = statement.compile(dialect=dialect, column_keys=list(names))
    constants = {name: value for name, value in compiled.params.items() if name not in names}
    select = itemgetter(*compiled.positiontup)
    return compiled.string, lambda row: select({**constants, **row})
