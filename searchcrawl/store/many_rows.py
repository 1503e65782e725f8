"""Writes many rows with one statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.sql.dml import UpdateBase

from searchcrawl.store.engine.database import Transaction

_Row = Mapping[str, Any]


def write_rows(transaction: Transaction, statement: UpdateBase, rows: Sequence[_Row]) -> None:
    """Runs a statement that returns nothing once for each of ``rows``, which all have the same names, two or more.

    The driver gets the values as they are: to look at each of them takes SQLAlchemy longer than SQLite takes to write
    it. ``statement`` is one that is kept, because it is compiled once.
    """
    if rows:
        sql, arrange = _compile(statement, transaction.dialect, tuple(rows[0]))
        transaction.exec_driver_sql(sql, [arrange(row) for row in rows])


@lru_cache(maxsize=64)
def _compile(statement: UpdateBase, dialect: Dialect, names: tuple[str, ...]) -> tuple[str, Callable[[_Row], Any]]:
    """The text of a statement, and what brings the values of a row into its order, with the constants between them."""
    compiled: Any = statement.compile(dialect=dialect, column_keys=list(names))
    constants = {name: value for name, value in compiled.params.items() if name not in names}
    select = itemgetter(*compiled.positiontup)
    return compiled.string, lambda row: select({**constants, **row})
