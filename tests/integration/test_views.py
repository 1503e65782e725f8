"""The views say what `urls`, `status` and `runs` say, for rows in all states, also while a crawl writes (J6)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from sqlalchemy import insert, text

from searchcrawl import urls as identity
from searchcrawl.codes import Code, describe_code
from searchcrawl.counters import COUNTS
from searchcrawl.exceptions import StoreError
from searchcrawl.queries.runs import list_runs
from searchcrawl.rules.lifecycle import describe_evidence, is_evidence
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.views import VIEWS
from tests.filled_store import SITE, FilledStore

_CODES = [*(int(code) for code in Code), 200, 304, 404, 410, 500, 299]
_RULES = [None, "scope.exclude_urls: it's */x", "robots.unavailable"]


def read(filled: FilledStore, query: str) -> list[dict[str, Any]]:
    with filled.database.read_once() as transaction:
        return [dict(row) for row in transaction.execute(text(query)).mappings()]


def add_rows(filled: FilledStore) -> None:
    """A row for each combination of what decides about a state."""
    kinds = itertools.product(
        _CODES, _RULES, [None, "[]"], [None, *DocumentState], [(None, None), (1, None), (None, "refused")]
    )
    rows: list[dict[str, Any]] = []
    stored: list[dict[str, Any]] = []
    for number, (code, rule, redirects, state, (version, error)) in enumerate(kinds, 1):
        url = f"{SITE}/{number}"
        rows.append({
            "id": number, "source_id": filled.run.source_id, "key": identity.key(url), "url": url, "host_id": 1,
            "depth": number % 5, "referrer_id": number - 1 or None, "code": code, "rule": rule, "redirects": redirects,
            "fetch_state": int([*FetchState][number % 5] if number % 7 == 0 else FetchState.SETTLED),
            "first_seen_ms": 1_700_000_000_000 + number, "due_ms": number if number % 2 else None, "run_id": 1,
        })  # fmt: skip
        if state is not None:
            evidence = describe_evidence(code, rule) if is_evidence(code, rule, [404, 410]) else None
            stored.append({
                "url_id": number, "source_id": filled.run.source_id, "state": int(state), "evidence": evidence,
                "code": 200 if number % 3 else 952, "indexed_version": version, "index_error": error, "batch_id": number,
                "fields_digest": b"\x0a\xff" if number % 2 else None, "duplicate_of": 1, "last_changed_ms": number,
            })  # fmt: skip
    with filled.database.write_once() as transaction:
        transaction.execute(insert(urls), rows)
        transaction.execute(insert(documents), stored)


def test_view_urls_when_rows_are_in_all_states_then_it_says_what_urls_says(filled: FilledStore) -> None:
    add_rows(filled)
    names = (
        *("state", "code", "rule", "depth", "referrer", "first_seen", "last_fetched", "last_changed", "next_due"),
        *("etag", "checksum", "duplicate_of", "batch"),
    )

    shown = {row["access_url"]: row for row in filled.rows()}
    seen = {row["url"]: row for row in read(filled, "SELECT * FROM view_urls")}

    assert seen.keys() == shown.keys()
    assert [*next(iter(seen.values()))] == [*VIEWS["view_urls"]]
    wrong = [
        (name, url, seen[url][name], row[name])
        for url, row in shown.items()
        for name in names
        if seen[url][name] != row[name]
    ]
    assert wrong[:5] == []
    for url, row in shown.items():
        assert bool(seen[url]["in_index"]) == row["in_index"]
        assert seen[url]["code_meaning"] == describe_code(row["code"])
    assert {row["fetch_state"] for row in seen.values()} == {state.facts.title for state in FetchState}
    assert {row["document_state"] for row in seen.values()} == {None, *(state.facts.title for state in DocumentState)}


def test_view_runs_when_a_run_goes_on_then_it_says_what_runs_says(filled: FilledStore) -> None:
    filled.admit("/a", "/b")

    (seen,) = read(filled, "SELECT * FROM view_runs")
    (shown,) = list_runs(filled.database, None)

    assert [*seen] == [*VIEWS["view_runs"]]
    assert {name: seen[name] for name in COUNTS} == shown["counts"]
    assert seen["to_fetch"] == 2
    names = ("source", "kind", "started", "ended", "end_reason", "exit_code")
    assert [seen["run"], *(seen[name] for name in names)] == [shown["id"], *(shown[name] for name in names)]


def test_view_sources_then_it_says_what_status_says(filled: FilledStore) -> None:
    filled.fetch("/a", "/b")
    filled.send()
    filled.hold_back("/a")
    filled.fetch("/c")

    (seen,) = read(filled, "SELECT * FROM view_sources")
    status = filled.status()

    assert [*seen] == [*VIEWS["view_sources"]]
    assert (seen["source"], seen["run"]) == ("demo", status["run"]["id"])
    names = ("documents", "waiting", "quarantined")
    assert [seen[name] for name in names] == [status[name] for name in names] == [2, 1, 1]


def test_views_when_a_writer_is_at_work_then_they_are_read_meanwhile(filled: FilledStore) -> None:
    filled.admit("/a")
    with filled.database.write_once() as transaction:
        transaction.execute(urls.delete())
        seen = [read(filled, f"SELECT count(*) AS rows_there FROM {name}") for name in VIEWS]

    assert seen == [[{"rows_there": 1}]] * 3


@pytest.mark.parametrize("view", [*VIEWS])
def test_views_when_somebody_writes_to_them_then_nothing_changes(filled: FilledStore, view: str) -> None:
    with pytest.raises(StoreError), filled.database.write_once() as transaction:
        transaction.execute(text(f"UPDATE {view} SET source = 'other'"))
    with pytest.raises(StoreError), filled.database.write_once() as transaction:
        transaction.execute(text(f"DELETE FROM {view}"))

    assert read(filled, "SELECT source FROM view_runs") == [{"source": "demo"}]
