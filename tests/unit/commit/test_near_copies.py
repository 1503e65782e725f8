"""Near copies that are taken out, run after run: as if all had been crawled at once, in any order (F6, F3, D8)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import or_, select

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.commit import near_copies
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.rules.near_copies import sign
from searchcrawl.run import Run
from searchcrawl.store.documents.duplicate_key_table import NearRow
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.schema import documents
from searchcrawl.store.urls import url_queries
from tests.unit.commit.support_world import SITE, SOURCE, Page, World
from tests.unit.rules.test_near_copies import words


class Settling:
    """What the end of a run needs of the run."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.source_id = 1
        self.project: Any = type("Project", (), {"cache_dir": folder, "cache": SimpleNamespace(location="files")})
        self.near = "remove"
        self.database = database

    @property
    def source(self) -> Any:
        return SOURCE.model_copy(update={"copies": SOURCE.copies.model_copy(update={"near": self.near})})

    def read(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.read(lambda transaction: work(transaction, *args, **names))

    def write(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.write(lambda transaction: work(transaction, *args, **names))

    read_pages: Any = Run.read_pages


def whole_text(content: object, url: str, mimetype: str) -> object:
    """All text is indexed."""
    return content


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database("sqlite:///store.db", tmp_path)
    with database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
    yield database
    database.close()


@pytest.fixture
def made(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[World, Settling, list[str]]:
    """A world whose texts are near copies where their first letter is the same; which of them were signed."""
    world, settling, signed = World(database, random.Random(1)), Settling(database, tmp_path), list[str]()

    def read_text(cache: DocumentCache, cut: near_copies.CutText, row: NearRow) -> str:
        return world.seen[row.document.url.removeprefix(SITE)].body

    def sign_text(text: str) -> str:
        signed.append(text)
        return sign(" ".join(words(int(text[0]))))

    monkeypatch.setattr(clock, "now_ms", lambda: 0)
    monkeypatch.setattr(near_copies, "_read_text", read_text)
    monkeypatch.setattr(near_copies, "sign", sign_text)
    world.at_end = lambda: near_copies.settle_near_copies(settling, whole_text)  # type: ignore[arg-type]  # what it needs of a run
    return world, settling, signed


def expected(world: World) -> dict[str, list[str]]:
    """What the index should hold: of documents whose texts begin alike the best stays, and lists all others."""
    found: dict[str, list[str]] = {}
    leaders: dict[str, str] = {}
    exact = world.expected()
    for name in sorted(exact, key=world.order):
        leader = leaders.setdefault(world.seen[name].body[0], name)
        found.setdefault(leader, []).extend([*exact[name], *([name] if name != leader else [])])
    return {name: sorted(others) for name, others in found.items()}


def some_page(chance: random.Random, names: list[str]) -> Page:
    return Page(
        body=chance.choice("12") + chance.choice("abc"),
        canonical=chance.choice(names) if chance.random() < 0.3 else None,
        status=chance.choices([200, 404, 503], [8, 2, 1])[0],
        markup=chance.choice(["", "", "<br>"]),
        menu=chance.choice(["", "~", "="]),
    )


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(30))
def test_runs_when_pages_change_at_random_then_the_index_is_that_of_a_fresh_crawl_in_any_order(
    made: tuple[World, Settling, list[str]], seed: int
) -> None:
    world, settling, _ = made
    chance = world.chance = random.Random(seed)
    world.fits = chance.random() < 0.7
    names = list("abcdefgh"[: chance.choice([3, 5, 8])])
    world.add("".join(names))

    for _ in range(6):
        for name in chance.sample(names, chance.randint(1, len(names))):
            world.site[name] = some_page(chance, names)
        world.forced = chance.random() < 0.2
        settling.near = chance.choice(["remove", "remove", "remove", "group", "off"])
        world.crawl()

        assert world.index == (expected(world) if settling.near == "remove" else world.expected())
    world.crawl()

    assert world.sent == 0


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(30))
def test_edits_when_near_copies_are_not_taken_out_any_more_then_copies_are_what_they_were(
    made: tuple[World, Settling, list[str]], database: Database, seed: int
) -> None:
    world, settling, _ = made
    chance = world.chance = random.Random(seed)
    world.fits = chance.random() < 0.7
    names = list("abcdef")
    world.site = {name: some_page(chance, names) for name in names}
    world.add("".join(names))
    for near in ("group", "remove", "group", "remove", "off"):
        settling.near = near
        # A page that names another one as canonical is no copy by its content meanwhile, and may be one again.
        for name in chance.sample(names, 2):
            canonical = None if world.site[name].canonical else chance.choice(names)
            world.site[name] = replace(world.site[name], canonical=canonical)
        world.crawl()

        assert world.index == (expected(world) if near == "remove" else world.expected())
    for scope in (False, True):
        # An edit of it has all pages processed again.
        world.copies, world.forced = scope, True
        world.crawl()

        assert world.index == world.expected()
    assert list_left(database) == []
    world.forced, settling.near = False, "remove"
    world.crawl()
    world.copies, world.forced, settling.near = False, True, "group"
    world.crawl()

    assert (world.index, list_left(database)) == (world.expected(), [])


def list_left(database: Database) -> list[int]:
    """Documents of which something is kept that only runs need that take near copies out."""
    left = or_(documents.c.near_signature.is_not(None), documents.c.near_digest.is_not(None))
    with database.read_once() as transaction:
        return list(transaction.execute(select(documents.c.url_id).where(left)).scalars())


def test_pages_when_their_menus_differ_then_they_are_exact_copies_before_and_after_near_copies_are_taken_out(
    made: tuple[World, Settling, list[str]], database: Database
) -> None:
    world, settling, _ = made
    world.site = {"a": Page(body="1a", menu="one"), "b": Page(body="1a", menu="two"), "c": Page(body="1c", menu="one")}
    world.add("abc")
    found = []
    for near, forced in (("group", False), ("remove", False), ("group", False), ("group", True)):
        settling.near, world.forced = near, forced
        world.crawl()
        with database.read_once() as transaction:
            facts = [url_queries.find_facts(transaction, 1, urls.key(SITE + name)) for name in "bc"]
        found.append((dict(world.index), [each is not None and each.is_near_copy for each in facts]))

    exact, near_too = ({"a": ["b"], "c": []}, [False, False]), ({"a": ["b", "c"]}, [False, True])
    assert found == [exact, near_too, exact, exact]


def test_run_when_a_survivor_changes_or_goes_then_another_takes_its_place_and_only_the_changed_text_is_signed(
    made: tuple[World, Settling, list[str]],
) -> None:
    world, _, signed = made
    world.site = {name: Page(body=f"1{name}") for name in "abc"}
    world.add("abc")
    world.crawl(group=1)
    first, signed_first = dict(world.index), len(signed)
    world.site["a"] = Page(body="2a")
    world.crawl()
    second, signed_second = dict(world.index), len(signed)
    world.site["b"] = Page(body="", status=404)
    world.crawl()

    assert first == {"a": ["b", "c"]}
    assert second == {"a": [], "b": ["c"]}
    assert world.index == {"a": [], "c": []}
    assert (signed_first, signed_second, len(signed)) == (3, 4, 4)


def test_texts_when_a_record_cannot_be_read_then_the_document_stays_and_the_others_are_compared(
    made: tuple[World, Settling, list[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world, _, _ = made
    world.site = {name: Page(body=f"1{name}") for name in "abc"}
    world.add("abc")

    def read_fields(cache: DocumentCache, place: object, *, url: str) -> dict[str, str]:
        if url.endswith("b"):
            raise DamagedRecord(f"no record in the cache for {url}")
        return {"content": "1"}

    monkeypatch.undo()
    monkeypatch.setattr(DocumentCache, "read_fields", read_fields)
    monkeypatch.setattr(near_copies, "sign", lambda text: sign(" ".join(words(int(text)))))
    world.crawl()

    assert world.index == {"a": ["c"], "b": []}
    assert "it is compared once it was fetched again" in caplog.text
