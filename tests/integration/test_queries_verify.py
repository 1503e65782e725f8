"""Index and table compared: a real store and a real local index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from searchcrawl import urls
from searchcrawl.exceptions import IndexUnavailable, UnsupportedByIndex
from searchcrawl.index.receiver import Batch, Receipt
from searchcrawl.items import Removal
from searchcrawl.queries.verify import list_crawled_sources, verify
from searchcrawl.store.schema import documents
from searchcrawl.store.states import DocumentState
from tests.filled_store import SITE, FilledStore


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[FilledStore]:
    store = FilledStore(tmp_path, store_url)
    yield store
    store.close()


class Deaf:
    """A receiver that takes documents and answers no question; refuses removals of ``refused``."""

    def __init__(self, refused: str = "") -> None:
        self._refused = refused

    def begin(self, source: str, run: int) -> None:
        pass

    def deliver(self, batch: Batch) -> list[Receipt]:
        return [Receipt(each.id, accepted=each.url != self._refused) for each in batch.removals]

    def end(self, outcome: str) -> None:
        pass


def verified(filled: FilledStore, *, only: str | None = None) -> dict[str, Any]:
    return verify(filled.database, filled.index, ["demo"], only=only)


def test_verify_when_nothing_was_crawled_then_ok(filled: FilledStore) -> None:
    assert verified(filled) == {"ok": True, "missing": [], "extra": [], "stale": [], "foreign": [], "repaired": 0}


def test_verify_when_index_and_table_agree_then_ok(filled: FilledStore) -> None:
    filled.fetch(*(f"/{number}" for number in range(1200)))
    filled.send()
    filled.fetch("/waits")

    assert verified(filled)["ok"]
    assert verified(filled, only="demo")["ok"]


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

    found = verified(filled)

    assert not found["ok"]
    assert [entry["url"] for entry in found["missing"]] == [lost]
    assert [entry["id"] for entry in found["missing"]] == [urls.document_id("demo", lost)]
    assert {entry["url"] for entry in found["stale"]} == {altered, old}
    assert [entry["url"] for entry in found["extra"]] == [f"{SITE}/new"]
    assert [entry["url"] for entry in found["foreign"]] == [f"{SITE}/other"]
    assert verified(filled, only="demo") == {**found, "foreign": []}


def test_verify_when_the_index_is_empty_then_all_are_missing(filled: FilledStore, tmp_path: Path) -> None:
    filled.fetch(*(f"/{number}" for number in range(1200)))
    filled.send()
    empty = type(filled.index)(tmp_path / "empty")

    found = verify(filled.database, empty, ["demo"], only=None)

    assert {entry["url"].removeprefix(SITE) for entry in found["missing"]} == set(filled.ids)
    assert len(found["missing"]) == 1200


def test_verify_when_a_changed_document_waits_then_its_old_form_is_no_difference(filled: FilledStore) -> None:
    filled.fetch("/page")
    filled.send()
    with filled.database.write_once() as transaction:
        transaction.execute(update(documents).values(fields_digest=bytes(32), state=int(DocumentState.CACHED)))

    assert verified(filled)["ok"]


def test_verify_when_the_receiver_cannot_list_then_refused(filled: FilledStore) -> None:
    with pytest.raises(UnsupportedByIndex, match="Deaf cannot list"):
        verify(filled.database, Deaf(), ["demo"], only=None)


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
        verified(filled, only="demo")
