"""What is noted of a source in its own row; what each column says is told where it is declared (``schema.sources``)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import sources


def find(transaction: Transaction, source_id: int, column: str) -> Any:
    """The value of a column; None where it is null."""
    return transaction.execute(select(sources.c[column]).where(sources.c.id == source_id)).scalar()


def note(transaction: Transaction, /, source_id: int, **values: object) -> None:
    """Writes columns."""
    transaction.execute(update(sources).where(sources.c.id == source_id).values(values))
