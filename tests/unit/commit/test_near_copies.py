"""Near copies that are taken out, run after run: as if all had been crawled at once, in any order (F6, F3, D8)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import or_, select

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.commit import near_copies
from searchcrawl.commit.near_copies import SignedDocument, find_groups
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.rules.copy_order import build_order
from searchcrawl.rules.near_copies import sign
from searchcrawl.store.documents.duplicate_key_table import NearRow
from searchcrawl.store.engine.database import Database
from searchcrawl.store.schema import documents
from searchcrawl.store.urls import url_queries
from tests.unit.commit.support_world import SITE, SOURCE, Page, StoreOfRun, World
from tests.unit.rules.test_near_copies import are_near, edited, words


class Settling(StoreOfRun):
    """What the end of a run needs of the run."""

    def __init__(self, database: Database, folder: Path) -> None:
        super().__init__(database, 1)
        self.project: Any = type("Project", (), {"cache_dir": folder, "cache": SimpleNamespace(location="files")})
        self.near = "remove"

    @property
    def source(self) -> Any:
        return SOURCE.model_copy(update={"copies": SOURCE.copies.model_copy(update={"near": self.near})})


def whole_text(content: object, url: str, mimetype: str) -> object:
    """All text is indexed."""
    return content


@pytest.fixture
def made(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[World, Settling, list[str]]:
    """A world whose texts are near copies where their first letter is the same; which of them were signed."""
    world, settling, signed = World(database, random.Random(1)), Settling(database, tmp_path), list[str]()

    def read_text(cache: DocumentCache, cut: near_copies.CutText, row: NearRow) -> tuple[str, None]:
        return world.seen[row.document.url.removeprefix(SITE)].body, None

    def sign_text(text: str, access: None) -> str:
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
    monkeypatch.setattr(near_copies, "sign", lambda text, access: sign(" ".join(words(int(text)))))
    world.crawl()

    assert world.index == {"a": ["c"], "b": []}
    assert "it is compared once it was fetched again" in caplog.text


def some_documents(chance: random.Random, number: int) -> list[SignedDocument]:
    """Documents of a few texts and their editions, some of which have two URLs, or no signature, or only redirect."""
    texts = [words(each) for each in range(6)]
    found = []
    for each in range(number):
        text = " ".join(edited(chance.choice(texts), chance.random(), chance.randrange(10)))
        digest, signature = text.encode(), sign(text) if chance.random() < 0.95 else ""
        for _ in range(chance.choice([1, 1, 1, 2])):
            path = "/".join(chance.choices("abc", k=chance.randint(1, 4)))
            url = f"http://a.test/{path}{each}{chance.choice(['', '?q=1'])}"
            order = build_order(url, redirected=chance.random() < 0.1, url_fit=chance.choice([None, 2, 8, 11]))
            found.append(SignedDocument(order, digest, signature))
    return found


def compare_each(documents: list[SignedDocument]) -> dict[bytes, bytes]:
    """The rule of the module's docstring, with each compared with each."""
    best = {
        digest: min((one for one in documents if one.digest == digest), key=lambda one: one.order)
        for digest in {one.digest for one in documents}
    }
    stay: list[SignedDocument] = []
    found: dict[bytes, bytes] = {}
    for one in sorted(best.values(), key=lambda one: one.order):
        near = next((other for other in stay if are_near(other.signature, one.signature)), None)
        if near is None:
            stay.append(one)
        else:
            found[one.digest] = near.digest
    return found


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(20))
def test_groups_when_documents_come_in_any_order_then_each_stands_with_the_best_that_it_is_near_to(seed: int) -> None:
    chance = random.Random(seed)
    documents = some_documents(chance, 60)
    results = []
    for _ in range(20):
        chance.shuffle(documents)
        results.append(find_groups(documents))

    assert results == [compare_each(documents)] * 20
    assert len(results[0]) > 5


def test_groups_when_the_record_of_a_copy_is_lost_then_the_other_one_tells_its_text() -> None:
    text, other = words(1), edited(words(1), 2, 2)
    a, b, ccc = (build_order(f"http://a.test/{name}", redirected=False, url_fit=None) for name in ("a", "b", "ccc"))
    documents = [SignedDocument(a, b"1", ""), SignedDocument(b, b"1", sign(" ".join(text)))]

    found = find_groups([*documents, SignedDocument(ccc, b"2", sign(" ".join(other)))])

    assert found == {b"2": b"1"}
