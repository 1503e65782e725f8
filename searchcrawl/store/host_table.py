"""The hosts, shared by all sources and processes: their failures, pauses and robots.txt. Who may ask them: ``host_owners``.

Hosts that no URL of any source names any more, and that nothing used for long, are deleted. Other processes may add a URL of
such a host meanwhile. Whoever is about to use the id of a host notes the use (``find_or_add``), and only rows are deleted of
which none was noted for days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from isal import isal_zlib
from sqlalchemy import ColumnElement, Row, and_, bindparam, delete, func, select, text, update

from searchcrawl import clock
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import read_parts, upsert_rows, write_parts, write_rows
from searchcrawl.store.schema import host_owners, hosts, robots_copies, urls
from searchcrawl.store.statements import split

#: A name in DNS is shorter; longer ones of links would not fit into an index of PostgreSQL.
_MAX_NAME_CHARACTERS: Final = 300
#: The use of a host is noted once in this time, so that it costs next to nothing.
_NOTED_MS: Final = 6 * 3_600_000
#: The longest block, whatever the host asks for: after it one request tries the host again.
MAX_BLOCK_MS: Final = 3_600_000
#: So far the clocks of two machines may be apart.
_SKEW_MS: Final = 5_000


def cut_name(name: str) -> str:
    """``host:port`` as it is stored."""
    return name[:_MAX_NAME_CHARACTERS]


def find_or_add(transaction: Transaction, names: Iterable[str]) -> dict[str, int]:
    """The ids of hosts by name (``host:port``); new hosts are added, and the use of all is noted.

    Names too long for any host share one row if they begin alike. Until the transaction ends the ids stay valid: a row
    that may be deleted (``purge_unused``) is locked, and its use is noted. So no ids may be kept for later transactions.
    """
    stored = {name: cut_name(name) for name in names}
    wanted, now_ms = sorted(set(stored.values())), clock.now_ms()
    rows = _find(transaction, wanted)
    late = {host_id for host_id, used_ms in rows.values() if not is_recent(used_ms, now_ms)}
    gone = late - note_used(transaction, sorted(late), now_ms)
    found = {name: host_id for name, (host_id, _) in rows.items() if host_id not in gone}
    # Only missing ones are added: each conflict would cost PostgreSQL an id. They are sorted, so that no two processes
    # wait for each other.
    missing = [name for name in wanted if name not in found]
    if missing:
        upsert_rows(transaction, hosts, ("name",), [{"name": name, "used_ms": now_ms} for name in missing])
        found |= {name: host_id for name, (host_id, _) in _find(transaction, missing).items()}
    return {name: found[short] for name, short in stored.items()}


def note_used(transaction: Transaction, host_ids: Sequence[int], now_ms: int, *, waits: bool = True) -> set[int]:
    """Notes that hosts are in use; returns those that are still there.

    Rows that another process has locked are waited for, or left out.
    """
    kept: set[int] = set()
    for part in split(host_ids):
        # By rising id, as whoever locks several.
        rows = select(hosts.c.id).where(hosts.c.id.in_(part)).order_by(hosts.c.id)
        locked = list(transaction.execute(rows.with_for_update(skip_locked=not waits)).scalars())
        transaction.execute(update(hosts).where(hosts.c.id.in_(locked)).values(used_ms=now_ms))
        kept.update(locked)
    return kept


def is_recent(used_ms: int, now_ms: int) -> bool:
    return now_ms - _NOTED_MS < used_ms <= now_ms


def _find(transaction: Transaction, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Id and time of the last use of hosts by name."""
    query = select(hosts.c.name, hosts.c.id, hosts.c.used_ms)
    return {row.name: (row.id, row.used_ms) for row in read_parts(transaction, query, hosts.c.name, names)}


def find_names(transaction: Transaction, host_ids: Sequence[int]) -> dict[int, str]:
    """The names of hosts by id."""
    query = select(hosts.c.id, hosts.c.name).where(hosts.c.id.in_(host_ids))
    return {row.id: row.name for row in transaction.execute(query)}


def bring_near(moment_ms: int, noted_ms: int, now_ms: int) -> int:
    """A stored moment, no longer from now than it was from when it was noted, by a clock that was ahead perhaps."""
    return moment_ms - max(noted_ms - now_ms, 0)


