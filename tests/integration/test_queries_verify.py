"""Index and table compared: a real store and a real local index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from searchcrawl import urls
from searchcrawl.comparison.differences import list_crawled_sources
from searchcrawl.exceptions import IndexUnavailable, UnsupportedByIndex
from searchcrawl.index.receiver import Batch, IndexEntry
from searchcrawl.items import Removal
from searchcrawl.store.run_schema import batches
from searchcrawl.store.schema import documents
from searchcrawl.store.states import BatchState, DocumentState
from tests.filled_store import SITE, FilledStore
from tests.redelivering import Watched

KINDS = ("missing", "extra", "stale", "foreign")


@pytest.fixture(autouse=True)
def deliveries_are_visible(filled: FilledStore) -> None:
    filled.commits = True


def drop(filled: FilledStore, path: str) -> None:
    """Takes a document out of the index behind the table's back."""
    removal = Removal(id=urls.document_id("demo", SITE + path), url=SITE + path, code=404)
    filled.index.deliver(Batch(number=2, source="demo", crawl_version=1 << 50, removals=[removal]))


def urls_of(found: dict[str, Any], kind: str) -> list[str]:
    return [entry["url"].removeprefix(SITE) for entry in found[kind]]


def test_verify_when_nothing_was_crawled_then_ok(filled: FilledStore) -> None:
    assert filled.verify() == {"ok": True, "missing": [], "extra": [], "stale": [], "foreign": [], "repaired": 0}


def test_verify_when_index_and_table_agree_then_ok(filled: FilledStore) -> None:
    filled.fetch(*(f"/{number}" for number in range(1200)))
    filled.send()
    filled.fetch("/waits")

    assert filled.verify()["ok"]
    assert filled.verify(only="demo")["ok"]


def test_verify_when_they_differ_then_each_difference_is_named_exactly(filled: FilledStore) -> None:
    filled.fetch(*(f"/{number}" for number in range(20)))
    version = filled.send()
    lost, altered, old = (f"{SITE}/{number}" for number in (3, 4, 5))
    removal = Removal(id=urls.document_id("demo", lost), url=lost, code=404)
    filled.index.deliver(Batch(number=2, source="demo", crawl_version=version + 1, removals=[removal]))
    filled.put([filled.document(old, checksum="")], version + 2)
    filled.put([filled.document(f"{SITE}/new", checksum="")], version)
    filled.put([filled.document(f"{SITE}/other", checksum="", source="other")], version, source="other")
    with filled.database.write_once() as transaction:
        other = update(documents).where(documents.c.url_id == filled.ids["/4"]).values(fields_digest=bytes(32))
        transaction.execute(other)

    found = filled.verify()

    assert not found["ok"]
    assert [entry["url"] for entry in found["missing"]] == [lost]
    assert [entry["id"] for entry in found["missing"]] == [urls.document_id("demo", lost)]
    assert {entry["url"] for entry in found["stale"]} == {altered, old}
    assert [entry["url"] for entry in found["extra"]] == [f"{SITE}/new"]
    assert [entry["url"] for entry in found["foreign"]] == [f"{SITE}/other"]
    assert filled.verify(only="demo") == {**found, "foreign": []}


