"""The counter of a source's change log (``log_table``)."""

from __future__ import annotations

from sqlalchemy import select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import sources


def draw(transaction: Transaction, source_id: int) -> int:
    """The number of the entries that this transaction writes, above those of all before."""
    statement = update(sources).where(sources.c.id == source_id).values(log_seq=sources.c.log_seq + 1)
    return int(transaction.execute(statement.returning(sources.c.log_seq)).scalar_one())


def find_last(transaction: Transaction, source_id: int) -> int:
    """The highest number that was drawn."""
    return int(transaction.execute(select(sources.c.log_seq).where(sources.c.id == source_id)).scalar() or 0)
