"""The last good robots.txt of each origin, which is in force while the file cannot be fetched (RFC 9309 §2.4; X-B2)."""

from __future__ import annotations

from typing import Final

from isal import isal_zlib
from sqlalchemy import delete, select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.schema import robots_copies

#: A name in DNS is shorter; longer ones of links would not fit into an index of PostgreSQL.
_LONGEST: Final = 300


def save(transaction: Transaction, origin: str, body: bytes, fetched_ms: int) -> None:
    """Stores the answer of ``scheme://host[:port]``, compressed, in place of its earlier answer."""
    if len(origin) > _LONGEST:
        return
    transaction.execute(
        dialect_of(transaction).upsert(
            robots_copies, ["origin"], lambda new: {"body": new.body, "fetched_ms": new.fetched_ms}
        ),
        {"origin": origin, "body": isal_zlib.compress(body, 1), "fetched_ms": fetched_ms},
    )


def find(transaction: Transaction, origin: str, *, since_ms: int = 0) -> bytes | None:
    """The body that an origin answered last, at ``since_ms`` or later; None where there is none."""
    query = select(robots_copies.c.body).where(robots_copies.c.origin == origin, robots_copies.c.fetched_ms >= since_ms)
    body: bytes | None = transaction.execute(query).scalar()
    return None if body is None else isal_zlib.decompress(body)


def drop(transaction: Transaction, origin: str) -> None:
    """Drops the copy of an origin that has no robots.txt any more."""
    transaction.execute(delete(robots_copies).where(robots_copies.c.origin == origin))


def drop_before(transaction: Transaction, before_ms: int) -> None:
    """Drops the copies that were fetched before a moment."""
    transaction.execute(delete(robots_copies).where(robots_copies.c.fetched_ms < before_ms))
