"""A lease with a heartbeat and a fencing number: only one process at a time runs a source (X-S3).

A holder that has ended loses its lease at once where that can be seen, and any holder that has not renewed it for
EXPIRY_MS. On the machine of the holder these are counted by the boot clock, which nobody can set; elsewhere by the
clock of the store.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import Row, bindparam, select, update

from searchcrawl import clock
from searchcrawl.exceptions import LeaseLost, SourceBusy
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.run_schema import leases
from searchcrawl.store.runs import holder

BEAT_SECONDS: Final = 5.0
EXPIRY_MS: Final = 30_000


_FENCE: Final = select(leases.c.fence).where(leases.c.source_id == bindparam("source")).with_for_update()


class Lease(NamedTuple):
    """The right to write to a source; the highest fence is the valid one."""

    source_id: int
    fence: int


def take(transaction: Transaction, source_id: int, *, name: str) -> Lease:
    """Takes the lease of a source if it is free, or if its holder is dead or has stopped renewing it.

    Raises SourceBusy while a living process has it.
    """
    # The row is added first, because a missing row cannot be locked, and two processes may come at once.
    statement = dialect_of(transaction).upsert(leases, ["source_id"])
    transaction.execute(statement.values(source_id=source_id, holder="", fence=0, renewed_ms=None))
    row = transaction.execute(select(leases).where(leases.c.source_id == source_id).with_for_update()).one()
    if is_valid(transaction, row):
        raise SourceBusy(f"source {name}: another process is running it ({holder.describe(row.holder)})")
    fence = int(row.fence) + 1
    transaction.execute(
        update(leases)
        .where(leases.c.source_id == source_id)
        .values(holder=holder.describe_own(), fence=fence, **_build_beat(transaction))
    )
    return Lease(source_id, fence)


def find_fence(transaction: Transaction, source_id: int) -> int:
    """The fence of the last holder, 0 before the first one: it rises with each process that may have written."""
    found: int | None = transaction.execute(select(leases.c.fence).where(leases.c.source_id == source_id)).scalar()
    return found or 0


def check(transaction: Transaction, lease: Lease) -> None:
    """Raises LeaseLost if another process took the lease; to be called first in each writing transaction.

    In PostgreSQL the row stays locked until the end of the transaction: no process can take the source over meanwhile,
    and other writers of the source wait. In SQLite all writers wait for each other anyway.
    """
    fence = transaction.execute(_FENCE, {"source": lease.source_id}).scalar()
    if fence != lease.fence:
        raise LeaseLost("another process took this source over; this one stops writing")


def renew(transaction: Transaction, lease: Lease) -> None:
    """Renews the lease; to be called every BEAT_SECONDS. One that was given back stays so. Raises LeaseLost."""
    check(transaction, lease)
    statement = update(leases).where(leases.c.source_id == lease.source_id, leases.c.renewed_ms.is_not(None))
    transaction.execute(statement.values(_build_beat(transaction)))


def release(transaction: Transaction, lease: Lease) -> None:
    """Releases the lease, if it is still ours."""
    transaction.execute(
        update(leases)
        .where(leases.c.source_id == lease.source_id, leases.c.fence == lease.fence)
        .values(renewed_ms=None)
    )


def find_holders(transaction: Transaction) -> dict[int, tuple[int, str]]:
    """The living holders of leases, each with its fence, by source."""
    rows = transaction.execute(select(leases).where(leases.c.renewed_ms.is_not(None)))
    return {row.source_id: (int(row.fence), row.holder) for row in rows if is_valid(transaction, row)}


def find_living(transaction: Transaction) -> dict[int, int]:
    """The fences of holders that live on this machine for certain, by source, however late their heartbeat is.

    A process that was stopped, or slept with its machine, goes on where no other one has taken its source.
    """
    rows = transaction.execute(select(leases).where(leases.c.renewed_ms.is_not(None)))
    return {row.source_id: int(row.fence) for row in rows if holder.find_pid(row.holder) is not None}


def order_stop(transaction: Transaction, source_id: int) -> None:
    """Tells the holder of a lease to end its run; those that come after it are not told."""
    transaction.execute(update(leases).where(leases.c.source_id == source_id).values(stop_fence=leases.c.fence))


def is_told_to_stop(transaction: Transaction, lease: Lease) -> bool:
    """Whether a holder is to end its run."""
    query = select(leases.c.stop_fence).where(leases.c.source_id == lease.source_id)
    return int(transaction.execute(query).scalar() or 0) >= lease.fence


def is_held(transaction: Transaction, source_id: int) -> bool:
    """Whether a living process holds the lease of a source."""
    row = transaction.execute(select(leases).where(leases.c.source_id == source_id)).one_or_none()
    return row is not None and is_valid(transaction, row)


def _build_beat(transaction: Transaction) -> dict[str, int]:
    return {"renewed_ms": dialect_of(transaction).read_clock_ms(transaction), "beat_ms": clock.boot_ms()}


def is_valid(transaction: Transaction, row: Row[Any]) -> bool:
    """Whether the holder of a lease lives and has renewed it in time; both clocks are read after the row."""
    if row.renewed_ms is None or holder.has_ended(row.holder):
        return False
    if row.beat_ms is not None and holder.shares_boot(row.holder):
        return clock.boot_ms() - int(row.beat_ms) < EXPIRY_MS
    age_ms: int = dialect_of(transaction).read_clock_ms(transaction) - row.renewed_ms
    return abs(age_ms) < EXPIRY_MS