def test_verify_when_documents_differ_then_each_names_the_command_that_mends_it(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.fetch("/lost", "/old", "/cut")
    version = filled.send()
    for path in ("/lost", "/cut"):
        drop(filled, path)
    filled.put([filled.document(f"{SITE}/old", checksum="")], version + 1)
    made = filled.document(f"{SITE}/extra", checksum="")
    filled.put([replace(made, fields={**made.fields, "access_url": f"{SITE}/extra"})], version)
    filled.put([filled.document(f"{SITE}/nobody", checksum="")], version)
    filled.put([filled.document(f"{SITE}/other", checksum="", source="other")], version, source="other")
    with filled.database.write_once() as transaction:
        cut = update(documents).where(documents.c.url_id == filled.ids["/cut"])
        transaction.execute(cut.values(state=int(DocumentState.SENDING)))
    filled.end()
    scan = filled.index.scan
    theirs = IndexEntry("~ theirs", 0, "", f"{SITE}/theirs")
    monkeypatch.setattr(filled.index, "scan", lambda source: iter([*scan(source), theirs]))

    found = filled.verify()

    why = {each["url"].removeprefix(SITE): each["why"].partition("; ")[2] for kind in KINDS for each in found[kind]}
    assert why == {
        "/lost": "to send it again: searchcrawl verify demo --repair",
        "/old": "to send it again: searchcrawl verify demo --repair",
        "/cut": "its delivery was cut off, to go on with it: searchcrawl flush demo",
        "/extra": "to remove it, or to have its page visited, which decides: searchcrawl verify demo --repair",
        "/nobody": "to remove it, or to have its page visited, which decides: searchcrawl verify demo --repair",
        "/other": "put sources/other.toml back, or searchcrawl delete other",
        "/theirs": "searchcrawl did not make it: only the index itself can delete it",
    }


def test_verify_when_the_index_is_empty_then_all_are_missing(filled: FilledStore, tmp_path: Path) -> None:
    filled.fetch(*(f"/{number}" for number in range(1200)))
    filled.send()
    empty = type(filled.index)(tmp_path / "empty")

    found = filled.verify(empty)

    assert {entry["url"].removeprefix(SITE) for entry in found["missing"]} == set(filled.ids)
    assert len(found["missing"]) == 1200


def test_verify_when_a_changed_document_waits_then_its_old_form_is_no_difference(filled: FilledStore) -> None:
    filled.fetch("/page")
    filled.send()
    with filled.database.write_once() as transaction:
        transaction.execute(update(documents).values(fields_digest=bytes(32), state=int(DocumentState.CACHED)))

    assert filled.verify()["ok"]


def between(filled: FilledStore, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Has something happen after the index was listed, and before ``verify`` gets to see the list."""
    scan = filled.index.scan

    def list_then_act(source: str | None) -> Iterator[IndexEntry]:
        entries = list(scan(source))
        happens()
        return iter(entries)

    monkeypatch.setattr(filled.index, "scan", list_then_act)


def test_verify_when_a_delivery_happens_between_both_reads_then_it_is_no_difference(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.fetch("/changed", "/stays", "/lost")
    filled.send()
    drop(filled, "/lost")

    def deliver() -> None:
        filled.fetch("/changed", "/new")
        filled.send()

    between(filled, monkeypatch, deliver)
    found = filled.verify()

    assert {kind: urls_of(found, kind) for kind in KINDS} == {
        "missing": ["/lost"],
        "extra": [],
        "stale": [],
        "foreign": [],
    }


def test_verify_when_a_delivery_happens_during_the_second_look_then_it_is_no_difference(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deliver() -> None:
        filled.fetch("/changed")
        filled.send()

    find_versions = filled.index.find_versions

    def find_then_deliver(ids: Collection[str]) -> Mapping[str, int]:
        versions = find_versions(ids)
        deliver()
        return versions

    deliver()
    between(filled, monkeypatch, deliver)
    monkeypatch.setattr(filled.index, "find_versions", find_then_deliver)

    assert filled.verify()["ok"]


@pytest.mark.parametrize("state", [DocumentState.SENDING, DocumentState.REMOVING])
def test_verify_when_documents_are_under_way_then_a_difference_only_without_a_process(
    filled: FilledStore, state: DocumentState
) -> None:
    filled.fetch("/moves", "/stays")
    filled.send()
    drop(filled, "/moves")
    with filled.database.write_once() as transaction:
        transaction.execute(
            update(documents).where(documents.c.url_id == filled.ids["/moves"]).values(state=int(state))
        )

    crawled = filled.verify()
    filled.end()
    left = filled.verify()

    assert crawled["ok"]
    assert urls_of(left, "missing") == ["/moves"]


def test_verify_when_a_delivery_is_not_visible_yet_then_a_difference_only_without_a_process(
    filled: FilledStore,
) -> None:
    filled.fetch("/waits")
    filled.send()
    drop(filled, "/waits")
    with filled.database.write_once() as transaction:
        transaction.execute(update(batches).values(state=int(BatchState.ACKNOWLEDGED)))

    crawled = filled.verify()
    filled.end()

    assert crawled["ok"]
    assert urls_of(filled.verify(), "missing") == ["/waits"]


def test_verify_when_a_removal_is_not_visible_yet_then_a_difference_only_without_a_process(filled: FilledStore) -> None:
    filled.fetch("/leaves")
    filled.send()
    with filled.database.write_once() as transaction:
        transaction.execute(
            update(documents).values(indexed_version=None, batch_id=None, state=int(DocumentState.NONE))
        )
        transaction.execute(update(batches).values(state=int(BatchState.ACKNOWLEDGED), removals=1))

    crawled = filled.verify()
    filled.end()

    assert crawled["ok"]
    assert urls_of(filled.verify(), "extra") == ["/leaves"]


def test_verify_when_a_receipt_was_lost_then_neither_presence_nor_absence_is_a_difference(filled: FilledStore) -> None:
    filled.fetch("/there", "/absent")
    filled.send()
    drop(filled, "/absent")
    with filled.database.write_once() as transaction:
        transaction.execute(update(documents).values(indexed_version=0))

    assert filled.verify()["ok"]


def test_verify_when_somebody_else_wrote_a_document_then_it_is_foreign_whatever_its_id(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = IndexEntry("theirs, not ours", 0, "", "http://theirs.test/")
    monkeypatch.setattr(filled.index, "scan", lambda source: iter([entry]))

    assert [each["id"] for each in filled.verify()["foreign"]] == [entry.id]


def test_verify_when_the_receiver_cannot_list_then_refused(filled: FilledStore) -> None:
    with pytest.raises(UnsupportedByIndex, match="Watched cannot list"):
        filled.verify(Watched(filled))


def test_being_crawled_when_a_process_holds_the_source_then_it_is_named(filled: FilledStore) -> None:
    during = list_crawled_sources(filled.database, ["demo", "other"])
    filled.end()

    assert during == ["demo"]
    assert list_crawled_sources(filled.database, ["demo", "other"]) == []


@pytest.mark.parametrize("scrambled", [lambda entries: entries[::-1], lambda entries: sorted(entries * 2)])
def test_verify_when_the_index_lists_in_another_order_or_twice_then_nothing_is_named(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch, scrambled: Callable[[list[Any]], list[Any]]
) -> None:
    filled.fetch("/1", "/2", "/3")
    filled.send()
    entries = scrambled(list(filled.index.scan("demo")))
    monkeypatch.setattr(filled.index, "scan", lambda source: iter(entries))

    with pytest.raises(IndexUnavailable, match="not by rising id"):
        filled.verify(only="demo")
