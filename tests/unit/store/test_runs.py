"""Which rows are due in a run: all that were settled before it, whatever the clock says (X-S7, D7)."""

from __future__ import annotations

import pytest

from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import EndReason, RunKind
from tests.unit.store.support_store import NOW_MS, SOURCE, add, claim, settle

DAY_MS = 86_400_000


def start(database: Database, now_ms: int, fingerprint: str = "one") -> run_table.RunRow:
    return database.write(run_table.start, SOURCE, fingerprint=fingerprint, now_ms=now_ms)


def end(database: Database, run: run_table.RunRow, now_ms: int, reason: str = EndReason.FINISHED) -> None:
    database.write(run_table.end, run.id, now_ms=now_ms, reason=reason, exit_code=0)


def visit(database: Database, run: run_table.RunRow, now_ms: int) -> list[int]:
    """Visits what is due in a run; each row is due again after it."""
    ids = claim(database, horizon_ms=run.horizon_ms)
    settle(database, ids, fetched_ms=now_ms, due_ms=max(now_ms, run.horizon_ms + 1))
    return ids


@pytest.mark.parametrize("ahead_ms", [-DAY_MS, 0, DAY_MS])
def test_start_when_the_clock_jumped_since_the_last_run_then_every_row_is_due(
    database: Database, ahead_ms: int
) -> None:
    ids = add(database, ["a", "b"])
    first = start(database, NOW_MS + DAY_MS)
    visit(database, first, NOW_MS + DAY_MS)
    end(database, first, NOW_MS + DAY_MS)

    for step in (1, 2, 3):
        now_ms = NOW_MS + DAY_MS + step * ahead_ms // 3
        run = start(database, now_ms)
        assert sorted(visit(database, run, now_ms)) == ids
        assert visit(database, run, now_ms) == []
        end(database, run, now_ms)


def test_start_when_the_clock_was_set_back_while_a_run_went_on_then_every_row_is_due(database: Database) -> None:
    ids = add(database, ["a", "b"])
    first = start(database, NOW_MS + DAY_MS)
    visit(database, first, NOW_MS + DAY_MS + 600_000)
    end(database, first, NOW_MS)

    assert sorted(visit(database, start(database, NOW_MS + 1), NOW_MS + 1)) == ids


@pytest.mark.parametrize("reason", [EndReason.LIMIT, EndReason.STOPPED, None])
@pytest.mark.parametrize("back_ms", [0, DAY_MS])
def test_start_when_the_source_was_edited_after_a_stop_and_the_clock_set_back_then_every_row_is_due(
    database: Database, reason: EndReason | None, back_ms: int
) -> None:
    ids = add(database, ["a", "b"])
    first = start(database, NOW_MS)
    visit(database, first, NOW_MS + 5)
    if reason is not None:
        end(database, first, NOW_MS + 6, reason)

    run = start(database, NOW_MS + 7 - back_ms, fingerprint="another")

    assert run.kind == RunKind.INITIAL
    assert sorted(visit(database, run, NOW_MS + 8 - back_ms)) == ids


def test_start_when_the_source_is_as_it_was_after_a_stop_then_no_row_is_visited_twice(database: Database) -> None:
    add(database, ["a", "b"])
    first = start(database, NOW_MS)
    visit(database, first, NOW_MS + 5)
    end(database, first, NOW_MS + 6, EndReason.LIMIT)

    run = start(database, NOW_MS + DAY_MS)

    assert visit(database, run, NOW_MS + DAY_MS) == []
