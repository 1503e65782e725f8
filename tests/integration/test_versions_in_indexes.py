"""Documents that come late, twice or after their removal, and the versions that an index has: both indexes alike (X-I4, X-I7)."""

from __future__ import annotations

from dataclasses import replace

from searchcrawl.index.receiver import Receipt, SearchIndex, SearchQuery
from searchcrawl.items import IndexedDocument
from tests.index_documents import batch, document


def found(index: SearchIndex, words: str) -> set[str]:
    index.commit()
    return {hit.id for hit in index.search(SearchQuery(words=words, rows=1000)).hits}


def test_i4_deliver_when_a_document_is_late_or_as_old_then_the_other_one_stays_and_a_newer_one_replaces_it(
    index: SearchIndex,
) -> None:
    index.deliver(batch(document("a", content="known"), document("b", content="stays"), version=5))

    late = [
        index.deliver(batch(document("a", content=text), version=version))
        for version, text in ((4, "older"), (5, "same"))
    ]
    after_late = found(index, "known"), found(index, "older OR same")
    index.deliver(batch(document("a", content="newer"), version=6))

    assert late == [[Receipt("a", True)]] * 2
    assert after_late == ({"a"}, set())
    assert (found(index, "newer"), found(index, "known"), found(index, "stays")) == ({"a"}, set(), {"b"})
    assert [(entry.id, entry.crawl_version) for entry in index.scan("site")] == [("a", 6), ("b", 5)]


def test_i4_deliver_when_a_document_comes_after_its_removal_then_it_stays_removed_until_newer(
    index: SearchIndex,
) -> None:
    index.deliver(batch(document("a", content="word"), version=5))
    receipts = index.deliver(batch(version=6, removed=("a", "never-seen")))
    index.deliver(batch(document("a", content="word"), document("never-seen", content="word"), version=5))
    removed = found(index, "*"), list(index.scan(None))
    index.deliver(batch(document("a", content="word"), version=7))

    assert receipts == [Receipt("a", True), Receipt("never-seen", True)]
    assert (removed, found(index, "*")) == ((set(), []), {"a"})


def test_i7_deliver_when_a_batch_is_repeated_then_nothing_changes(index: SearchIndex) -> None:
    same = batch(document("a", checksum="1"), document("b", checksum="2"), removed=("c",))

    receipts = [index.deliver(same), index.deliver(same)]
    index.commit()

    assert receipts[0] == receipts[1]
    assert [(entry.id, entry.crawl_version, entry.checksum) for entry in index.scan(None)] == [
        ("a", 1, "1"),
        ("b", 1, "2"),
    ]


def test_scan_when_there_are_thousands_then_each_comes_once_by_id_and_without_tombstones(index: SearchIndex) -> None:
    names = sorted(f"d{number}" for number in range(2500))
    index.deliver(batch(*(document(name, checksum=f"c{name}") for name in names)))
    index.deliver(replace(batch(IndexedDocument(id="x")), source="other"))
    index.deliver(batch(version=2, removed=("d7",)))
    index.commit()

    entries = list(index.scan("site"))

    assert [entry.id for entry in entries] == [name for name in names if name != "d7"]
    assert entries[0] == ("d0", 1, "cd0", "http://example.com/d0", "", 0)
    assert [entry.id for entry in index.scan(None)][-1] == "x"


def test_find_versions_when_some_are_removed_or_unknown_then_those_of_the_others_alone(index: SearchIndex) -> None:
    empty = (dict(index.find_versions(["site:1"])), index.find_highest_version("site"))
    index.deliver(batch(*(document(f"site:{number}") for number in range(1200))))
    index.commit()
    before = index.find_highest_version("site")
    index.deliver(batch(document("site:1"), version=5, removed=("site:2",)))
    index.commit()

    versions = index.find_versions([f"site:{number}" for number in range(1, 1300)])
    last_versions = index.find_last_versions([f"site:{number}" for number in range(2300)])
    with_document = index.find_highest_version("site")
    index.deliver(batch(version=1_700_000_000_123, removed=("site:4",)))
    index.commit()

    assert empty == ({}, 0)
    assert len(last_versions) == 1200
    assert [last_versions[f"site:{number}"] for number in range(3)] == [1, 5, 5]
    assert versions == {f"site:{number}": 5 if number == 1 else 1 for number in range(1, 1200) if number != 2}
    assert dict(index.find_versions([])) == {}
    assert (before, with_document) == (1, 5)
    assert (index.find_highest_version("site"), index.find_highest_version("sit")) == (1_700_000_000_123, 0)
