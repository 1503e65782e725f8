"""What of the URL table is to be visited: which hosts have rows, and the rows that are visited alone, after all others.

Hosts are found in steps whose cost does not rise with the number of hosts or rows. A process that dies leaves claims, and
perhaps a row that was the reason: such a suspect is visited alone. If the run stops turning again, it was this one (966).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Select, TextClause, and_, bindparam, func, select, tuple_, update

from searchcrawl.codes import NEVER_REQUESTED, UNREACHABLE, WARNED, Code
from searchcrawl.items import Claim
from searchcrawl.rules.lifecycle import MOST_STOPS, Failures
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import count_rows, has_row, write_parts
from searchcrawl.store.schema import hosts as host_rows
from searchcrawl.store.schema import urls
from searchcrawl.store.statements import is_one_of
from searchcrawl.store.states import CLAIMED, FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.fetch_events import INTERRUPTED, SET_ASIDE, SUSPECTED, TRIED_AGAIN
from searchcrawl.store.urls.url_table import DUE, DUE_BY_TIME, TODO

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


_HOST_ID: Final = select(host_rows.c.id).where(host_rows.c.name == bindparam("name")).scalar_subquery()
_OF_HOST: Final = and_(urls.c.source_id == bindparam("source"), urls.c.host_id == _HOST_ID)
# What was not asked for says nothing of its host.
_SHOWS_HOST: Final = urls.c.code.not_in(sorted(UNREACHABLE | NEVER_REQUESTED))
_WAS_THERE: Final = (
    select(1).where(
        DUE, _OF_HOST, urls.c.due_ms > bindparam("horizon"), urls.c.run_id == bindparam("run"), _SHOWS_HOST
    ),
    select(1).where(TODO, _OF_HOST, urls.c.attempts > 0, _SHOWS_HOST),
)


def was_there(transaction: Transaction, name: str, *, source_id: int, run_id: int, horizon_ms: int) -> bool:
    """Whether the rows of a host (``host:port``) say that it has answered in this run; it reads those that were visited."""
    values = {"source": source_id, "name": name, "run": run_id, "horizon": horizon_ms}
    return any(transaction.execute(query.limit(1), values).first() is not None for query in _WAS_THERE)


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
    due = DUE_BY_TIME, urls.c.source_id == source_id, urls.c.due_ms <= horizon_ms
    suspects = count_rows(transaction, urls, *_are_suspects(source_id))
    return (
        count_rows(transaction, urls, TODO, urls.c.source_id == source_id)
        + count_rows(transaction, urls, *due)
        + suspects
    )


class Recovered(NamedTuple):
    """What a dead process had claimed: how many rows, URLs that may have ended it, and those that were set aside."""

    claims: int
    suspects: list[str]
    set_aside: list[str]


def recover(
    transaction: Transaction,
    source_id: int,
    *,
    stalled: bool,
    by_visit: bool = True,
    parsed: Collection[int] = (),
    run_id: int | None = None,
) -> Recovered:
    """Releases the rows that a dead process had claimed (D7), for the run that begins or goes on.

    ``stalled``: it ended because its reactor did not turn. Then they are suspects; a row that was alone has stopped it,
    if a visit did (``by_visit``). Else what it was parsing (``parsed``) may have ended it. Those pages are visited among the
    others again, and a worker reads them from now on: if one ends that, it is the reason.
    """
    claimed = select(urls.c.id, urls.c.url, urls.c.fetch_state, urls.c.failures)
    rows = list(transaction.execute(claimed.where(_CLAIMED, urls.c.source_id == source_id)))
    found = Recovered(len(rows), [], [])
    if not stalled:
        # Those that are suspects already were counted before this process was killed, too.
        rows = [row for row in rows if row.id in parsed and row.fetch_state != FetchState.SUSPECT]
    here = update(urls).where(_CLAIMED, urls.c.source_id == source_id)
    transaction.execute(here.values((SUSPECTED if stalled else INTERRUPTED).values))
    for row in rows:
        failures = Failures.parse(row.failures)
        # A worker reads what has a note: this process did not end by it.
        if row.fetch_state == FetchState.ALONE and by_visit if stalled else not failures.stops:
            failures = failures.add_stop()
            _note_stop(transaction, row.id, failures, run_id)
        if row.fetch_state != FetchState.SUSPECT:
            (found.set_aside if failures.is_set_aside else found.suspects).append(row.url)
    return found


def _note_stop(transaction: Transaction, url_id: int, failures: Failures, run_id: int | None) -> None:
    row = update(urls).where(urls.c.id == url_id)
    transaction.execute(row.values(failures=failures.dump()))
    if failures.is_set_aside:
        error = f"the crawler ended or stopped turning {MOST_STOPS} times while it read the page"
        transaction.execute(row.values(**SET_ASIDE.values, error=error, run_id=run_id))


def suspect(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has rows that a member of a run had under way visited after all others, one by one (``members``)."""
    write_parts(transaction, update(urls).values(SUSPECTED.values), urls.c.id, url_ids)


def try_again(transaction: Transaction, source_id: int) -> None:
    """Has pages that were set aside visited once more; the next stop sets them aside again."""
    aside = (urls.c.source_id == source_id, is_one_of("code", WARNED), urls.c.code == int(Code.SET_ASIDE))
    settled = urls.c.fetch_state == int(FetchState.SETTLED)
    transaction.execute(update(urls).where(*aside, settled).values(TRIED_AGAIN.values))


def has_suspects(transaction: Transaction, source_id: int) -> bool:
    """Whether there are suspects that nobody has claimed."""
    return has_row(transaction, *_are_suspects(source_id))


def claim_suspect(transaction: Transaction, source_id: int, *, now_ms: int, forced: bool) -> Claim | None:
    """Claims the suspect that has stopped the fewest visits; None if there are none. See ``url_table.claim``."""
    rows = list(transaction.execute(select(urls.c.id, urls.c.failures).where(*_are_suspects(source_id))))
    if not rows:
        return None
    first = min(rows, key=lambda row: (Failures.parse(row.failures).stops, row.id))
    return url_table.claim_alone(transaction, first.id, now_ms=now_ms, forced=forced)


def _are_suspects(source_id: int) -> tuple[ColumnElement[bool] | TextClause, ...]:
    return _CLAIMED, urls.c.source_id == source_id, urls.c.fetch_state == int(FetchState.SUSPECT)
