"""A lease with a heartbeat and a fencing number: only one process at a time runs a source (X-S3)."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import bindparam, select, update

from searchcrawl.exceptions import LeaseLost, SourceBusy
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.schema import leases

BEAT_SECONDS: Final = 5.0
EXPIRY_MS: Final = 30_000


_FENCE: Final = select(leases.c.fence).where(leases.c.source_id == bindparam("source")).with_for_update()


class Lease(NamedTuple):
    """The right to write to a source; the highest fence is the valid one."""

    source_id: int
    fence: int


def take(transaction: Transaction, source_id: int, *, name: str, now_ms: int) -> Lease:
    """Takes the lease of a source if it is free, or if its holder is dead or has stopped renewing it.

    Raises SourceBusy while a living process has it.
    """
    # The row is added first, because a missing row cannot be locked, and two processes may come at once.
    statement = dialect_of(transaction).upsert(leases, ["source_id"])
    transaction.execute(statement.values(source_id=source_id, holder="", fence=0, renewed_ms=None))
    row = transaction.execute(select(leases).where(leases.c.source_id == source_id).with_for_update()).one()
    if row.renewed_ms is not None:
        fresh = abs(now_ms - row.renewed_ms) < EXPIRY_MS
        if fresh and not _is_dead(row.holder):
            raise SourceBusy(f"source {name}: another process is running it ({_describe(row.holder)})")
    fence = int(row.fence) + 1
    transaction.execute(
        update(leases)
        .where(leases.c.source_id == source_id)
        .values(holder=_build_holder(), fence=fence, renewed_ms=now_ms)
    )
    return Lease(source_id, fence)


def check(transaction: Transaction, lease: Lease) -> None:
    """Raises LeaseLost if another process took the lease; to be called first in each writing transaction.

    In PostgreSQL the row stays locked until the end of the transaction: no process can take the source over meanwhile,
    and other writers of the source wait. In SQLite all writers wait for each other anyway.
    """
    fence = transaction.execute(_FENCE, {"source": lease.source_id}).scalar()
    if fence != lease.fence:
        raise LeaseLost("another process took this source over; this one stops writing")


def renew(transaction: Transaction, lease: Lease, now_ms: int) -> None:
    """Renews the lease; to be called every BEAT_SECONDS. Raises LeaseLost."""
    check(transaction, lease)
    transaction.execute(update(leases).where(leases.c.source_id == lease.source_id).values(renewed_ms=now_ms))


def release(transaction: Transaction, lease: Lease) -> None:
    """Releases the lease, if it is still ours."""
    transaction.execute(
        update(leases)
        .where(leases.c.source_id == lease.source_id, leases.c.fence == lease.fence)
        .values(renewed_ms=None)
    )


def is_held(transaction: Transaction, source_id: int, now_ms: int) -> bool:
    """Whether a living process holds the lease of a source."""
    row = transaction.execute(select(leases).where(leases.c.source_id == source_id)).one_or_none()
    if row is None or row.renewed_ms is None:
        return False
    return abs(now_ms - row.renewed_ms) < EXPIRY_MS and not _is_dead(row.holder)


def _build_holder() -> str:
    return f"{socket.gethostname()} boot {_read_boot_id()} process {os.getpid()} started {_read_start(os.getpid())}"


def _describe(holder: str) -> str:
    words = holder.split(" ")
    return f"process {words[4]} on {words[0]}"


def _read_boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text(encoding="ascii").strip() if path.exists() else "unknown"


def _read_start(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty where it is dead or this is not known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat[stat.rfind(")") + 2 :].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _is_dead(holder: str) -> bool:
    """Whether the holder ran on this machine and has ended; another process may have its pid now."""
    words = holder.split(" ")
    if words[0] != socket.gethostname() or not Path("/proc/self/stat").exists():
        return False
    boot, pid, started = words[2], int(words[4]), words[6]
    return boot != _read_boot_id() or _read_start(pid) != started
