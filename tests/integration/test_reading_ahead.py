"""A batch of several parts: what is read while the index works on the part before (E2, D8)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery import documents
from searchcrawl.delivery.documents import read_parts
from searchcrawl.exceptions import CacheError
from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument, Place
from tests.filled_store import SITE, CachedStore
from tests.redelivering import NAMES, Watched, flush, seal, sent, states


@pytest.fixture
def filled(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[CachedStore]:
    """Four documents that wait, of which a part holds two."""
    monkeypatch.setattr(documents, "_ROWS", 2)
    store = CachedStore(tmp_path, store_url)
    store.fetch(*NAMES)
    yield store
    store.close()


def titles(batch: Batch) -> list[str]:
    return [document.fields["title"] for document in batch.documents]


def test_flush_when_there_are_several_parts_then_each_goes_once_and_in_order(filled: CachedStore) -> None:
    filled.end(exit_code=6)
    receiver = Watched(filled)

    done = flush(filled, receiver)

    assert done == sent(4)
    assert [titles(batch) for batch in receiver.batches] == [["Page /a", "Page /b"], ["Page /c", "Page /d"]]
    assert filled.verify()["ok"]


def test_flush_when_a_part_is_full_then_the_rest_of_what_was_read_is_another(
    filled: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.end(exit_code=6)
    monkeypatch.setattr(documents, "_ROWS", 3)
    monkeypatch.setattr(documents, "_CHARACTERS", 1)
    filled.damage("/b")
    receiver = Watched(filled)

    done = flush(filled, receiver)

    assert done == sent(3, to_fetch=1)
    assert [titles(batch) for batch in receiver.batches] == [["Page /a"], ["Page /c"], ["Page /d"]]
    assert states(filled) == {"/a": "indexed", "/b": "todo", "/c": "indexed", "/d": "indexed"}


def test_parts_when_one_is_held_then_the_next_has_been_read_and_no_other(
    filled: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_ROWS", 1)
    reads: list[str] = []
    second_was_read = threading.Event()
    read = documents.build_indexed_document

    def watched(row: Any, *args: Any, **kwargs: Any) -> IndexedDocument:
        reads.append(row.url.removeprefix(SITE))
        if len(reads) == 2:
            second_was_read.set()
        return read(row, *args, **kwargs)

    monkeypatch.setattr(documents, "build_indexed_document", watched)
    ahead = read_parts(filled.run, filled.cache, seal(filled).number)

    held = next(ahead)

    assert [url_id for url_id, _ in held.documents] == [filled.ids["/a"]]
    assert second_was_read.wait(30)
    # Waits for the reading thread.
    ahead.close()
    assert reads == ["/a", "/b"]


def test_flush_when_a_record_of_each_part_is_damaged_then_only_these_are_fetched_again(filled: CachedStore) -> None:
    filled.end(exit_code=6)
    filled.damage("/b", "/c", "/d")

    done = flush(filled)

    assert done == sent(1, to_fetch=3)
    assert states(filled) == {"/a": "indexed", "/b": "todo", "/c": "todo", "/d": "todo"}
    assert filled.indexed_urls() == ["/a"]


def test_flush_when_a_page_was_fetched_anew_since_its_record_was_found_damaged_then_the_new_one_stays(
    filled: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(filled)
    filled.damage("/d")
    met: list[str] = []
    was_tried = threading.Event()
    read = DocumentCache.read_fields

    def watched(cache: DocumentCache, place: Place, *, url: str | None = None) -> dict[str, Any]:
        try:
            return read(cache, place, url=url)
        finally:
            if url == f"{SITE}/d":
                was_tried.set()

    def refetched(batch: Batch) -> None:
        # The crawl goes on while the index works on the first part.
        if not met:
            assert was_tried.wait(30)
            filled.run.lease = filled.find_lease()
            filled.fetch("/d")
        met.extend(titles(batch))

    monkeypatch.setattr(DocumentCache, "read_fields", watched)

    filled.end(exit_code=6)

    done = flush(filled, Watched(filled, refetched))

    assert done == sent(4, to_fetch=1)
    assert met == ["Page /a", "Page /b", "Page /c", "Page /d"]
    assert states(filled) == dict.fromkeys(NAMES, "indexed")


def test_flush_when_the_cache_fails_behind_the_first_part_then_its_receipts_stay_and_the_rest_waits(
    filled: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.end(exit_code=6)
    read = documents.build_indexed_document

    def failing(row: Any, *args: Any, **kwargs: Any) -> IndexedDocument:
        if row.url.endswith("/c"):
            raise CacheError("permission denied")
        return read(row, *args, **kwargs)

    monkeypatch.setattr(documents, "build_indexed_document", failing)
    receiver = Watched(filled)

    with pytest.raises(CacheError, match="permission denied"):
        flush(filled, receiver)
    first = states(filled)
    monkeypatch.setattr(documents, "build_indexed_document", read)
    rest = Watched(filled)
    done = flush(filled, rest)

    assert [titles(batch) for batch in receiver.batches] == [["Page /a", "Page /b"]]
    assert {name: first[name] for name in ("/a", "/b")} == {"/a": "indexed", "/b": "indexed"}
    assert done == sent(2)
    assert [titles(batch) for batch in rest.batches] == [["Page /c", "Page /d"]]
    assert filled.verify()["ok"]
