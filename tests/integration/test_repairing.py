"""Differences between table and index mended: a real store, cache and local index (L4)."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import select, update

from searchcrawl import urls
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch
from searchcrawl.items import Removal
from searchcrawl.operations.repairing import Repair
from searchcrawl.run import begin
from searchcrawl.store import batch_table
from searchcrawl.store.run_schema import batches
from searchcrawl.store.schema import documents
from searchcrawl.store.schema import urls as url_rows
from searchcrawl.store.states import DocumentState
from tests.filled_store import SITE, CachedStore
from tests.redelivering import Doubtful, Solid, flush, states
from tests.tampering import tamper

pytestmark = pytest.mark.extended

GOOD: Final = {"missing": [], "extra": [], "stale": [], "foreign": []}
#: A version that no delivery had.
NEWER: Final = 1 << 50


def id_of(path: str, source: str = "demo") -> str:
    return urls.document_id(source, SITE + path)


def fields(path: str, version: int, source: str = "demo", **more: Any) -> dict[str, Any]:
    """A document as somebody else may have put it into the index."""
    url = SITE + path
    return {"url": url, "access_url": url, "source": source, "title": "odd", "crawl_version": version, **more}


def repair(
    cached: CachedStore, index: Any = None, *, only: str | None = None, foreign: bool = False, yes: bool = False
) -> tuple[dict[str, Any], Repair]:
    given = index or cached.index
    doing = Repair(
        project=cached.project,
        database=cached.database,
        index=given,
        sources=["demo"],
        with_foreign=foreign or only is not None,
        beyond_limits=yes,
        retry_seconds=0,
    )
    found = cached.verify(given, only=only, treat=doing.treat)
    return found, doing


def verified(cached: CachedStore) -> dict[str, list[str]]:
    found = cached.verify()
    return {kind: [each["url"].removeprefix(SITE) for each in found[kind]] for kind in GOOD}


def fill(cached: CachedStore, documents: int) -> list[str]:
    """Delivers documents in two deliveries, and ends the run; their paths."""
    paths = [f"/{number}" for number in range(documents)]
    for half in (paths[::2], paths[1::2]):
        cached.fetch(*half)
        flush_here(cached)
    cached.end()
    return paths


def flush_here(cached: CachedStore) -> None:
    cached.end()
    flush(cached)
    cached.run = begin(cached.project, cached.source, cached.database)


def contents(cached: CachedStore) -> dict[str, str]:
    return {
        entry.url.removeprefix(SITE): entry.checksum
        for entry in cached.index.scan("demo")
        if entry.id.startswith("demo:")
    }


def test_repair_when_documents_were_removed_altered_and_added_then_exactly_these_are_mended(
    cached: CachedStore,
) -> None:
    paths = fill(cached, 1200)
    before = contents(cached)
    entries = {entry.url.removeprefix(SITE): entry for entry in cached.index.scan("demo")}
    removed, changed, older = paths[:300], paths[300:600], paths[600:900]
    added = [f"/added{number}" for number in range(100)]
    version = entries["/0"].crawl_version
    tamper(
        cached.project,
        removed=map(id_of, removed),
        put={
            **{id_of(path): fields(path, entries[path].crawl_version, checksum="00") for path in changed},
            **{id_of(path): fields(path, 1, checksum=before[path]) for path in older},
            **{id_of(path): fields(path, version) for path in added},
            "theirs": fields("/theirs", 1, source="theirs"),
        },
    )
    sent = Solid(cached)

    found, doing = repair(cached, sent)

    listed = {kind: {each["url"].removeprefix(SITE) for each in found[kind]} for kind in GOOD}
    delivered = {each.fields["url"].removeprefix(SITE) for batch in sent.batches for each in batch.documents}
    assert listed == {
        "missing": set(removed),
        "stale": {*changed, *older},
        "extra": set(added),
        "foreign": {"/theirs"},
    }
    assert (found["ok"], found["repaired"]) == (False, 1000)
    assert delivered == {*removed, *changed, *older}
    assert verified(cached) == {**GOOD, "foreign": ["/theirs"]}
    assert contents(cached) == before
    assert (doing.held_back, doing.to_visit, doing.errors) == ({}, {}, [])
    assert set(states(cached).values()) == {"indexed"}


def test_repair_when_nothing_differs_then_nothing_is_sent_and_no_lease_is_taken(cached: CachedStore) -> None:
    cached.fetch("/a")
    flush_here(cached)
    sent = Solid(cached)

    found, doing = repair(cached, sent)

    assert found == {"ok": True, **GOOD, "repaired": 0}
    assert (sent.batches, doing.errors) == ([], [])


def test_repair_when_the_source_is_crawled_then_it_is_named_and_nothing_is_changed(cached: CachedStore) -> None:
    fill(cached, 3)
    cached.run = begin(cached.project, cached.source, cached.database)
    tamper(cached.project, removed=[id_of("/0")])

    found, doing = repair(cached)

    assert (found["repaired"], len(doing.errors), verified(cached)["missing"]) == (0, 1, ["/0"])


@pytest.mark.parametrize("yes", [False, True])
def test_repair_when_removals_pass_the_limits_then_none_is_removed_without_yes(cached: CachedStore, yes: bool) -> None:
    fill(cached, 30)
    version = next(iter(cached.index.scan("demo"))).crawl_version
    added = [f"/added{number:02}" for number in range(11)]
    tamper(cached.project, removed=[id_of("/0")], put={id_of(path): fields(path, version) for path in added})

    found, doing = repair(cached, yes=yes)

    assert (found["ok"], found["repaired"]) == ((True, 12) if yes else (False, 1))
    assert sorted(verified(cached)["extra"]) == ([] if yes else added)
    assert [limits.candidates for limits in doing.held_back.values()] == ([] if yes else [11])
    assert yes or all("--yes" in each["why"] for each in found["extra"])


def test_repair_when_called_again_and_again_then_its_removals_count_together(cached: CachedStore) -> None:
    fill(cached, 30)
    version = next(iter(cached.index.scan("demo"))).crawl_version

    gone = []
    for turn in range(3):
        added = [f"/{turn}/{number}" for number in range(5)]
        tamper(cached.project, put={id_of(path): fields(path, version) for path in added})
        gone.append(repair(cached)[0]["repaired"])

    assert gone == [5, 5, 0]


def test_repair_when_a_process_died_before_it_removed_what_it_had_counted_then_it_counts_once(
    cached: CachedStore,
) -> None:
    fill(cached, 30)
    version = next(iter(cached.index.scan("demo"))).crawl_version
    tamper(cached.project, put={id_of(f"/added{each}"): fields(f"/added{each}", version) for each in range(8)})
    cached.database.write(batch_table.add_batch, cached.run.source_id, cached.run.id, version, removals=8)

    found, _ = repair(cached)

    assert (found["ok"], found["repaired"]) == (True, 8)


@pytest.mark.parametrize("state", ["newer", "tombstones"])
def test_repair_when_the_index_is_newer_than_the_store_then_pages_decide_about_what_the_store_never_sent(
    cached: CachedStore, state: str
) -> None:
    """A store that was put back from a copy: the index has later versions, later documents and later removals."""
    paths = fill(cached, 40)
    kept = {entry.url.removeprefix(SITE): entry.crawl_version for entry in cached.index.scan("demo")}
    later = [f"/later{number:02}" for number in range(20)]
    if state == "newer":
        put = {id_of(path): fields(path, NEWER, checksum="00") for path in [*later, *paths[:5]]}
        same = {id_of(path): fields(path, NEWER, checksum=contents(cached)[path]) for path in paths[5:8]}
        odd = {f"demo:{'0' * 32}": fields("/odd", NEWER)}
        tamper(cached.project, removed=[id_of(paths[8])], put={**put, **same, **odd})
    gone = [Removal(id=id_of(path), url=SITE + path, code=404) for path in paths[9:12]]
    cached.index.deliver(Batch(number=9, source="demo", crawl_version=NEWER, removals=gone))

    found, doing = repair(cached, yes=True)

    now = {entry.url.removeprefix(SITE): entry.crawl_version for entry in cached.index.scan("demo")}
    sent = {path for path in paths if path in now and now[path] > kept[path] and now[path] != NEWER}
    visited = {path for path, state in states(cached).items() if state == "todo"}
    expected = {*paths[9:12]} if state == "tombstones" else {*paths[9:12], *paths[:5], *later}
    assert found["ok"] is False
    assert sent == (set() if state == "tombstones" else {*paths[5:9]})
    assert visited == expected
    assert doing.to_visit == {"demo": len(expected)}
    assert found["repaired"] == (0 if state == "tombstones" else 5)
    assert verified(cached) == GOOD
    assert set(now) == ({*paths, *later} if state == "newer" else set(paths)) - {*paths[9:12]}


def test_repair_when_the_cache_has_lost_a_record_then_its_page_is_visited(cached: CachedStore) -> None:
    paths = fill(cached, 4)
    with cached.database.write_once() as transaction:
        lost = update(documents).where(documents.c.url_id == cached.ids["/0"])
        transaction.execute(lost.values(segment=None))
    cached.damage("/1")
    tamper(cached.project, removed=map(id_of, paths[:3]))

    found, doing = repair(cached)

    assert (found["ok"], found["repaired"], doing.to_visit) == (False, 1, {"demo": 2})
    assert {path: state for path, state in states(cached).items() if state == "todo"} == {"/0": "todo", "/1": "todo"}
    assert sorted(contents(cached)) == ["/2", "/3"]


def test_repair_when_the_cache_is_gone_then_pages_are_visited_and_no_record_is_looked_for(
    cached: CachedStore, caplog: pytest.LogCaptureFixture
) -> None:
    paths = fill(cached, 4)
    shutil.rmtree(cached.project.cache_dir / "demo")
    tamper(cached.project, removed=map(id_of, paths))

    found, doing = repair(cached)

    assert (found["repaired"], doing.to_visit) == (0, {"demo": 4})
    assert [record.getMessage() for record in caplog.records if "segment" in record.getMessage()] == [
        "demo: segment 1 of the cache is gone: its pages are fetched again"
    ]


def test_repair_when_documents_may_not_be_indexed_or_wait_then_each_is_treated_as_what_it_is(
    cached: CachedStore,
) -> None:
    paths = fill(cached, 6)
    with cached.database.write_once() as transaction:
        for path, values in {
            "/0": {"state": int(DocumentState.NONE), "leaving": 1},
            "/1": {"state": int(DocumentState.WITHHELD), "duplicate_of": cached.ids["/5"], "indexed_version": None},
            "/2": {"state": int(DocumentState.WITHHELD), "index_error": "immense"},
            "/3": {"state": int(DocumentState.CACHED)},
            "/4": {"state": int(DocumentState.QUARANTINED), "held_state": int(DocumentState.PRESENT)},
        }.items():
            transaction.execute(update(documents).where(documents.c.url_id == cached.ids[path]).values(**values))
    tamper(cached.project, removed=[id_of(path) for path in paths if path not in {"/1", "/5"}])

    found, _ = repair(cached)

    assert (found["ok"], found["repaired"]) == (True, 5)
    assert sorted(contents(cached)) == ["/2", "/3", "/4", "/5"]
    assert verified(cached) == GOOD
    assert states(cached)["/2"] == "indexed"


@pytest.mark.parametrize("yes", [False, True])
def test_repair_when_a_source_is_gone_then_its_documents_leave_where_it_is_named_within_the_limits(
    cached: CachedStore, yes: bool
) -> None:
    fill(cached, 20)
    version = next(iter(cached.index.scan("demo"))).crawl_version
    tamper(cached.project, put={id_of("/rowless"): fields("/rowless", version)})
    doing = Repair(
        project=cached.project,
        database=cached.database,
        index=cached.index,
        sources=["other"],
        with_foreign=True,
        beyond_limits=yes,
        retry_seconds=0,
    )
    unnamed = replace(doing, with_foreign=False)

    kept = cached.verify(sources=["other"], only=None, treat=unnamed.treat)
    found = cached.verify(sources=["other"], only="demo", treat=doing.treat)

    assert (kept["repaired"], len(kept["foreign"])) == (0, 21)
    assert (found["ok"], found["repaired"], len(found["foreign"])) == ((True, 21, 21) if yes else (False, 0, 21))
    assert len(cached.indexed_urls()) == (0 if yes else 21)


def test_repair_when_the_index_has_documents_of_others_then_they_are_left_alone(cached: CachedStore) -> None:
    fill(cached, 3)
    theirs = {"stranger:1": "stranger", f"unknown:{'0' * 32}": "unknown", "demo,1": "x", "plain": "demo"}
    tamper(cached.project, put={id_: fields(f"/{id_}", 1, source=source) for id_, source in theirs.items()})

    found, _ = repair(cached, foreign=True, yes=True)

    assert (found["repaired"], {each["id"] for each in found["foreign"]}) == (0, set(theirs))
    assert len(cached.indexed_urls()) == 7


@pytest.mark.parametrize(
    ("part", "finds", "sent"), [(slice(0), True, 0), (slice(10), True, 0), (slice(0), False, 20)],
    ids=["lists nothing", "lists half", "answers as if empty"],
)  # fmt: skip
def test_repair_when_the_index_answers_wrongly_then_nothing_is_removed(
    cached: CachedStore, part: slice, finds: bool, sent: int
) -> None:
    paths = fill(cached, 20)
    doubtful = Doubtful(cached, part, finds=finds)

    repair(cached, doubtful, yes=True)

    assert [len(batch.removals) for batch in doubtful.batches if batch.removals] == []
    assert sum(len(batch.documents) for batch in doubtful.batches) == sent
    assert (sorted(contents(cached)), verified(cached)) == (sorted(paths), GOOD)


def test_repair_when_the_index_is_that_of_another_project_then_its_documents_stay_without_yes(
    cached: CachedStore, tmp_path: Path
) -> None:
    paths = fill(cached, 20)
    version = next(iter(cached.index.scan("demo"))).crawl_version
    other = cached.project.model_copy(update={"index": cached.project.index.model_copy(update={"path": "var/other"})})
    shutil.copytree(cached.project.index_dir, other.index_dir)
    theirs = {id_of(f"/their{number}"): fields(f"/their{number}", version) for number in range(20)}
    tamper(other, removed=map(id_of, paths), put=theirs)
    with closing(LocalReceiver(other.index_dir)) as index:
        found, doing = repair(cached, index)
        there = {entry.url.removeprefix(SITE) for entry in index.scan("demo")}

    assert (found["repaired"], list(doing.held_back)) == (20, ["demo"])
    assert there == {*paths, *(f"/their{number}" for number in range(20))}


def test_repair_when_the_clock_is_behind_then_what_is_sent_is_newer_all_the_same(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cached, 4)
    entries = {entry.url.removeprefix(SITE): entry for entry in cached.index.scan("demo")}
    tamper(cached.project, put={id_of("/0"): fields("/0", entries["/0"].crawl_version, checksum="00")})
    monkeypatch.setattr("searchcrawl.clock.now_ms", lambda: 1)

    found, _ = repair(cached)

    assert (found["ok"], verified(cached)) == (True, GOOD)


def test_repair_when_the_index_goes_away_then_the_next_call_completes_it(cached: CachedStore) -> None:
    paths = fill(cached, 30)
    version = next(iter(cached.index.scan("demo"))).crawl_version
    added = {id_of(f"/added{number}"): fields(f"/added{number}", version) for number in range(8)}
    tamper(cached.project, removed=map(id_of, paths[:5]), put=added)

    def fail_for_removals(batch: Batch) -> None:
        if batch.removals:
            raise IndexUnavailable("connection refused")

    with pytest.raises(IndexUnavailable):
        repair(cached, Solid(cached, fail_for_removals))
    found, _ = repair(cached)

    assert (found["ok"], found["repaired"], verified(cached)) == (True, 8, GOOD)
    with cached.database.read_once() as transaction:
        assert set(transaction.execute(select(batches.c.state)).scalars()) == {2}
        assert transaction.execute(select(url_rows.c.id).where(url_rows.c.url.contains("added"))).all() == []
