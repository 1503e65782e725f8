"""Part of the URL table: rows that become due before their time, because the source file was edited or a clock was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, case, or_, select, tuple_, update

from searchcrawl.rules.recrawl import LONGEST_OPENING_MS
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease as leases
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.schema import sources, urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import review_table, url_classes
from searchcrawl.store.urls.url_table import DUE_BY_TIME


class Hastening(NamedTuple):
    """Rows that are to be made due since the source file was edited: those above ``after``, unless visited since.

    The edit came at ``since_ms``, after or within the run ``run_id``.
    """

    after: int
    run_id: int
    since_ms: int


def find(transaction: Transaction, source: int) -> Hastening | None:
    """Which rows are still to be made due; None: none."""
    columns = (sources.c.hasten_after, sources.c.hasten_run, sources.c.hasten_since_ms)
    row = transaction.execute(select(*columns).where(sources.c.id == source)).one_or_none()
    return None if row is None or row.hasten_after is None else Hastening._make(row)


def begin(transaction: Transaction, lease: Lease, *, run_id: int, now_ms: int) -> None:
    """Notes that all rows are to be made due: the source file was edited since, or within, the run ``run_id``.

    Renews the lease.
    """
    leases.renew(transaction, lease)
    values = {"hasten_after": 0, "hasten_run": run_id, "hasten_since_ms": now_ms}
    transaction.execute(update(sources).where(sources.c.id == lease.source_id).values(values))


def set_after(transaction: Transaction, source: int, after: int | None) -> None:
    """Notes up to which row that is done; None: for all."""
    transaction.execute(update(sources).where(sources.c.id == source).values(hasten_after=after))


def hasten(
    transaction: Transaction, source_id: int, hastening: Hastening, *, last: int, horizon_ms: int, now_ms: int
) -> None:
    """Makes settled rows up to the id ``last`` due at the horizon of a run that are due later, unless visited since the edit.

    A clock that was wrong in between hides none of them.
    """
    fetched = urls.c.last_fetched_ms
    before = or_(urls.c.run_id.is_(None), urls.c.run_id < hastening.run_id)
    earlier = or_(fetched.is_(None), ~fetched.between(hastening.since_ms, now_ms))
    _hasten(
        transaction,
        [
            unindexed(urls.c.source_id) == source_id,
            urls.c.id > hastening.after,
            urls.c.id <= last,
            urls.c.due_ms > horizon_ms,
            or_(before, and_(urls.c.run_id == hastening.run_id, earlier)),
        ],
        horizon_ms,
    )


def hasten_ahead(transaction: Transaction, lease: Lease, *, after: int, horizon_ms: int, now_ms: int) -> int | None:
    """Makes rows due now that were visited later than now, by a clock that was ahead; a page of those above ``after``.

    So are failed ones that wait for the end of ``horizon_ms``, that of the run before. Renews the lease. Returns the last
    id, None at the end.
    """
    leases.renew(transaction, lease)
    here = [unindexed(urls.c.source_id) == lease.source_id, urls.c.id > after]
    put_off = and_(urls.c.failed_runs > 0, urls.c.due_ms > horizon_ms)
    ahead = or_(urls.c.last_fetched_ms > now_ms, put_off)
    found = _hasten(transaction, [*here, urls.c.due_ms > now_ms, ahead], now_ms)
    return found[-1] if found else None


def hasten_late(database: Database, lease: Lease, *, longest_ms: int, now_ms: int) -> None:
    """Makes rows due earlier that wait longer than a page may: ``lifecycle`` was edited since their visit.

    Pages that fail wait longer, unless the clock was ahead at their visit, and so do those that are not to be requested yet. Each transaction takes a page of rows, and renews the lease.
    """
    after: tuple[int, int] | None = (now_ms + longest_ms + 1, 0)
    while after is not None:
        after = database.write(partial(_hasten_late, lease=lease, after=after, longest_ms=longest_ms, now_ms=now_ms))


def _hasten_late(
    transaction: Transaction, *, lease: Lease, after: tuple[int, int], longest_ms: int, now_ms: int
) -> tuple[int, int] | None:
    leases.renew(transaction, lease)
    place = urls.c.due_ms, urls.c.id
    # Both: the index knows the moment alone.
    late = (DUE_BY_TIME, urls.c.source_id == lease.source_id, urls.c.due_ms >= after[0], tuple_(*place) > after)
    opens = or_(urls.c.opens_ms.is_(None), urls.c.opens_ms > now_ms + LONGEST_OPENING_MS)
    meant = and_(or_(urls.c.failed_runs == 0, urls.c.last_fetched_ms > now_ms), opens)
    query = select(*place).where(*late, meant).order_by(*place).limit(review_table.PAGE_ROWS)
    places = [(row.due_ms, row.id) for row in transaction.execute(query)]
    found = [url_id for _, url_id in places]
    visited_ms = case((urls.c.last_fetched_ms <= now_ms, urls.c.last_fetched_ms), else_=0)
    with url_classes.watch(transaction, found):
        for part in split(found):
            transaction.execute(update(urls).where(urls.c.id.in_(part)).values(due_ms=visited_ms + longest_ms))
    return places[-1] if len(places) == review_table.PAGE_ROWS else None


def _hasten(transaction: Transaction, conditions: Sequence[ColumnElement[bool]], due_ms: int) -> list[int]:
    """Makes settled rows due; returns their ids, a page of them at most."""
    query = select(urls.c.id).where(urls.c.fetch_state == int(FetchState.SETTLED), *conditions)
    found = list(transaction.execute(query.order_by(urls.c.id).limit(review_table.PAGE_ROWS)).scalars())
    with url_classes.watch(transaction, found):
        for part in split(found):
            transaction.execute(update(urls).where(urls.c.id.in_(part)).values(due_ms=due_ms))
    return found
