"""INSERT … ON CONFLICT, which each database has in a dialect of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Table
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from searchcrawl.store.engine.database import Transaction

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert


def upsert(transaction: Transaction, table: Table) -> Insert:
    """An insertion with ``on_conflict_do_update`` and ``on_conflict_do_nothing``, for the database in use."""
    if transaction.dialect.name == "sqlite":
        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415  # 0.2 s, and seldom needed

    # Both have these methods in the same form.
    return insert(table)  # type: ignore[return-value]
