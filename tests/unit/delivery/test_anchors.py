"""The texts of links are frozen anew until all are, whatever ends a process, and whether or not a disk has room (C8)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.delivery import anchors
from searchcrawl.delivery.anchors import LinkCounts, LinkedDocument
from searchcrawl.exceptions import StoreError
from searchcrawl.rules.host_texts import Linked
from searchcrawl.run import Run
from searchcrawl.store import source_table
from searchcrawl.store.documents import anchor_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import link_table
from searchcrawl.store.urls.link_table import LinkTexts
from tests.unit.store.support_store import SOURCE, add, settle, store


class FakeRun:
    """The parts of a run that freezing needs."""

    source_id = SOURCE

    def __init__(self, database: Database, cache_dir: Path) -> None:
        self.database = database
        self.project = SimpleNamespace(cache=SimpleNamespace(preserve=True), cache_dir=cache_dir)

    def read(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.read(lambda transaction: work(transaction, *args, **names))

    def write(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.write(lambda transaction: work(transaction, *args, **names))

    read_pages: Any = Run.read_pages

    def say(self, page: int, texts: dict[int, list[str]]) -> None:
        """Has a page say something of others."""

        def write(transaction: Transaction) -> None:
            link_table.store(transaction, {page: list(texts)}, {page: LinkTexts("Page", texts)})
            anchor_table.note_change(transaction, SOURCE)

        self.write(write)

    def freeze(self) -> bool:
        return anchors.freeze_anchors(self)  # type: ignore[arg-type]

    def find_state(self) -> str | None:
        found: str | None = self.read(partial(source_table.find, source_id=SOURCE, column="anchors"))
        return found

    def find_texts(self, url_id: int) -> list[str]:
        found: list[str] = self.read(partial(anchor_table.load_of, url_id=url_id))
        return found


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database("sqlite:///store.db", tmp_path)) as database:
        database.write(run_table.find_or_add_source, "demo")
        ids = add(database, ["a", "b"])
        settle(database, ids)
        store(database, ids)
        yield database


def test_freezing_when_the_cache_has_no_room_then_an_error_names_it_and_the_next_call_begins_anew(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    run = FakeRun(database, tmp_path / "file")
    run.say(1, {2: ["kettle"]})

    with pytest.raises(StoreError, match=f"texts of links cannot be sorted in {tmp_path / 'file'}: "):
        run.freeze()
    assert (run.find_state(), run.find_texts(2)) == (None, [])

    run.project.cache_dir = tmp_path / "cache" / "new"
    assert run.freeze()
    assert run.find_texts(2) == ["kettle"]
    assert not run.freeze()
    monkeypatch.setattr(anchors, "VERSION", 0)
    state = run.find_state()
    run.freeze()
    assert run.find_state() != state
    # Its file has no name.
    assert [*run.project.cache_dir.iterdir()] == []


def test_freezing_when_it_ends_in_the_middle_then_the_texts_are_of_no_state(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeRun(database, tmp_path)
    run.say(1, {2: ["kettle"]})
    run.freeze()
    state = run.find_state()
    # A page leaves, and comes back before the next completed run.
    store(database, [1], code=404)
    with monkeypatch.context() as patched:
        patched.setattr(anchors, "reach", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.freeze()
    assert run.find_texts(2) == []
    store(database, [1])

    assert state is not None
    assert run.find_state() is None
    assert run.freeze()
    assert run.find_texts(2) == ["kettle"]


def raise_interrupt(name: str) -> None:
    raise KeyboardInterrupt(name)


def count(calls: Sequence[tuple[int, str, int | None]], in_memory: int) -> list[LinkedDocument]:
    with LinkCounts(in_memory=in_memory) as counts:
        for url_id, text, host in calls:
            if host is None:
                counts.add_document(url_id, text)
            else:
                counts.add_link(url_id, text, host)
        first = list(counts.by_document())
        assert list(counts.by_document()) == first
        return first


@pytest.mark.parametrize("in_memory", [1, 3, 1_000])
def test_links_when_they_are_counted_then_each_document_has_its_own(in_memory: int) -> None:
    calls = [(1 << 40, "Title", None), (1 << 40, "Text", 7), (2, "", None), (2, "Ä", 7), (2, "ä", 7), (2, "ä", 8)]
    # No document has this row; this one has no links.
    calls += [(3, "text", 7), (4, "Alone", None)]

    for seed in range(10):
        repeated = random.Random(seed).sample(calls * 3, len(calls) * 3)
        assert count(repeated, in_memory) == [
            LinkedDocument(2, "", [Linked("ä", "Ä", 7, 3), Linked("ä", "ä", 7, 3), Linked("ä", "ä", 8, 3)]),
            LinkedDocument(1 << 40, "Title", [Linked("text", "Text", 7, 3)]),
        ]


def test_links_when_there_are_none_then_there_is_no_document() -> None:
    assert count([], 1) == count([(1, "Title", None)], 1) == []
