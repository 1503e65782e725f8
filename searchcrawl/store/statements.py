"""Parts of SQL statements that several tables need. What databases need in different forms is in ``engine/dialect.py``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import Integer, TextClause, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

T = TypeVar("T")
_PARAMETERS: Final = 500


def split(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Splits values into parts for one statement each: databases limit the number of parameters."""
    for start in range(0, len(values), _PARAMETERS):
        yield values[start : start + _PARAMETERS]


def is_one_of(column: str, values: Collection[int]) -> TextClause:
    """``column IN (values)`` with literals: databases find a partial index by the text of its condition."""
    return text(f"{column} IN ({', '.join(str(int(value)) for value in sorted(values))})")


class unindexed(FunctionElement[int]):  # in small letters, as the functions of SQL
    """``unindexed(column)``: the column, in a query that reads a table by rising id and must not use the column's index.

    SQLite keeps no statistics. It would look the rows up in the index on the keys of a source, which has
    them in no order: twenty times as slow, and sorted again for each page of a listing. There the column gets
    a plus sign, so that SQLite finds no index for it. PostgreSQL chooses well, and gets the column as it is.
    """

    name = "unindexed"
    type = Integer()
    inherit_cache = True


@compiles(unindexed)
def _compile_column(element: unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)
