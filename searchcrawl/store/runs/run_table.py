"""Sources and their runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from sqlalchemy import Row, bindparam, case, func, insert, or_, select, update

from searchcrawl.counters import DISCOVERED, select_kept, sum_up
from searchcrawl.exceptions import Exit
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import count_rows, has_row
from searchcrawl.store.run_schema import batches, runs
from searchcrawl.store.schema import sources, urls
from searchcrawl.store.statements import unindexed
from searchcrawl.store.states import EndReason, FetchState, RunKind, Sharing
from searchcrawl.store.urls import url_classes, url_queue
from searchcrawl.store.urls.url_classes import UrlClass
from searchcrawl.store.urls.url_queue import Recovered

T = TypeVar("T")

_PAGE_ROWS: Final = 500
_COUNTS: Final = select(runs.c.counts).where(runs.c.id == bindparam("run"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run; rows settled before ``horizon_ms`` are due in it (the horizon).

    ``batch_before`` is the last delivery from before that: what the index has since then was there before the run.
    ``after_run`` is the last completed run before it (0: none), which is the same for all that continue each other.
    """

    id: int
    kind: RunKind
    started_ms: int
    horizon_ms: int
    batch_before: int = 0
    ended_ms: int | None = None
    end_reason: str | None = None
    exit_code: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    fingerprint: str | None = None
    after_run: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all that was due was visited, and the site was there."""
        return self.end_reason == EndReason.FINISHED and self.exit_code != Exit.NO_START

    def is_later_than(self, now_ms: int) -> bool:
        """Whether the clock was set back since the run."""
        return max(self.started_ms, self.horizon_ms, self.ended_ms or 0) > now_ms


#: Columns whose values are fields as they are.
_AS_STORED: Final = ("id", "started_ms", "horizon_ms", "ended_ms", "end_reason", "exit_code", "fingerprint")


def find_or_add_source(transaction: Transaction, name: str) -> int:
    """The id of a source; a new one is added (in a writing transaction)."""
    if find_source(transaction, name) is None:
        # Another process may add it at the same time.
        transaction.execute(dialect_of(transaction).upsert(sources, ["name"]).values(name=name))
    return int(transaction.execute(select(sources.c.id).where(sources.c.name == name)).scalar_one())


def find_source(transaction: Transaction, name: str) -> int | None:
    """The id of a source; None where it was never run."""
    return transaction.execute(select(sources.c.id).where(sources.c.name == name)).scalar()


def read_of(transaction: Transaction, name: str, work: Callable[[Transaction, int], T], default: T) -> T:
    """What ``work`` reads of a source by its id; ``default`` where it was never run."""
    source_id = find_source(transaction, name)
    return default if source_id is None else work(transaction, source_id)


def find_source_names(transaction: Transaction) -> dict[int, str]:
    """Names of all sources that were ever run, by id."""
    return {row.id: row.name for row in transaction.execute(select(sources.c.id, sources.c.name))}


def find_source_of(transaction: Transaction, run_id: int) -> str | None:
    """The name of the source of a run; None where there is no such run."""
    query = select(sources.c.name).join(runs, runs.c.source_id == sources.c.id).where(runs.c.id == run_id)
    return transaction.execute(query).scalar()


def find_registered(transaction: Transaction) -> dict[str, str]:
    """What the crawls of sources registered of their files, by name."""
    query = select(sources.c.name, sources.c.registered).where(sources.c.registered.is_not(None))
    return {row.name: row.registered for row in transaction.execute(query)}


def register(transaction: Transaction, source: int, text: str, *, shares_copies: bool = False) -> None:
    """Registers what searches and other sources need of the file of a source."""
    no, ends = int(Sharing.NO), int(Sharing.ENDS)
    shares = int(Sharing.YES) if shares_copies else case((sources.c.shares_copies == no, no), else_=ends)
    changed = or_(sources.c.registered.is_distinct_from(text), sources.c.shares_copies != shares)
    values = {"registered": text, "shares_copies": shares}
    transaction.execute(update(sources).where(sources.c.id == source, changed).values(values))


def find_last(transaction: Transaction, source: int) -> RunRow | None:
    """The latest run of a source."""
    query = select(runs).where(runs.c.source_id == source).order_by(runs.c.id.desc()).limit(1)
    row = transaction.execute(query).one_or_none()
    return None if row is None else _build_run(row)


def load_before(transaction: Transaction, source_ids: Collection[int], before: int | None) -> list[tuple[int, RunRow]]:
    """The next runs of these sources, newest first, below a number; each with the id of its source."""
    query = select(runs).where(runs.c.source_id.in_(sorted(source_ids)))
    if before is not None:
        query = query.where(runs.c.id < before)
    rows = transaction.execute(query.order_by(runs.c.id.desc()).limit(_PAGE_ROWS))
    return [(row.source_id, _build_run(row)) for row in rows]


def _build_run(row: Row[Any]) -> RunRow:
    return RunRow(
        kind=RunKind(row.kind),
        # A run of an older release has none; then all documents are from before.
        batch_before=row.batch_before or 0,
        counts=json.loads(row.counts),
        **{name: getattr(row, name) for name in _AS_STORED},
    )


def start(transaction: Transaction, source: int, *, fingerprint: str, now_ms: int, is_hastened: bool = False) -> RunRow:
    """Begins a run, or continues one that was interrupted.

    ``is_hastened``: what was put off by a clock that was ahead is due by now, so that the run needs no later horizon.

    After a crash the same run continues, with its counts. After a stop a new run follows, with the same kind and
    horizon: rows that were visited are not visited again (H4, D7), unless the source file was edited in between.
    """
    before = find_last(transaction, source)
    same = before is not None and before.fingerprint == fingerprint
    if before is not None and before.ended_ms is None:
        return before if same else _widen(transaction, before, source, fingerprint, now_ms)
    batch_before = find_last_batch(transaction)
    if before is not None and before.end_reason != EndReason.FINISHED:
        kind = before.kind
        horizon_ms = before.horizon_ms if same else _find_horizon(transaction, before, source, now_ms)
        batch_before = before.batch_before if same else batch_before
    else:
        is_known = before is not None and has_row(transaction, urls.c.source_id == source)
        kind = RunKind.MAINTENANCE if is_known else RunKind.INITIAL
        is_now = before is None or (is_hastened and before.is_later_than(now_ms))
        horizon_ms = now_ms if before is None or is_now else _find_horizon(transaction, before, source, now_ms)
    values: dict[str, Any] = {
        "started_ms": now_ms,
        "horizon_ms": horizon_ms,
        "batch_before": batch_before,
        "fingerprint": fingerprint,
    }
    run_id = transaction.execute(
        insert(runs).values(source_id=source, kind=kind.value, **values).returning(runs.c.id)
    ).scalar_one()
    return RunRow(id=run_id, kind=kind, **values)


def _widen(transaction: Transaction, run: RunRow, source: int, fingerprint: str, now_ms: int) -> RunRow:
    horizon_ms = _find_horizon(transaction, run, source, now_ms)
    values: dict[str, Any] = {
        "horizon_ms": horizon_ms,
        "batch_before": find_last_batch(transaction),
        "fingerprint": fingerprint,
    }
    transaction.execute(update(runs).where(runs.c.id == run.id).values(values))
    return replace(run, **values)


def find_last_batch(transaction: Transaction) -> int:
    return int(transaction.execute(select(func.max(batches.c.id))).scalar() or 0)


def _find_horizon(transaction: Transaction, before: RunRow, source: int, now_ms: int) -> int:
    """Now, but after all rows that ``before`` settled, even if the clock was set back since (X-S7)."""
    ended_ms = before.ended_ms
    # It was killed, or the clock was set back while it ran.
    if ended_ms is None or ended_ms < before.started_ms:
        visited = select(func.max(urls.c.last_fetched_ms)).where(unindexed(urls.c.source_id) == source)
        ended_ms = transaction.execute(visited).scalar() or 0
    # A row that was settled is due a moment after the horizon of its run.
    return max(now_ms, ended_ms + 1, before.horizon_ms + 1)


def find_last_completed(transaction: Transaction, source: int) -> int:
    """The id of the last run of a source that was completed; 0 without one."""
    query = select(func.max(runs.c.id)).where(runs.c.source_id == source, runs.c.end_reason == EndReason.FINISHED)
    return int(transaction.execute(query).scalar() or 0)


def set_counts(transaction: Transaction, run_id: int, counts: Mapping[str, int]) -> None:
    """Writes the counts of a run (J1)."""
    transaction.execute(update(runs).where(runs.c.id == run_id).values(counts=json.dumps(dict(counts))))


def add_counts(transaction: Transaction, run_id: int, added: Mapping[str, int]) -> None:
    """Adds to the counts of a run; the caller has locked its source (``lease.check``)."""
    stored = transaction.execute(_COUNTS, {"run": run_id}).scalar_one()
    set_counts(transaction, run_id, select_kept(sum_up(json.loads(stored), added)))


def end(transaction: Transaction, run_id: int, *, now_ms: int, reason: str, exit_code: int) -> None:
    """Ends a run."""
    transaction.execute(
        update(runs).where(runs.c.id == run_id).values(ended_ms=now_ms, end_reason=reason, exit_code=exit_code)
    )


def amend(transaction: Transaction, run_id: int, *, added: Mapping[str, int], exit_code: int) -> None:
    """Adds to a run that has ended what was still to be done of it, and notes how it ends with that."""
    add_counts(transaction, run_id, added)
    transaction.execute(update(runs).where(runs.c.id == run_id).values(exit_code=exit_code))


def count_urls(transaction: Transaction, source: int, *, without: Collection[int] = ()) -> int:
    """How many URLs a source has, without those with the codes ``without`` that are not to be visited."""
    counts = or_(urls.c.code.not_in(without), urls.c.fetch_state != int(FetchState.SETTLED))
    return count_rows(transaction, urls, unindexed(urls.c.source_id) == source, counts)


def begin_counts(
    transaction: Transaction, source_id: int, row: RunRow, recovered: Recovered, *, is_new: bool
) -> RunRow:
    """Counts the URLs of a run as it begins: those that are due, all others only where it goes on.

    Commands may have changed them since the process died, and an edit of the source file the horizon.
    """
    if is_new:
        due, failed = url_queue.count_todo(transaction, source_id, row.horizon_ms), len(recovered.set_aside)
        counts = {UrlClass.TO_FETCH: due, UrlClass.FAILED: failed, DISCOVERED: due + failed}
    else:
        counts = url_classes.count(transaction, source_id, row.id, row.horizon_ms)
    kept = select_kept({**row.counts, **counts})
    set_counts(transaction, row.id, kept)
    return replace(row, counts=kept)


def draw_log_number(transaction: Transaction, source_id: int) -> int:
    """The number of the entries that this transaction writes, above those of all before."""
    statement = update(sources).where(sources.c.id == source_id).values(log_seq=sources.c.log_seq + 1)
    return int(transaction.execute(statement.returning(sources.c.log_seq)).scalar_one())
