"""Which hosts have rows to visit, found in steps whose cost does not rise with the number of hosts or rows."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Select, bindparam, func, select, tuple_

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import urls
from searchcrawl.store.statements import is_one_of
from searchcrawl.store.states import CLAIMED, FetchState
from searchcrawl.store.urls.url_table import DUE_BY_TIME, TODO

_CLAIMED: Final = is_one_of("urls.fetch_state", CLAIMED)


def _build_todo_query(*, at_last: bool) -> Select[int]:
    """The recursion goes from one host to the next in the index."""
    here = (urls.c.source_id == bindparam("source")) & (urls.c.lap > 0 if at_last else urls.c.lap == 0)
    nearest = select(func.min(urls.c.host_id).label("id")).where(TODO, here)
    hosts = nearest.where(urls.c.host_id > bindparam("after")).cte("hosts", recursive=True)
    following = nearest.where(urls.c.host_id > hosts.c.id).scalar_subquery()
    hosts = hosts.union_all(select(following).where(hosts.c.id.is_not(None)))
    return select(hosts.c.id).where(hosts.c.id.is_not(None)).limit(bindparam("most"))


_HOSTS_TODO: Final = {at_last: _build_todo_query(at_last=at_last) for at_last in (False, True)}


def find_hosts_to_do(
    transaction: Transaction, source_id: int, *, after: int, limit: int, at_last: bool = False
) -> list[int]:
    """Ids of hosts above ``after`` that have rows to do, rising, at most ``limit``; an index look-up each.

    ``at_last``: hosts with rows that are visited after all others; else those with rows that are not.
    """
    place = {"source": source_id, "after": after, "most": limit}
    return list(transaction.execute(_HOSTS_TODO[at_last], place).scalars())


class DuePlace(NamedTuple):
    """A place in the order of what is due."""

    due_ms: int
    host_id: int


#: Before all rows.
FIRST: Final = DuePlace(-1, 0)
_DUE: Final = (
    select(urls.c.due_ms, urls.c.host_id)
    .where(
        DUE_BY_TIME,
        urls.c.source_id == bindparam("source"),
        tuple_(urls.c.due_ms, urls.c.host_id) > tuple_(bindparam("after_ms"), bindparam("after_host")),
        urls.c.due_ms <= bindparam("horizon"),
    )
    .order_by(urls.c.due_ms, urls.c.host_id)
    .limit(bindparam("most"))
)


def find_due(
    transaction: Transaction, source_id: int, horizon_ms: int, *, after: DuePlace, limit: int
) -> list[DuePlace]:
    """The places of the next rows that are due, at most ``limit``; what is due later is not read.

    Rows of one place are passed over together: the next call begins behind the last of them.
    """
    values = {"source": source_id, "horizon": horizon_ms, "most": limit}
    values |= {"after_ms": after.due_ms, "after_host": after.host_id}
    return [DuePlace(*row) for row in transaction.execute(_DUE, values)]


def count_todo(transaction: Transaction, source_id: int, horizon_ms: int) -> int:
    """How many rows are still to be visited in this run."""
    todo = select(func.count()).where(TODO, urls.c.source_id == source_id).select_from(urls)
    due = select(func.count()).where(DUE_BY_TIME, urls.c.source_id == source_id, urls.c.due_ms <= horizon_ms)
    suspects = select(func.count()).where(
        _CLAIMED, urls.c.source_id == source_id, urls.c.fetch_state == int(FetchState.SUSPECT)
    )
    queries = (todo, due.select_from(urls), suspects.select_from(urls))
    return sum(int(transaction.execute(query).scalar_one()) for query in queries)
