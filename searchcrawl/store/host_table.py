"""The hosts, shared by all sources and processes: politeness is kept here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select, update
from sqlalchemy.dialects.sqlite import insert

from searchcrawl.store.database import Transaction
from searchcrawl.store.schema import hosts


def ids(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Ids of hosts by name (``host:port``); new ones are added."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    statement = insert(hosts).on_conflict_do_nothing(index_elements=["name"])
    transaction.execute(statement, [{"name": name} for name in wanted])
    found: dict[str, int] = {}
    for start in range(0, len(wanted), 500):
        query = select(hosts.c.name, hosts.c.id).where(hosts.c.name.in_(wanted[start : start + 500]))
        found.update({row.name: row.id for row in transaction.execute(query)})
    return found


def names(transaction: Transaction, host_ids: Sequence[int]) -> dict[int, str]:
    """Names of hosts by id."""
    query = select(hosts.c.id, hosts.c.name).where(hosts.c.id.in_(host_ids))
    return {row.id: row.name for row in transaction.execute(query)}


def book(transaction: Transaction, host_id: int, *, now_ms: int, requests: int, delay_ms: int) -> int:
    """Books ``requests`` requests to a host, ``delay_ms`` apart; the moment of the first (C2)."""
    allowed: int = transaction.execute(select(hosts.c.next_allowed_ms).where(hosts.c.id == host_id)).scalar_one()
    # A clock that was set back must not silence a host: nobody books further ahead than this.
    first = min(max(now_ms, allowed), now_ms + 2 * requests * delay_ms + 3_600_000)
    transaction.execute(update(hosts).where(hosts.c.id == host_id).values(next_allowed_ms=first + requests * delay_ms))
    return first
