"""The class of each URL of a run, and how many URLs change it (J1).

A URL of a run is to fetch, fetched, failed or rejected. Its row alone says which: there is one condition for it, and
nothing is counted beside it. What may change the class of rows is done within ``watch``, which compares the rows before
and after; what that finds is added to the counters in the same transaction (``Run.write``). Outside a run nothing is
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Integer,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
)

from searchcrawl.codes import REFUSALS, Code
from searchcrawl.counters import DISCOVERED
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import FetchState

_OPTION: Final = "searchcrawl_tally"


class UrlClass(StrEnum):
    """The class of a URL in a run; the values are names of counters."""

    #: a new or reopened row, one that is tried again, one that is claimed, one that is due at the horizon of the run
    TO_FETCH = "to_fetch"
    #: its last visit of the run brought an answer
    FETCHED = "fetched"
    #: its last visit of the run failed
    FAILED = "fetch_failures"
    #: in this run a rule refused it without a request
    REJECTED = "rejected"


@dataclass(slots=True)
class Tally:
    """What one transaction of a run changes: how many URLs more each class has, and the run as a whole.

    ``forgotten`` are the URLs of each class whose rows were deleted: they stay counted.
    """

    run_id: int
    horizon_ms: int
    changes: Counter[str] = field(default_factory=Counter)
    forgotten: Counter[str] = field(default_factory=Counter)

    def add(self, url_class: str, amount: int) -> None:
        """Adds URLs to a class and to the run, or takes them out; ``url_class`` "" is of no URL of the run."""
        if url_class:
            self.changes[url_class] += amount
            self.changes[DISCOVERED] += amount


_HORIZON: Final[BindParameter[int]] = bindparam("class_horizon", type_=BigInteger)
_RUN: Final[BindParameter[int]] = bindparam("class_run", type_=Integer)
_IS_TO_FETCH: Final = or_(urls.c.fetch_state != int(FetchState.SETTLED), urls.c.due_ms <= _HORIZON)
# Only a visit that failed counts failed runs; a row that is set aside when a run begins counts none.
_HAS_FAILED: Final = or_(urls.c.failed_runs > 0, urls.c.code == int(Code.SET_ASIDE))
# A page that led to a URL which a rule refuses was requested itself.
_IS_REJECTED: Final = and_(urls.c.code.in_(sorted(REFUSALS)), urls.c.redirects.is_(None))
_CLASS: Final[ColumnElement[str]] = case(
    (_IS_TO_FETCH, UrlClass.TO_FETCH.value),
    (or_(urls.c.run_id.is_(None), urls.c.run_id != _RUN), ""),
    (_HAS_FAILED, UrlClass.FAILED.value),
    (_IS_REJECTED, UrlClass.REJECTED.value),
    else_=UrlClass.FETCHED.value,
)
# Built once, for each group of pages.
_COUNT_SOME: Final = (
    select(_CLASS.label("url_class"), func.count())
    .where(urls.c.id.in_(bindparam("ids", expanding=True)))
    .group_by(literal_column("url_class"))
)
# Groups of all rows would be sorted, in memory.
_COUNT_ALL: Final = select(*(func.sum(case((_CLASS.in_([each.value]), 1), else_=0)) for each in UrlClass)).where(
    unindexed(urls.c.source_id) == bindparam("source")
)


def open_tally(transaction: Transaction, run_id: int, horizon_ms: int) -> Tally:
    """Counts from now on what this transaction changes for a run."""
    tally = Tally(run_id, horizon_ms)
    transaction.execution_options(**{_OPTION: tally})
    return tally


def find_tally(transaction: Transaction) -> Tally | None:
    """The tally of a transaction; None outside a run."""
    found: Tally | None = transaction.get_execution_options().get(_OPTION)
    return found


@contextmanager
def watch(transaction: Transaction, url_ids: Sequence[int]) -> Iterator[None]:
    """Counts the changes of class that are made to rows within the context."""
    tally = find_tally(transaction)
    if tally is None or not url_ids:
        yield
        return
    before = _count_some(transaction, tally, url_ids)
    yield
    after = _count_some(transaction, tally, url_ids)
    for url_class in before.keys() | after.keys():
        tally.add(url_class, after[url_class] - before[url_class])


def note_new(transaction: Transaction, *, to_fetch: int, rejected: int) -> None:
    """Counts new rows."""
    tally = find_tally(transaction)
    if tally is not None:
        tally.add(UrlClass.TO_FETCH, to_fetch)
        tally.add(UrlClass.REJECTED, rejected)


def note_forgotten(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Notes that rows are about to be deleted."""
    tally = find_tally(transaction)
    if tally is not None and url_ids:
        tally.forgotten.update(_count_some(transaction, tally, url_ids))


def find_run(transaction: Transaction) -> int | None:
    """The run of a transaction, which rows that are settled in it keep; None outside a run."""
    tally = find_tally(transaction)
    return None if tally is None else tally.run_id


def _count_some(transaction: Transaction, tally: Tally, url_ids: Sequence[int]) -> Counter[str]:
    found = Counter[str]()
    here = {"class_run": tally.run_id, "class_horizon": tally.horizon_ms}
    for part in split(sorted(set(url_ids))):
        for url_class, number in transaction.execute(_COUNT_SOME, {**here, "ids": part}):
            found[url_class] += number
    return found


def count(transaction: Transaction, source_id: int, run_id: int, horizon_ms: int) -> dict[str, int]:
    """How many URLs of each class the table has for a run, and of the run as a whole: it reads all rows of the source."""
    here = {"source": source_id, "class_run": run_id, "class_horizon": horizon_ms}
    found = transaction.execute(_COUNT_ALL, here).one()
    by_class = {each.value: int(number or 0) for each, number in zip(UrlClass, found, strict=True)}
    return {**by_class, DISCOVERED: sum(by_class.values())}
