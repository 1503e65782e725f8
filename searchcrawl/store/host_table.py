"""The hosts, shared by all sources and processes: politeness is kept here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import select, update

from searchcrawl.store.database import Transaction
from searchcrawl.store.schema import hosts
from searchcrawl.store.upsert import upsert

_CHUNK: Final = 500
#: A name in DNS is shorter; what links claim beyond it would not fit into an index of PostgreSQL.
_LONGEST: Final = 300


def ids(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Ids of hosts by name (``host:port``); new ones are added.

    Names too long for any host share a row with those that begin alike.
    """
    kept = {name: name[:_LONGEST] for name in names}
    wanted = sorted(set(kept.values()))
    found = _known(transaction, wanted)
    # Only those: each conflict would cost PostgreSQL an id. Rising, so that no two processes wait for each other.
    missing = [name for name in wanted if name not in found]
    if missing:
        statement = upsert(transaction, hosts).on_conflict_do_nothing(index_elements=["name"])
        transaction.execute(statement, [{"name": name} for name in missing])
        found |= _known(transaction, missing)
    return {name: found[short] for name, short in kept.items()}


def _known(transaction: Transaction, names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(names), _CHUNK):
        query = select(hosts.c.name, hosts.c.id).where(hosts.c.name.in_(names[start : start + _CHUNK]))
        found.update({row.name: row.id for row in transaction.execute(query)})
    return found


def names(transaction: Transaction, host_ids: Sequence[int]) -> dict[int, str]:
    """Names of hosts by id."""
    query = select(hosts.c.id, hosts.c.name).where(hosts.c.id.in_(host_ids))
    return {row.id: row.name for row in transaction.execute(query)}


def book(transaction: Transaction, host_id: int, *, now_ms: int, requests: int, delay_ms: int) -> int:
    """Books ``requests`` requests to a host, ``delay_ms`` apart; the moment of the first (C2)."""
    # Locked: another process must not book the same moment. Who books for several hosts does so by rising id.
    query = select(hosts.c.next_allowed_ms).where(hosts.c.id == host_id).with_for_update()
    allowed: int = transaction.execute(query).scalar_one()
    # A clock that was set back must not silence a host: nobody books further ahead than this.
    first = min(max(now_ms, allowed), now_ms + 2 * requests * delay_ms + 3_600_000)
    transaction.execute(update(hosts).where(hosts.c.id == host_id).values(next_allowed_ms=first + requests * delay_ms))
    return first


def answers_any(transaction: Transaction, name: str) -> bool:
    """Whether a host is known to answer any path with a page although it has pages of their own."""
    query = select(hosts.c.answers_any).where(hosts.c.name == name[:_LONGEST])
    return bool(transaction.execute(query).scalar())


def note_answers_any(transaction: Transaction, names: Sequence[str]) -> None:
    """Notes that of hosts."""
    for host_id in sorted(ids(transaction, names).values()):
        transaction.execute(update(hosts).where(hosts.c.id == host_id).values(answers_any=1))


def allowed_ms(transaction: Transaction, name: str) -> int | None:
    """The moment from which ``host:port`` may be asked; None for one that no process asked yet."""
    found: int | None = transaction.execute(select(hosts.c.next_allowed_ms).where(hosts.c.name == name)).scalar()
    return found
