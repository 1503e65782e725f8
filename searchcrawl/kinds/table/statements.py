"""The statements that read the rows of a source, and the columns of its table or query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    LargeBinary,
    Select,
    TextClause,
    and_,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    or_,
    select,
    table,
    text,
)
from sqlalchemy.types import NullType, Text

from searchcrawl.kinds.table.config import TableTable
from searchcrawl.kinds.table.connecting import SQL_ERROR, DatabaseError
from searchcrawl.kinds.table.identity import KeyValue

_MOST_SHOWN: Final = 20


class Columns(NamedTuple):
    """All columns of the rows of a source in their order, and those of the key as the database spells them."""

    names: tuple[str, ...]
    key: tuple[str, ...]
    spelled: dict[str, str]

    def find(self, name: str) -> int:
        """The place of a column that the source file names."""
        return self.names.index(self.spelled[name])

    def describe(self) -> str:
        """The names, of many the first ones, for messages."""
        return _describe(self.names)


def _describe(names: Sequence[str]) -> str:
    return f"there are {', '.join(names[:_MOST_SHOWN])}" + (", …" if len(names) > _MOST_SHOWN else "")


def load_columns(connection: Connection, rows: TableTable) -> Columns:
    """Asks the database for the columns of the table or query.

    Raises DatabaseError where it lacks one that the source file names; then the text names key and column.
    """
    statement: Select[Any] = select(literal_column("*")).select_from(_source(rows)).where(text("1 = 0"))
    with closing(connection.execute(statement)) as result:
        names = tuple(str(each[0]) for each in result.cursor.description or ()) if result.cursor is not None else ()
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise DatabaseError(SQL_ERROR, f"several columns have the name {repeated[0]}: give each a name with AS")
    spelled = dict[str, str]()
    for key, columns in rows.list_columns().items():
        for name in columns:
            spelled[name] = _find_name(names, key, name)
    return Columns(names, tuple(spelled[name] for name in rows.key or ()), spelled)


def _find_name(names: Sequence[str], key: str, name: str) -> str:
    same = [name] if name in names else [each for each in names if each.lower() == name.lower()]
    if len(same) != 1:
        raise DatabaseError(SQL_ERROR, f"table.{key}: there is no column {name} ({_describe(names)})")
    return same[0]


def select_all(rows: TableTable, names: Sequence[str]) -> Select[*tuple[Any, ...]]:
    """These columns of all rows."""
    return select(*[column(name) for name in names]).select_from(_source(rows))


def select_newest(rows: TableTable, modified: str) -> Select[Any]:
    """The newest value of a column."""
    return select(func.max(column(modified), type_=NullType())).select_from(_source(rows))


def is_changed_since(name: str, value: Any) -> ColumnElement[bool]:
    """The condition that a column is a value or more, which the database reads as one of the column's type."""
    modified: ColumnElement[Any] = column(name)
    return modified >= bindparam(None, value, type_=NullType())


def is_known(name: str) -> ColumnElement[bool]:
    """The condition that a column is no null."""
    return column(name).is_not(None)


def is_unknown(name: str) -> ColumnElement[bool]:
    """The condition that a column is a null."""
    return column(name).is_(None)


def select_rows(rows: TableTable, columns: Columns, keys: Sequence[Sequence[KeyValue]]) -> Select[*tuple[Any, ...]]:
    """All columns of the rows with one of some keys; by its collation the database may take others for the same."""
    if len(columns.key) == 1:
        condition: ColumnElement[bool] = column(columns.key[0]).in_([_bind(key[0]) for key in keys])
    else:
        condition = or_(
            *[
                and_(*[column(name) == _bind(value) for name, value in zip(columns.key, key, strict=True)])
                for key in keys
            ]
        )
    return select_all(rows, columns.names).where(condition)


def select_without_key(rows: TableTable, columns: Columns) -> Select[*tuple[Any, ...]]:
    """Rows that have no key."""
    return select_all(rows, columns.key).where(or_(*[column(name).is_(None) for name in columns.key]))


def read_clock(connection: Connection) -> Any:
    """What the clock of the database says, as its driver has it."""
    return connection.execute(select(literal_column("CURRENT_TIMESTAMP"))).scalar_one()


def _bind(value: KeyValue) -> ColumnElement[Any]:
    """A value whose type the database finds by the column; a text that is no UTF-8 is passed as its bytes (SQLite)."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return cast(bindparam(None, value.encode("utf-8", "surrogateescape"), type_=LargeBinary()), Text())
    return bindparam(None, value, type_=NullType())


def _source(rows: TableTable) -> FromClause | TextClause:
    """What stands in FROM. A query stands in brackets: what is no single query is an error of the database."""
    if rows.table is not None:
        schema, _, name = rows.table.rpartition(".")
        return table(name, schema=schema or None)
    # A colon is no parameter here; a comment ends before the bracket.
    query = (rows.query or "").replace(":", r"\:")
    return text(f"(\n{query}\n) found_rows")
