"""The hosts, shared by all sources and processes: politeness is kept here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import select, text, update

from searchcrawl.rules import freshness
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import hosts
from searchcrawl.store.upsert import upsert

_CHUNK: Final = 500
#: A name in DNS is shorter; what links claim beyond it would not fit into an index of PostgreSQL.
_LONGEST: Final = 300
#: Nobody is kept away from a host for longer, whatever it asks for: then one request asks it again.
CLOSED_MOST_MS: Final = 3_600_000


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


class Turn(NamedTuple):
    """A moment at which a host may be asked, and from when on it may be asked again (ms since 1970)."""

    first_ms: int
    next_ms: int


def book(
    transaction: Transaction,
    host_id: int,
    *,
    now_ms: int,
    delay_ms: int,
    not_before_ms: int = 0,
    unused: Turn | None = None,
) -> Turn:
    """Books one request to a host, ``delay_ms`` before the next (C2).

    An ``unused`` turn of the caller's is given back where nobody has booked since.
    """
    # Locked: another process must not book the same moment. Who books for several hosts does so by rising id.
    query = select(hosts.c.next_allowed_ms, hosts.c.closed_until_ms).where(hosts.c.id == host_id).with_for_update()
    row = transaction.execute(query).one()
    allowed = row.next_allowed_ms
    if unused is not None and unused.next_ms == allowed:
        allowed = unused.first_ms
    wanted = max(now_ms, not_before_ms, allowed, row.closed_until_ms)
    # A clock that was set back must not silence a host: nobody books further ahead than this.
    first = min(wanted, now_ms + 2 * delay_ms + CLOSED_MOST_MS)
    turn = Turn(first, first + delay_ms)
    transaction.execute(update(hosts).where(hosts.c.id == host_id).values(next_allowed_ms=turn.next_ms))
    return turn


class Closed(NamedTuple):
    """A host that nobody is to ask before a moment, and the code that is the reason."""

    name: str
    until_ms: int
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What a process has met at a host since it last told: failures after the last answer, and pauses asked for.

    The pause after a failure doubles from ``first_seconds`` up to ``limit_seconds``; failures before ``since_ms``
    are forgotten.
    """

    failed: int = 0
    answered: bool = False
    first_seconds: float = 0.0
    limit_seconds: float = 0.0
    until_ms: int = 0
    code: int = 0
    since_ms: int = 0


def tell(transaction: Transaction, host_id: int, weather: Weather, *, now_ms: int) -> int:
    """Writes what was met, added to what other processes met; the moment until which the host is left alone."""
    row = transaction.execute(select(hosts).where(hosts.c.id == host_id).with_for_update()).one()
    forgotten = weather.answered or not weather.since_ms <= row.failed_ms <= now_ms
    failures = (0 if forgotten else row.failures) + weather.failed
    until = weather.until_ms
    values: dict[str, int] = {"failures": failures}
    if weather.failed:
        pause = freshness.host_pause_seconds(
            failures, first_seconds=weather.first_seconds, limit_seconds=weather.limit_seconds
        )
        until = max(until, now_ms + round(pause * 1000))
        values["failed_ms"] = now_ms
    until = min(until, now_ms + CLOSED_MOST_MS)
    if until > _sane(row.closed_until_ms, now_ms):
        values |= {"closed_until_ms": until, "closed_code": weather.code}
    transaction.execute(update(hosts).where(hosts.c.id == host_id).values(values))
    return max(until, _sane(row.closed_until_ms, now_ms))


def closed(transaction: Transaction, now_ms: int) -> list[Closed]:
    """The hosts that are left alone just now, by whatever process."""
    query = select(hosts.c.name, hosts.c.closed_until_ms, hosts.c.closed_code).where(
        text("closed_until_ms > 0"), hosts.c.closed_until_ms.between(now_ms + 1, now_ms + CLOSED_MOST_MS)
    )
    return [Closed(*row) for row in transaction.execute(query)]


def _sane(until_ms: int, now_ms: int) -> int:
    """0 for a moment that only a clock that was set back can explain."""
    return until_ms if until_ms <= now_ms + CLOSED_MOST_MS else 0


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
    query = select(hosts.c.next_allowed_ms, hosts.c.closed_until_ms).where(hosts.c.name == name)
    found = transaction.execute(query).one_or_none()
    return None if found is None else max(found)
