"""Parts of SQL statements that each database needs in a form of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Integer,
    Table,
    TextClause,
    bindparam,
    func,
    select,
    text,
)
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert

T = TypeVar("T")
_PARAMETERS: Final = 500


def split(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Splits values into parts for one statement each: databases limit the number of parameters."""
    for start in range(0, len(values), _PARAMETERS):
        yield values[start : start + _PARAMETERS]


def is_one_of(column: str, values: Collection[int]) -> TextClause:
    """``column IN (values)`` with literals: databases find a partial index by the text of its condition."""
    return text(f"{column} IN ({', '.join(str(int(value)) for value in sorted(values))})")


def among(transaction: Connection, column: Column[T], values: Sequence[T]) -> ColumnElement[bool]:
    """``column IN (values)`` with parameters.

    PostgreSQL gets the values as one array and a join. A list of parameters would be compared one by one
    with each row, for as long as a new table has no statistics that lead to its index.
    """
    if transaction.dialect.name == "sqlite":
        return column.in_(values)
    array = bindparam(None, list(values), type_=ARRAY(column.type))
    return column.in_(select(func.unnest(array)))


def upsert(transaction: Connection, table: Table) -> Insert:
    """An INSERT with ``on_conflict_do_update`` and ``on_conflict_do_nothing``."""
    if transaction.dialect.name == "sqlite":
        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415  # 0.2 s, and seldom needed

    # Both have these methods in the same form.
    return insert(table)  # type: ignore[return-value]


class scanned(FunctionElement[int]):  # in small letters, as the functions of SQL
    """``scanned(column)``: the column, in a query that reads a table by rising id.

    SQLite keeps no statistics. It would look the rows up in the index on the keys of a source, which has
    them in no order: twenty times as slow, and sorted again for each page of a listing. PostgreSQL finds the
    right index, unless the column is hidden from it.
    """

    name = "scanned"
    type = Integer()
    inherit_cache = True


@compiles(scanned)
def _compile_column(element: scanned, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(scanned, "sqlite")
def _compile_hidden_column(element: scanned, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"
