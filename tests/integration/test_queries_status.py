"""The state of a source, the figures of its cache, and its runs, newest first, from a real store (J5)."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from searchcrawl.counters import COUNTS
from searchcrawl.queries.runs import is_known, list_runs
from searchcrawl.queries.status import count_cache, describe_status
from searchcrawl.run import begin
from searchcrawl.sources.fingerprint import VERSIONS, describe_keys
from searchcrawl.store import batch_table
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.schema import documents
from searchcrawl.store.states import DocumentState, RunKind
from tests.filled_store import FilledStore


def warned(filled: FilledStore) -> list[str]:
    return [warning["code"] for warning in filled.status()["warnings"]]


def test_status_when_the_source_never_ran_then_scheduled(filled: FilledStore) -> None:
    never = filled.source.model_copy(update={"name": "never"})

    found = describe_status(filled.project, never, filled.database)

    assert (found["state"], found["run"], found["documents"], found["warnings"]) == ("scheduled", None, 0, [])


@pytest.mark.parametrize(
    ("reason", "exit_code", "state"),
    [
        ("finished", 0, "finished"),
        ("finished", 9, "finished"),
        ("finished", 6, "partially_failed"),
        ("finished", 8, "failed"),
        ("limit", 3, "stopped"),
        ("stopped", 3, "stopped"),
        ("store_failed", 7, "failed"),
    ],
)
def test_status_when_a_run_ended_then_its_state(filled: FilledStore, reason: str, exit_code: int, state: str) -> None:
    filled.end(reason, exit_code)

    assert filled.status()["state"] == state


def test_status_when_a_run_goes_on_then_executing_with_its_queue(filled: FilledStore) -> None:
    filled.admit("/a", "/b")

    found = filled.status()

    assert (found["state"], found["counts"]["to_fetch"], found["run"]["ended"]) == ("executing", 2, None)
    assert found["warnings"] == []


def test_status_when_the_process_of_a_run_died_then_it_waits_for_resume(filled: FilledStore) -> None:
    filled.database.write(lease.release, filled.run.lease)

    assert filled.status()["state"] == "waiting_for_resume"
    assert warned(filled) == ["interrupted"]


def test_status_when_the_source_file_changed_then_force_recrawl_names_the_key(filled: FilledStore) -> None:
    filled.end()
    edited = filled.source.model_copy(update={"scope": filled.source.scope.model_copy(update={"depth": 3})})

    assert filled.status()["force_recrawl"] is None
    assert describe_status(filled.project, edited, filled.database)["force_recrawl"] == "changed: scope.depth"


def test_status_when_a_release_reads_pages_otherwise_then_force_recrawl_says_so_in_words(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.end()
    for name in ("convert", "html"):
        monkeypatch.setitem(VERSIONS, name, 99)

    found = filled.status()["force_recrawl"]

    assert found == "changed: how this release reads files, how this release reads pages"


def test_fingerprint_when_it_has_versions_then_each_has_words() -> None:
    keys = [f"version.{name}" for name in VERSIONS]

    assert "version." not in describe_keys(keys)


def test_status_when_something_needs_attention_then_it_is_warned_about(filled: FilledStore) -> None:
    filled.fetch("/a", "/b")
    filled.send()
    filled.hold_back("/a")
    filled.fetch("/c", "/d", "/e")
    with filled.database.write_once() as transaction:
        batch_table.forget_segment(transaction, filled.run.source_id, 1)
        refused = update(documents).where(documents.c.url_id == filled.ids["/e"])
        transaction.execute(refused.values(index_error="no", state=int(DocumentState.WITHHELD)))
    filled.end(exit_code=8)

    assert warned(filled) == ["no_start", "waiting", "quarantine", "refused", "cache"]
    assert [each["message"].partition(" for ")[0] for each in filled.status()["warnings"][1:3]] == [
        "2 documents or deletions wait",
        "1 deletion waits",
    ]
    assert "the index refuses 1 document: " in filled.status()["warnings"][3]["message"]
    cache = filled.project.cache.model_copy(update={"preserve": False})
    without = describe_status(filled.project.model_copy(update={"cache": cache}), filled.source, filled.database)
    assert [each["code"] for each in without["warnings"]] == ["no_start", "waiting", "quarantine", "refused"]
    assert {name: filled.status()[name] for name in ("documents", "waiting", "quarantined")} == {
        "documents": 2,
        "waiting": 2,
        "quarantined": 1,
    }


@pytest.mark.parametrize(
    ("counts", "warnings", "message"),
    [
        ({"fetched": 1, "fetch_failures": 2, "login_failures": 2}, ["login"], "most pages of the last run failed"),
        (
            {"fetched": 0, "fetch_failures": 2, "login_failures": 2, "no_start": 1},
            ["no_start", "login"],
            "no start URL",
        ),
        (
            {"fetched": 9, "fetch_failures": 2, "login_failures": 2, "no_start": 1},
            ["no_start", "login"],
            "no start URL",
        ),
    ],
)
def test_status_when_a_run_ended_with_8_then_says_whether_the_login_or_the_start_failed(
    filled: FilledStore, counts: dict[str, int], warnings: list[str], message: str
) -> None:
    filled.admit("/a", "/b")
    filled.settle("/a", 959)
    filled.settle("/b", 959)
    filled.run.count(**counts, discovered=counts["fetched"] + counts["fetch_failures"])
    filled.end(exit_code=8)

    assert warned(filled) == warnings
    assert message in filled.status()["warnings"][0]["message"]
    assert not {"login_failures", "no_start"} & set(filled.status()["counts"])


def test_cache_figures_when_documents_are_cached_then_records_and_files_are_counted(filled: FilledStore) -> None:
    filled.fetch("/a", "/b")
    filled.fetch("/c", code=952)
    folder = filled.project.cache_dir / "demo"
    folder.mkdir(parents=True)
    (folder / "00000001.warc.gz").write_bytes(b"12345")

    found = count_cache(filled.project, filled.database, "demo")

    assert found == {"source": "demo", "records": 2, "segments": 1, "bytes": 5}
    assert count_cache(filled.project, filled.database, "never")["records"] == 0


def test_status_when_pages_are_empty_without_their_scripts_then_names_the_key_that_renders_them(
    filled: FilledStore,
) -> None:
    filled.run.count(shells=2)
    filled.end(exit_code=0)

    assert warned(filled) == ["needs_javascript"]
    said = filled.status()["warnings"][0]["message"]
    assert said.startswith("2 pages that the last run read have next to no text without JavaScript: [render] mode")
    assert "shells" not in filled.status()["counts"]


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


def test_runs_when_a_source_is_named_then_its_own_however_many_there_are(filled: FilledStore) -> None:
    with filled.database.write_once() as transaction:
        other = run_table.find_or_add_source(transaction, "other")
        for _ in range(510):
            run = run_table.start(transaction, other, fingerprint="", now_ms=1)
            run_table.end(transaction, run.id, now_ms=2, reason="finished", exit_code=0)

    assert [run["source"] for run in list_runs(filled.database, None)] == ["other"] * 510 + ["demo"]
    assert [run["source"] for run in list_runs(filled.database, "demo")] == ["demo"]
    assert {run["kind"] for run in list_runs(filled.database, "other")} <= set(RunKind)
    assert [*list_runs(filled.database, "never")] == []
    assert (is_known(filled.database, "other"), is_known(filled.database, "never")) == (True, False)
