"""Hosts that no URL of any source names any more, and that nothing used for long: which they are, and their end.

Sources share the hosts, and other processes may add a URL of a host while it is looked at. Whoever is about to use the
id of a host notes the use (``host_table.find_or_add``), and only rows are deleted of which none was noted for days.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, and_, delete, func, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.host_schema import hosts
from searchcrawl.store.schema import urls
from searchcrawl.store.statements import split

#: Ids whose rows are read in one transaction.
PAGE_ROWS: Final = 5000


def find_last_id(transaction: Transaction) -> int:
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


def purge(transaction: Transaction, host_ids: Sequence[int], *, before_ms: int, now_ms: int) -> int:
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
        hosts.c.next_allowed_ms < before_ms,
        hosts.c.closed_until_ms < before_ms,
        # SQLite would give its id to the next host, and a process that still knows its name would take that for it.
        hosts.c.id < select(func.max(hosts.c.id)).scalar_subquery(),
    )
