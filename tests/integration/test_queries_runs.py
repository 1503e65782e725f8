"""The runs that `runs` lists: newest first, of one source or all, also one that nobody ended (J5)."""

from __future__ import annotations

import pytest

from searchcrawl.counters import COUNTS
from searchcrawl.queries.runs import is_known, list_runs
from searchcrawl.run import begin
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import RunKind
from tests.filled_store import FilledStore


def test_runs_when_one_ended_and_one_goes_on_then_the_newest_first_with_its_counters(filled: FilledStore) -> None:
    filled.admit("/a", "/b")
    filled.end("limit", 3)
    filled.run = begin(filled.project, filled.source, filled.database)
    filled.settle("/a", 200, due_ms=filled.run.row.horizon_ms + 1)

    going, ended = list_runs(filled.database, "demo")

    assert (going["id"], going["ended"], going["end_reason"], going["exit_code"]) == (ended["id"] + 1, None, None, None)
    assert (ended["source"], ended["kind"], ended["end_reason"], ended["exit_code"]) == ("demo", "initial", "limit", 3)
    assert ended["ended"] >= ended["started"]
    assert [*ended["counts"]] == [*COUNTS]
    assert (ended["counts"]["to_fetch"], ended["counts"]["discovered"]) == (2, 2)
    assert {name: number for name, number in going["counts"].items() if number} == {
        "to_fetch": 1,
        "fetched": 1,
        "discovered": 2,
    }


def test_runs_when_a_source_is_named_then_its_own(filled: FilledStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled.database.write_once() as transaction:
        other = run_table.find_or_add_source(transaction, "other")
        for _ in range(5):
            run = run_table.start(transaction, other, fingerprint="", now_ms=1)
            run_table.end(transaction, run.id, now_ms=2, reason="finished", exit_code=0)
    monkeypatch.setattr(run_table, "_PAGE_ROWS", 2)

    assert [run["source"] for run in list_runs(filled.database, None)] == ["other"] * 5 + ["demo"]
    assert [run["source"] for run in list_runs(filled.database, "demo")] == ["demo"]
    assert {run["kind"] for run in list_runs(filled.database, "other")} <= set(RunKind)
    assert [*list_runs(filled.database, "never")] == []
    assert (is_known(filled.database, "other"), is_known(filled.database, "never")) == (True, False)
