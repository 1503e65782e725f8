"""The state of sources, as ``status`` and the end of ``crawl`` show it (J1, J2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchcrawl import clock
from searchcrawl.run import COUNTS
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import changed_keys, fingerprint
from searchcrawl.store import document_table, lease, run_table, url_table
from searchcrawl.store.database import Database
from searchcrawl.store.run_table import RunRow
from searchcrawl.store.states import EndReason


def status_of(source: Source, database: Database, versions: Mapping[str, int]) -> dict[str, Any]:
    """The status object of interface.md §2; a source that never ran is ``scheduled``."""
    with database.read() as transaction:
        source_id = run_table.find_source(transaction, source.name)
        run = None if source_id is None else run_table.last(transaction, source_id)
        if source_id is None or run is None:
            return _never_run(source.name)
        totals = document_table.totals(transaction, source_id)
        executing = lease.held(transaction, source_id, clock.now_ms())
        counts = {name: run.counts.get(name, 0) for name in COUNTS}
        if run.ended_ms is None:
            counts["to_fetch"] = url_table.count_todo(transaction, source_id, run.horizon_ms)
            counts["discovered"] = sum(counts[name] for name in ("to_fetch", "fetched", "fetch_failures", "rejected"))
        return {
            "source": source.name,
            "state": _state(run, executing=executing),
            "run": {
                "id": run.id,
                "kind": run.kind.value,
                "started": clock.iso(run.started_ms),
                "ended": clock.iso(run.ended_ms),
                "end_reason": run.end_reason,
            },
            "counts": counts,
            **totals,
            "force_recrawl": _force_recrawl(run_table.made_with(transaction, source_id), source, versions),
            "warnings": _warnings(source.name, totals["quarantined"]),
        }


def _never_run(name: str) -> dict[str, Any]:
    return {
        "source": name,
        "state": "scheduled",
        "run": None,
        "counts": dict.fromkeys(COUNTS, 0),
        "documents": 0,
        "waiting": 0,
        "quarantined": 0,
        "force_recrawl": None,
        "warnings": [],
    }


def _state(run: RunRow, *, executing: bool) -> str:
    if run.ended_ms is None:
        return "executing" if executing else "waiting_for_resume"
    if run.end_reason == EndReason.FINISHED:
        return "finished" if run.exit_code in (0, 9) else "partially_failed" if run.exit_code == 6 else "failed"
    return "failed" if run.end_reason == EndReason.STORE_FAILED else "stopped"


def _force_recrawl(made_with: str | None, source: Source, versions: Mapping[str, int]) -> str | None:
    """Why the next run visits everything without validators (D9)."""
    now = fingerprint(source, versions=versions)
    changed = changed_keys(made_with or now, now)
    return f"changed: {', '.join(changed)}" if changed else None


def _warnings(name: str, quarantined: int) -> list[dict[str, str]]:
    if not quarantined:
        return []
    message = f"{quarantined} deletions wait for approval: searchcrawl quarantine list {name}"
    return [{"code": "quarantine", "message": message}]
