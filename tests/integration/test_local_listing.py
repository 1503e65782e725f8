"""The documents of a source in the embedded index by rising id, in linear time (L4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl import urls
from searchcrawl.index.local import receiver, search
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument


def test_scan_when_it_is_of_a_source_or_of_all_then_each_document_once_by_rising_id(tmp_path: Path) -> None:
    receiver = LocalReceiver(tmp_path / "all")
    ids = {
        name: [urls.document_id(name, f"http://a.test/{number}") for number in range(50)]
        for name in ("a", "a-b", "a_b", "ab", "b", "0")
    }
    # More than are read at once.
    ids["a-b"] += [urls.document_id("a-b", f"http://b.test/{number}") for number in range(12_000)]
    ids["a-b"] += ["a-b:!", "a-b:5", "a-b:zz"]
    # Of another source than their ids say, of none that can be one, and with ids that are none of ours.
    ids["a"] += [f"b:{'0' * 32}", "a:!", "odd"]
    ids["Not A Name:x"] = ["Not A Name:x:1", f"a:{'f' * 32}"]
    empty = list(receiver.scan(None))
    for name, each in ids.items():
        documents = [IndexedDocument(id=document_id, fields={"title": "a"}) for document_id in each]
        receiver.deliver(Batch(number=1, source=name, crawl_version=1, documents=documents))

    listed = [entry.id for entry in receiver.scan(None)]

    assert empty == []
    assert {name: [entry.id for entry in receiver.scan(name)] for name in ids} == {
        name: sorted(each) for name, each in ids.items()
    }
    assert listed == sorted(document_id for each in ids.values() for document_id in each)
    assert receiver.purge() == 0
    assert [entry.id for entry in receiver.scan(None)] == listed
    receiver.close()


@pytest.mark.parametrize("source", ["a", None])
def test_scan_when_many_ids_begin_alike_then_they_are_taken_in_parts_and_no_query_pages_through_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None
) -> None:
    asked: list[int] = []

    def find_by_id(*given: Any, **named: Any) -> Any:
        asked.append(named["offset"])
        return search.find_by_id(*given, **named)

    monkeypatch.setattr(receiver, "_PAGE_DOCUMENTS", 50)
    monkeypatch.setattr(receiver, "find_by_id", find_by_id)
    embedded = LocalReceiver(tmp_path / "alike")
    ids = [urls.document_id("a", f"http://a.test/{number}") for number in range(2_000)]
    ids += [f"a:{number:032x}" for number in range(300)]
    documents = [IndexedDocument(id=each, fields={"title": "a"}) for each in ids]
    embedded.deliver(Batch(number=1, source="a", crawl_version=1, documents=documents))

    assert [entry.id for entry in embedded.scan(source)] == sorted(ids)
    assert asked == [0]
    embedded.close()
