"""A column that has one of many values, in the form that suits the database in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy import ARRAY, Column, ColumnElement, bindparam, func, select

from searchcrawl.store.engine.database import Transaction

T = TypeVar("T")


def among(transaction: Transaction, column: Column[T], values: Sequence[T]) -> ColumnElement[bool]:
    """``column IN (values)``.

    PostgreSQL gets the values as one array and a join: a list of parameters is compared one by one
    with each row, for as long as a new table has no statistics that would lead to its index.
    """
    if transaction.dialect.name == "sqlite":
        return column.in_(values)
    given = bindparam(None, list(values), type_=ARRAY(column.type))
    return column.in_(select(func.unnest(given)))
