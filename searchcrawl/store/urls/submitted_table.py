"""URLs that were submitted to a source, until its run admits them: the one that is under way, or the next (H9)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select

from searchcrawl import urls as identity
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.run_schema import submitted
from searchcrawl.store.statements import split


def add(transaction: Transaction, source_id: int, url: str) -> bool:
    """Notes a URL; returns False where it is noted already."""
    statement = dialect_of(transaction).upsert(submitted, ["source_id", "key"])
    values = {"source_id": source_id, "key": identity.key(url), "url": url}
    # No count of rows: not each database gives one for an INSERT.
    return transaction.execute(statement.values(values).returning(submitted.c.key)).first() is not None


def has(transaction: Transaction, source_id: int, url: str) -> bool:
    """Whether a URL is noted, and no run has admitted it yet."""
    query = select(submitted.c.key).where(submitted.c.source_id == source_id, submitted.c.key == identity.key(url))
    return transaction.execute(query).first() is not None


def load(transaction: Transaction, source_id: int, *, most: int | None = None) -> list[str]:
    """The URLs that no run of a source has admitted yet, or the first of them."""
    query = select(submitted.c.url).where(submitted.c.source_id == source_id).order_by(submitted.c.key)
    return list(transaction.execute(query.limit(most)).scalars())


def remove(transaction: Transaction, source_id: int, found: Sequence[str]) -> None:
    """Removes URLs that were admitted, or are not to be, and no others."""
    for part in split([identity.key(url) for url in found]):
        transaction.execute(delete(submitted).where(submitted.c.source_id == source_id, submitted.c.key.in_(part)))
