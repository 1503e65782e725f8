"""Deletes what is older than ``store.retention_days`` after a completed run, in small steps.

Rows of URLs that are gone or refused go once no other row leads to them: a page that is read no more than before must
find its links as they were. Rows that are over themselves do not hold each other. Hosts go that no URL of any source names
any more, and that nothing used for long. In the delivery thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.run import Run
from searchcrawl.store import host_table, log_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import deletion
from searchcrawl.store.runs.deletion import PAGE_ROWS, STEP_ROWS, Over
from searchcrawl.store.urls import link_table, orphan_table, url_table

logger = logging.getLogger(__name__)

#: Rows that are judged after one run; the others follow after the next.
_MOST_ROWS: Final = 200_000


def purge_old(run: Run, files: Collection[int]) -> None:
    """Deletes what is over; ``files`` are the numbers of the segments that the cache has. Raises StoreError, LeaseLost."""
    days = run.project.store.retention_days
    if not days:
        return
    before_ms = clock.now_ms() - days * clock.DAY_MS
    rows = _purge_urls(run, before_ms)
    runs = _repeat(run, partial(deletion.purge_runs, source_id=run.source_id, before_ms=before_ms))
    batches = _repeat(run, partial(deletion.purge_batches, source_id=run.source_id, before_ms=before_ms))
    _repeat(run, partial(deletion.purge_segments, source_id=run.source_id, files=files))
    hosts = purge_hosts(run, days)
    if rows or runs or batches or hosts:
        logger.info(
            "older than %d days: %d URLs, %d hosts, %d runs, %d deliveries were forgotten",
            *(days, rows, hosts, runs, batches),
        )


def _repeat(run: Run, purge: Callable[[Transaction], int]) -> int:
    total = 0
    while count := run.write(purge):
        total += count
    return total


def _purge_urls(run: Run, before_ms: int) -> int:
    kept_run = run.read(deletion.find_kept_run, source_id=run.source_id, before_ms=before_ms)
    over = Over(
        source_id=run.source_id,
        before_ms=before_ms,
        remove_on=run.source.lifecycle.remove_on,
        kept_run=kept_run,
        slowest=run.read(log_table.find_slowest, source_id=run.source_id),
    )
    found = _find_over(run, over)
    if not found:
        return 0
    found -= _find_named(run, found)
    ordered = sorted(found)
    steps = (ordered[start : start + STEP_ROWS] for start in range(0, len(ordered), STEP_ROWS))
    return sum(run.write(deletion.purge_urls, over=over, url_ids=step) for step in steps)


def _find_over(run: Run, over: Over) -> set[int]:
    found: set[int] = set()
    for after in range(0, run.read(orphan_table.find_last_id), PAGE_ROWS):
        found.update(run.read(deletion.find_over, over=over, after=after))
        if len(found) >= _MOST_ROWS:
            break
    return found


def _find_named(run: Run, found: set[int]) -> set[int]:
    """Those of the rows that the start list or any other row leads to, over rows that are named themselves too."""
    starts = [urls.key(start.url) for start in run.starts]
    known = run.read(url_table.find_known, run.source_id, starts)
    named = found & {row.id for row in known}
    for pages in run.read_pages(orphan_table.load_links, source_id=run.source_id):
        for page in pages:
            if page.url_id not in found:
                named.update(found.intersection(link_table.decode(page.links)))
    fresh = set(named)
    while fresh:
        links = run.read(link_table.load, pages=sorted(fresh))
        fresh = found.intersection(chain.from_iterable(links.values())) - named
        named |= fresh
    return named


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
    named = _find_named_hosts(run, set(unused))
    steps = (unused[start : start + _STEP_ROWS] for start in range(0, len(unused), _STEP_ROWS))
    return sum(run.write(_purge, host_ids=step, named=named, before_ms=before_ms) for step in steps)


def _purge(transaction: Transaction, *, host_ids: Sequence[int], named: AbstractSet[int], before_ms: int) -> int:
    now_ms = clock.now_ms()
    kept = [host_id for host_id in host_ids if host_id in named]
    host_table.note_used(transaction, kept, now_ms, waits=False)
    others = [host_id for host_id in host_ids if host_id not in named]
    return host_table.purge_unused(transaction, others, before_ms=before_ms, now_ms=now_ms)


def _find_unused(run: Run, before_ms: int) -> list[int]:
    found: list[int] = []
    for after in range(0, run.read(host_table.find_last_host), host_table.PAGE_ROWS):
        found += run.read(host_table.find_unused, before_ms=before_ms, after=after)
        if len(found) >= _MOST_HOSTS:
            break
    return found


def _find_named_hosts(run: Run, unused: AbstractSet[int]) -> AbstractSet[int]:
    """Those of the hosts that URLs name."""
    named: set[int] = set()
    for after in range(0, run.read(orphan_table.find_last_id), host_table.PAGE_ROWS):
        if len(named) == len(unused):
            break
        named |= unused & run.read(host_table.find_named, after=after)
    return named