def find_pause_end(row: Row[Any], now_ms: int) -> int:
    """The end of the pause that is in force; 0 where there is none. See ``_pause_in_force``."""
    is_ours: bool = row.closed_ms <= now_ms + _SKEW_MS and row.closed_until_ms <= now_ms + MAX_BLOCK_MS
    return row.closed_until_ms if is_ours else 0


def _pause_in_force(now_ms: int) -> ColumnElement[bool]:
    """Which hosts have a pause now. One that was set by a clock that was ahead is over: nobody knows since when."""
    until = hosts.c.closed_until_ms.between(now_ms + 1, now_ms + MAX_BLOCK_MS)
    return and_(until, hosts.c.closed_ms <= now_ms + _SKEW_MS)


class HostPause(NamedTuple):
    """A host that gets no request from any process until a moment, and the code that is the reason.

    The pause may be a short back-off; a process blocks the host for its run only if the pause is long.
    """

    name: str
    until_ms: int
    code: int


@dataclass(slots=True)
class HostReport:
    """The host failure report: what a process has seen at a host since its last report."""

    #: failures after the last answer
    failures: int = 0
    #: whether there was an answer that is no failure
    answered: bool = False
    #: the pause in seconds, after a number of failures in a row
    pause_seconds: Callable[[int], float] = lambda failures: 0.0
    #: the end of a pause that the host asked for (0: none)
    until_ms: int = 0
    #: why the host is to be paused
    code: int = 0


def add_reports(
    transaction: Transaction, reports: Mapping[int, HostReport], *, since_ms: int, now_ms: int
) -> dict[int, int]:
    """Adds reports, by id of the host, to those of other processes; returns until when no process may ask each host.

    Failures that were reported before ``since_ms`` do not count any more.
    """
    # By rising id, so that no two processes wait for each other.
    query = select(hosts).order_by(hosts.c.id).with_for_update()
    ends: dict[int, int] = {}
    noted: list[dict[str, int]] = []
    for row in read_parts(transaction, query, hosts.c.id, sorted(reports)):
        report, before = reports[row.id], find_pause_end(row, now_ms)
        over = report.answered or not since_ms <= row.failed_ms <= now_ms
        failures = (0 if over else row.failures) + report.failures
        until = report.until_ms
        if report.failures:
            until = max(until, now_ms + round(report.pause_seconds(failures) * 1000))
        ends[row.id] = until = max(min(until, now_ms + MAX_BLOCK_MS), before)
        values = {"failures": failures, "failed_ms": now_ms if report.failures else row.failed_ms}
        values |= {name: getattr(row, name) for name in _PAUSE}
        if until > before:
            values |= {"closed_until_ms": until, "closed_code": report.code, "closed_ms": now_ms}
        noted.append({"row_id": row.id, **{f"new_{name}": value for name, value in values.items()}})
    write_rows(transaction, _NOTE_REPORT, noted)
    return ends


_PAUSE: Final = ("closed_until_ms", "closed_code", "closed_ms")
_NOTE_REPORT: Final = (
    update(hosts)
    .where(hosts.c.id == bindparam("row_id"))
    .values({name: bindparam(f"new_{name}") for name in ("failures", "failed_ms", *_PAUSE)})
)


def find_blocks(
    transaction: Transaction, now_ms: int, *, names: Sequence[str] | None = None, most: int | None = None
) -> list[HostPause]:
    """The hosts that get no request from any process now, for a short back-off or a longer block.

    With ``names`` (``host:port``) only these; with ``most`` only so many of them, any.
    """
    query = select(hosts.c.name, hosts.c.closed_until_ms, hosts.c.closed_code).where(_pause_in_force(now_ms))
    if names is None:
        rows = transaction.execute(query.where(text("closed_until_ms > 0")).limit(most)).all()
        return [HostPause(*row) for row in rows]
    stored = {cut_name(name): name for name in names}
    found = read_parts(transaction, query, hosts.c.name, sorted(stored))
    return [HostPause(stored[row.name], row.closed_until_ms, row.closed_code) for row in found]


def find_block(transaction: Transaction, name: str, now_ms: int) -> HostPause | None:
    """The pause in which ``host:port`` gets no request from any process now; None where there is none."""
    return next(iter(find_blocks(transaction, now_ms, names=[name])), None)


def answers_any(transaction: Transaction, name: str) -> bool:
    """Whether a host is known to answer any path with a page, even a path that cannot exist (L9)."""
    query = select(hosts.c.answers_any).where(hosts.c.name == cut_name(name))
    return bool(transaction.execute(query).scalar())


