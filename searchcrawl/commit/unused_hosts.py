"""Deletes hosts that no URL of any source names any more, and that nothing used for long (``store.retention_days``)."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from searchcrawl import clock
from searchcrawl.run import Run
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.hosts import host_table, unused_table
from searchcrawl.store.hosts.unused_table import PAGE_ROWS
from searchcrawl.store.urls import orphan_table

#: Hosts stay at least so long without a use: longer than a process may go on with an id, or a clock may be wrong.
_LEAST_DAYS: Final = 7
#: Hosts that are judged after one run; the others follow after the next.
_MOST_HOSTS: Final = 100_000
_STEP_ROWS: Final = 1000


def purge_hosts(run: Run, days: int) -> int:
    """Deletes hosts without a use for ``days``; returns how many. Raises StoreError, LeaseLost.

    Hosts that URLs name are noted as used, so that each is looked for once in this time.
    """
    # Taken once: a use that is noted from now on is later.
    before_ms = clock.now_ms() - max(days, _LEAST_DAYS) * clock.DAY_MS
    unused = _find_unused(run, before_ms)
    named = _find_named(run, set(unused))
    steps = (unused[start : start + _STEP_ROWS] for start in range(0, len(unused), _STEP_ROWS))
    return sum(run.write(_purge, host_ids=step, named=named, before_ms=before_ms) for step in steps)


def _purge(transaction: Transaction, *, host_ids: Sequence[int], named: AbstractSet[int], before_ms: int) -> int:
    now_ms = clock.now_ms()
    kept = [host_id for host_id in host_ids if host_id in named]
    host_table.note_used(transaction, kept, now_ms, waits=False)
    others = [host_id for host_id in host_ids if host_id not in named]
    return unused_table.purge(transaction, others, before_ms=before_ms, now_ms=now_ms)


def _find_unused(run: Run, before_ms: int) -> list[int]:
    found: list[int] = []
    for after in range(0, run.read(unused_table.find_last_id), PAGE_ROWS):
        found += run.read(unused_table.find_unused, before_ms=before_ms, after=after)
        if len(found) >= _MOST_HOSTS:
            break
    return found


def _find_named(run: Run, unused: AbstractSet[int]) -> AbstractSet[int]:
    """Those of the hosts that URLs name."""
    named: set[int] = set()
    for after in range(0, run.read(orphan_table.find_last_id), PAGE_ROWS):
        if len(named) == len(unused):
            break
        named |= unused & run.read(unused_table.find_named, after=after)
    return named
