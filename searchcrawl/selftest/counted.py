"""Whether the counters of the last run add up, and are those of its URL table (J1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import orjson

from searchcrawl.codes import Code, CodeClass, facts_of
from searchcrawl.selftest.stored import Select
from searchcrawl.store.states import FetchState

_PARTS: Final = ("to_fetch", "fetched", "fetch_failures", "rejected")
_RUN: Final = "SELECT id, source_id, horizon_ms, ended_ms, counts FROM runs ORDER BY id DESC LIMIT 1"
_ROWS: Final = "SELECT source_id, fetch_state, due_ms, code, redirects, failed_runs, run_id FROM urls"


def find_wrong_sums(counts: Mapping[str, int]) -> list[str]:
    """What does not add up in the counters of a run."""
    parts = {name: counts[name] for name in _PARTS}
    wrong = [f"{name} is {number}" for name, number in parts.items() if number < 0]
    if counts["discovered"] != sum(parts.values()):
        wrong.append(f"discovered is {counts['discovered']}, not the sum of {parts}")
    return wrong


def find_wrong_counters(select: Select) -> list[str]:
    """What is wrong with the counters of the last run of any source, after ``kill -9`` as well.

    Those of a run that goes on are compared with the table; rows may have changed since another one ended.
    """
    found = select(_RUN)
    if not found:
        return []
    (run,) = found
    counts = orjson.loads(run["counts"])
    if not counts:
        # Killed while the run was begun.
        return []
    wrong = find_wrong_sums(counts)
    if counts.get("miscounted"):
        wrong.append(f"the run says itself that {counts['miscounted']} URLs are counted wrongly")
    if run["ended_ms"] is None:
        rows = [row for row in select(_ROWS) if row["source_id"] == run["source_id"]]
        there = Counter(name for row in rows if (name := _find_class(row, run["id"], run["horizon_ms"])))
        wrong += [
            f"{name} is {counts[name]}, the table has {there[name]}" for name in _PARTS if counts[name] != there[name]
        ]
    return wrong


def _find_class(row: Mapping[str, Any], run_id: int, horizon_ms: int) -> str | None:
    is_due = row["due_ms"] is not None and row["due_ms"] <= horizon_ms
    if row["fetch_state"] != FetchState.SETTLED or is_due:
        return "to_fetch"
    if row["run_id"] != run_id:
        return None
    if row["failed_runs"] or row["code"] == Code.SET_ASIDE:
        return "fetch_failures"
    refused = facts_of(row["code"]).kind is CodeClass.REFUSAL
    return "rejected" if refused and row["redirects"] is None else "fetched"
