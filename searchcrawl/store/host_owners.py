"""Which process may ask a host: each host belongs to one at a time, which keeps its pace in memory (C2, X-S3).

A process registers as an owner, and takes hosts for its own. Its registration is a lease: it is renewed with the lease of
the run, and who finds it expired marks it as ended before taking one of its hosts. A process that comes back later learns
of that by its next renewal, and has lost all of its hosts. All moments are those of the clock that the processes share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, and_, bindparam, case, delete, insert, select, text, update

from searchcrawl import clock
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.host_table import bring_near, find_pause_end, is_recent
from searchcrawl.store.many_rows import has_row, read_parts, write_parts, write_rows
from searchcrawl.store.runs import holder, lease
from searchcrawl.store.schema import host_owners, hosts

#: ``hosts.wanted_id`` of a host that was handed over, and whose new owner does not know of it yet.
HANDED: Final = -1
#: So long the end of a lease is kept of an owner that has died.
_KEPT_MS: Final = 86_400_000
#: So long an owner on another machine may go on asking after its lease was found expired: until its next renewal.
_UNSEEN_MS: Final = round(lease.BEAT_SECONDS * 1000)


def register(transaction: Transaction) -> int:
    """Registers this process as an owner; returns its number, which no other owner ever gets."""
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    old = transaction.execute(select(host_owners).where(host_owners.c.renewed_ms < now_ms - _KEPT_MS)).all()
    # A living one seems old where the clock was set.
    ended = sorted(row.id for row in old if not is_living(transaction, row))
    write_parts(transaction, delete(host_owners), host_owners.c.id, ended)
    values = {"holder": holder.describe_own(), "renewed_ms": now_ms, "beat_ms": clock.boot_ms()}
    owner_id: int = transaction.execute(insert(host_owners).values(values).returning(host_owners.c.id)).scalar_one()
    return owner_id


def renew(transaction: Transaction, owner_id: int) -> bool:
    """Renews the lease of an owner; False where another process found it expired: then it owns no host any more."""
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    here = host_owners.c.id == owner_id, host_owners.c.ended_ms.is_(None)
    values = {"renewed_ms": now_ms, "beat_ms": clock.boot_ms()}
    return transaction.execute(update(host_owners).where(*here).values(values)).rowcount > 0


def end(transaction: Transaction, owner_id: int) -> None:
    """Ends an owner that has noted what its hosts have to be spared (``hand_over``).

    Those that others want are theirs now; the rest is free.
    """
    here = select(hosts.c.id).where(hosts.c.owner_id == owner_id, _IS_CONTESTED)
    wanted = _lock(transaction, [row.id for row in transaction.execute(here)])
    write_rows(
        transaction,
        _PASS_ON,
        [{"row_id": row.id, "old_owner": owner_id, "new_owner": row.wanted_id} for row in wanted if row.wanted_id > 0],
    )
    transaction.execute(delete(host_owners).where(host_owners.c.id == owner_id))


class TakenHost(NamedTuple):
    """A host that this process owns now: not to be asked for so long yet, by its delay, and by a pause with its code."""

    wait_ms: int
    pause_ms: int
    pause_code: int


def take(
    transaction: Transaction, owner_id: int, delays_ms: Mapping[int, int], waited_ms: Mapping[int, int] | None = None
) -> dict[int, TakenHost] | None:
    """Takes hosts, by id with the delay of each, that no living process owns; returns those that are this one's now.

    The owners of the others are told that they are wanted; of several that want a host the one that waits longest is next.
    ``waited_ms`` says how long this one has waited. After an owner that died a host waits for one delay from the end of that
    lease. None: the lease of this owner itself has ended, and nothing was taken.
    """
    # All of it before any owner is locked.
    rows = _lock(transaction, delays_ms)
    own = host_owners.c.id == owner_id, host_owners.c.ended_ms.is_(None)
    if not has_row(transaction, *own):
        return None
    others = {number for row in rows for number in (row.owner_id, row.wanted_id)} - {0, owner_id, HANDED}
    ended = _find_ended(transaction, others, {row.owner_id for row in rows} - {0, owner_id})
    living = others - ended.keys()
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    taken = {row.id: row for row in rows if row.owner_id not in living}
    begun = {row.id: now_ms - (waited_ms or {}).get(row.id, 0) for row in rows}
    missed = [
        {"row_id": row.id, "new_wanted": owner_id, "new_since": begun[row.id]}
        for row in rows
        if row.id not in taken and row.wanted_id not in {HANDED, owner_id}
        if row.wanted_id not in living or begun[row.id] < row.wanted_ms
    ]
    write_rows(transaction, _WANT, missed)
    if unclaimed := [row.id for row in taken.values() if row.wanted_id and row.wanted_id not in living]:
        write_parts(transaction, update(hosts).values(wanted_id=0), hosts.c.id, unclaimed)
    write_rows(
        transaction,
        _TAKE,
        [
            {"row_id": host_id, "new_owner": owner_id, "new_delay": delays_ms[host_id], "new_used": used_ms}
            for host_id, row in taken.items()
            for used_ms in [row.used_ms if is_recent(row.used_ms, now_ms) else now_ms]
        ],
    )
    return {
        host_id: _find_wait(row, ended.get(row.owner_id), delays_ms[host_id], now_ms) for host_id, row in taken.items()
    }


_WANT: Final = (
    update(hosts)
    .where(hosts.c.id == bindparam("row_id"))
    .values(wanted_id=bindparam("new_wanted"), wanted_ms=bindparam("new_since"))
)
_TAKE: Final = (
    update(hosts)
    .where(hosts.c.id == bindparam("row_id"))
    .values(owner_id=bindparam("new_owner"), delay_ms=bindparam("new_delay"), used_ms=bindparam("new_used"))
)


def _lock(transaction: Transaction, host_ids: Collection[int]) -> list[Row[Any]]:
    """Hosts, locked by rising id, so that no two processes wait for each other."""
    query = select(hosts).order_by(hosts.c.id).with_for_update()
    return list(read_parts(transaction, query, hosts.c.id, sorted(host_ids)))


def _find_wait(row: Row[Any], ended_ms: int | None, delay_ms: int, now_ms: int) -> TakenHost:
    """What is noted of a host; ``ended_ms`` is when the lease of an owner ended that has not noted it."""
    allowed_ms = bring_near(row.next_allowed_ms, row.reserved_ms, now_ms)
    if ended_ms is not None:
        # The clock may have been set back since.
        allowed_ms = max(allowed_ms, min(ended_ms, now_ms + _UNSEEN_MS) + max(delay_ms, row.delay_ms))
    pause_end = find_pause_end(row, now_ms)
    return TakenHost(max(allowed_ms - now_ms, 0), max(pause_end - now_ms, 0), row.closed_code)


def _find_ended(transaction: Transaction, owner_ids: Collection[int], owning: Collection[int]) -> dict[int, int | None]:
    """Those of the owners that have ended, each with the end of a lease that died; those among ``owning`` are marked."""
    rows = {row.id: row for row in read_parts(transaction, select(host_owners), host_owners.c.id, owner_ids)}
    dead = sorted(number for number, row in rows.items() if not is_living(transaction, row))
    # Locked, and looked at once more: it may be renewing its lease.
    query = select(host_owners).order_by(host_owners.c.id).with_for_update()
    locked = {row.id: row for row in read_parts(transaction, query, host_owners.c.id, dead)}
    ended: dict[int, int | None] = {number: None for number in owner_ids if number not in rows or number in dead}
    for number, row in locked.items():
        if is_living(transaction, row):
            del ended[number]
            continue
        ended[number] = row.ended_ms
        if row.ended_ms is None and number in owning:
            ended[number] = _find_end_of_lease(transaction, row)
            mark = update(host_owners).where(host_owners.c.id == number)
            transaction.execute(mark.values(ended_ms=ended[number]))
    return ended


def _find_end_of_lease(transaction: Transaction, row: Row[Any]) -> int:
    """When an owner sent its last request at the latest, which has ended or has not renewed its lease."""
    now_ms: int = dialect_of(transaction).read_clock_ms(transaction)
    if holder.has_ended(row.holder):
        # It may have asked a moment ago.
        return now_ms
    if row.beat_ms is not None and holder.shares_boot(row.holder):
        # The clock of the store may have been set since the last renewal.
        return now_ms - max(clock.boot_ms() - int(row.beat_ms) - lease.EXPIRY_MS, 0)
    # It may only seem late, where the clock of the store was set: it learns of its end by its next renewal.
    return now_ms + _UNSEEN_MS


def is_living(transaction: Transaction, row: Row[Any]) -> bool:
    """Whether an owner lives, and has not lost its lease."""
    return row.ended_ms is None and lease.is_valid(transaction, row)


def find_contested(transaction: Transaction, owner_id: int) -> tuple[list[int], dict[int, TakenHost]]:
    """The hosts of an owner that another process wants, and those that were handed over to it since the last call."""
    query = select(hosts).where(hosts.c.owner_id == owner_id, _IS_CONTESTED)
    rows = transaction.execute(query).all()
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    handed = {row.id: _find_wait(row, None, 0, now_ms) for row in rows if row.wanted_id == HANDED}
    return [row.id for row in rows if row.wanted_id != HANDED], handed


def accept(transaction: Transaction, owner_id: int, host_ids: Collection[int]) -> None:
    """Notes that an owner knows of hosts that were handed over to it: others may want them from now on."""
    _lock(transaction, host_ids)
    here = update(hosts).where(hosts.c.owner_id == owner_id, hosts.c.wanted_id == HANDED).values(wanted_id=0)
    write_parts(transaction, here, hosts.c.id, host_ids)


def note_delays(transaction: Transaction, owner_id: int, delays_ms: Mapping[int, int]) -> None:
    """Notes longer delays of hosts, which their robots.txt asks for: they count after a lease that dies."""
    rows = [
        {"row_id": host_id, "old_owner": owner_id, "new_delay": delay_ms}
        for host_id, delay_ms in sorted(delays_ms.items())
    ]
    write_rows(transaction, _NOTE_DELAY, rows)


#: As in its index: a planner does not see the values of parameters.
_IS_CONTESTED: Final = text("wanted_id != 0")
_IS_WANTED: Final = hosts.c.wanted_id > 0
_OWNED: Final = update(hosts).where(and_(hosts.c.id == bindparam("row_id"), hosts.c.owner_id == bindparam("old_owner")))
_NOTE_DELAY: Final = _OWNED.values(delay_ms=bindparam("new_delay"))
_PASS_ON: Final = _OWNED.values(owner_id=bindparam("new_owner"), wanted_id=HANDED)
_GIVE_AWAY: Final = _OWNED.values(
    owner_id=case((_IS_WANTED, hosts.c.wanted_id), else_=0),
    wanted_id=case((_IS_WANTED, HANDED), else_=0),
)
_HAND_OVER: Final = _GIVE_AWAY.values(next_allowed_ms=bindparam("new_allowed"), reserved_ms=bindparam("new_noted"))


def hand_over(transaction: Transaction, owner_id: int, waits_ms: Mapping[int, int]) -> None:
    """Gives hosts to those that want them, or back; ``waits_ms`` says how long each is not to be asked yet."""
    _lock(transaction, waits_ms)
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    rows = [
        {"row_id": host_id, "old_owner": owner_id, "new_allowed": now_ms + wait_ms, "new_noted": now_ms}
        for host_id, wait_ms in sorted(waits_ms.items())
        if wait_ms
    ]
    write_rows(transaction, _HAND_OVER, rows)
    free = [{"row_id": host_id, "old_owner": owner_id} for host_id, wait_ms in waits_ms.items() if not wait_ms]
    write_rows(transaction, _GIVE_AWAY, free)
