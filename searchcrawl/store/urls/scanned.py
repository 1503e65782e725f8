"""A column that SQLite does not look rows up by."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class scanned(FunctionElement[int]):  # in small letters, as the functions of SQL
    """``scanned(column)``: the column, for a query that goes through a table by rising id.

    SQLite, which keeps no statistics, would take the index on the keys of a source, by which the rows
    come in no order at all: twenty times as long, and sorted again for each page of a listing.
    PostgreSQL knows better by itself, unless the column is hidden from it.
    """

    name = "scanned"
    type = Integer()
    inherit_cache = True


@compiles(scanned)
def _as_it_is(element: scanned, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(scanned, "sqlite")
def _without_index(element: scanned, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"