def note_answers_any(transaction: Transaction, names: Sequence[str]) -> None:
    """Notes that these hosts answer any path with a page."""
    for host_id in sorted(find_or_add(transaction, names).values()):
        transaction.execute(update(hosts).where(hosts.c.id == host_id).values(answers_any=1))


def save_robots(transaction: Transaction, bodies: Mapping[str, bytes], fetched_ms: int) -> None:
    """Stores the robots.txt of each ``scheme://host[:port]``, compressed, in place of the one before.

    It is in force while the file cannot be fetched (RFC 9309 §2.4; X-B2).
    """
    rows = [
        {"origin": origin, "body": isal_zlib.compress(body, 1), "fetched_ms": fetched_ms}
        for origin, body in sorted(bodies.items())
        if len(origin) <= _MAX_NAME_CHARACTERS
    ]
    if rows:
        upsert_rows(transaction, robots_copies, ("origin",), rows, ("body", "fetched_ms"))


def find_robots(transaction: Transaction, origin: str, *, since_ms: int = 0) -> bytes | None:
    """The body that an origin answered last, at ``since_ms`` or later; None where there is none."""
    query = select(robots_copies.c.body).where(robots_copies.c.origin == origin, robots_copies.c.fetched_ms >= since_ms)
    body: bytes | None = transaction.execute(query).scalar()
    return None if body is None else isal_zlib.decompress(body)


def drop_robots(transaction: Transaction, origins: Iterable[str]) -> None:
    """Drops the copies of origins that have no robots.txt any more."""
    query = select(robots_copies.c.origin)
    gone = [row.origin for row in read_parts(transaction, query, robots_copies.c.origin, sorted(origins))]
    write_parts(transaction, delete(robots_copies), robots_copies.c.origin, gone)


def drop_robots_before(transaction: Transaction, before_ms: int) -> None:
    """Drops the copies that were fetched before a moment."""
    transaction.execute(delete(robots_copies).where(robots_copies.c.fetched_ms < before_ms))


#: Ids whose rows are read in one transaction.
PAGE_ROWS: Final = 5000


def find_last_host(transaction: Transaction) -> int:
    """The highest id of a host."""
    return transaction.execute(select(func.max(hosts.c.id))).scalar() or 0


def find_unused(transaction: Transaction, before_ms: int, *, after: int) -> list[int]:
    """Hosts of which no use was noted since ``before_ms``, among those with the PAGE_ROWS ids above ``after``."""
    here = hosts.c.id > after, hosts.c.id <= after + PAGE_ROWS
    return list(transaction.execute(select(hosts.c.id).where(*here, _is_unused(before_ms))).scalars())


def find_named(transaction: Transaction, *, after: int) -> set[int]:
    """The hosts of the URLs of all sources with the PAGE_ROWS ids above ``after``."""
    query = select(urls.c.host_id).where(urls.c.id > after, urls.c.id <= after + PAGE_ROWS).distinct()
    return set(transaction.execute(query).scalars())


def purge_unused(transaction: Transaction, host_ids: Sequence[int], *, before_ms: int, now_ms: int) -> int:
    """Deletes those of the hosts of which still no use was noted since ``before_ms``; returns how many.

    Where a use was never noted, the time begins now.
    """
    count = 0
    for part in split(host_ids):
        unused = select(hosts.c.id, hosts.c.used_ms).where(hosts.c.id.in_(part), _is_unused(before_ms))
        # Who has locked one is using it.
        rows = transaction.execute(unused.order_by(hosts.c.id).with_for_update(skip_locked=True)).all()
        gone = [host_id for host_id, used_ms in rows if used_ms]
        unknown = [host_id for host_id, used_ms in rows if not used_ms]
        transaction.execute(update(hosts).where(hosts.c.id.in_(unknown)).values(used_ms=now_ms))
        transaction.execute(delete(hosts).where(hosts.c.id.in_(gone)))
        count += len(gone)
    return count


def _is_unused(before_ms: int) -> ColumnElement[bool]:
    return and_(
        hosts.c.used_ms < before_ms,
        hosts.c.owner_id.not_in(select(host_owners.c.id)),
        hosts.c.next_allowed_ms < before_ms,
        hosts.c.closed_until_ms < before_ms,
        # SQLite would give its id to the next host, and a process that still knows its name would take that for it.
        hosts.c.id < select(func.max(hosts.c.id)).scalar_subquery(),
    )
