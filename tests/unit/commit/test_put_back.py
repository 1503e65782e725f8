"""Documents that are put back are what they were, whatever became of them meanwhile (X-R17, F2, D8)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text

from searchcrawl import clock
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import Group, decide
from searchcrawl.items import Claim, Place
from searchcrawl.store import batch_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import former_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import link_table, url_table
from searchcrawl.store.urls.link_table import LinkTexts, Nofollow, Unfollowed
from tests.unit.commit.support_world import SITE, SOURCE, Page, World, some_page

NAMES = "abcdefgh"
_KEPT = "body_digest, fields_digest, etag, last_modified, content_length, canonical_key, display_key, segment"


@dataclass
class Watched(World):
    """A world that keeps what known documents were; ``texts`` are the digests of what the index has."""

    texts: dict[str, bytes] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)

    def visit(self, claims: list[Claim]) -> None:
        items = [self._visited(claim) for claim in claims]
        self.segment += 1
        decided = decide(items, SOURCE, horizon_ms=self.now_ms)
        places = {
            one.claim.url_id: Place(segment=self.segment, offset=0, response_bytes=1, fields_bytes=1)
            for one in decided.stored
        }
        sketches = {one.claim.url_id: b"sketch" for one in decided.stored if one.claim.fields_digest is not None}
        self.changed |= sketches.keys()
        with self.database.write_once() as transaction:
            former_table.keep(transaction, 1, 1, sketches)
            document_rows.write_documents(transaction, 1, decided, places)
            stored = [one.claim.url_id for one in decided.stored]
            texts = LinkTexts("", {self.segment: (f"text {self.segment}",)})
            link_table.store(transaction, {page: [self.segment] for page in stored}, dict.fromkeys(stored, texts))
            url_table.settle(transaction, decided.settled)

    def _send(self, batch: SealedBatch) -> None:
        rows = self.database.read(batch_table.find_without_receipt, batch.number, after=0, limit=1000)
        self.texts |= {row.url.removeprefix(SITE): row.fields_digest for row in rows}
        super()._send(batch)

    def put_back(self, *, preserve: bool = True, canonicals: bool = True) -> None:
        ids = sorted(self.changed)
        readable = set(ids) if preserve else set[int]()
        group = Group(back=ids, readable=readable)
        self.database.write(document_rows.write_documents, 1, group, {}, canonicals=canonicals)

    def shown(self) -> dict[str, bytes]:
        """The text of each document of the index."""
        return {name: self.texts[name] for name in self.index}

    def rows(self, columns: str = _KEPT) -> list[tuple[Any, ...]]:
        query = f"SELECT url_id, code, duplicate_of, {columns} FROM documents ORDER BY url_id"
        links = "SELECT url_id, links, texts FROM outlinks ORDER BY url_id"
        with self.database.read_once() as transaction:
            return [tuple(row) for each in (query, links) for row in transaction.execute(text(each))]


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: 0)


def turned(chance: random.Random, kind: str, number: int) -> Page:
    """What a page becomes: one text for all, or one that differs a bit."""
    return Page(body="turned" + ("" if kind == "same" else str(number)), canonical=chance.choice([None, None, "a"]))


@pytest.mark.few(12)
@pytest.mark.parametrize("kind", ["same", "differs"])
@pytest.mark.parametrize("seed", range(12))
def test_documents_when_put_back_then_table_and_index_are_as_before(database: Database, seed: int, kind: str) -> None:
    chance = random.Random(seed)
    displays = chance.random() < 0.4
    world = Watched(database, chance)
    world.add(NAMES)
    world.site = {name: some_page(chance, NAMES, displays=displays, failures=False) for name in NAMES}
    # Without removals: what is gone is no document.
    world.site = {name: Page(page.body, page.canonical, page.display) for name, page in world.site.items()}
    world.crawl()
    world.changed.clear()
    before, index, texts = world.rows(), dict(world.index), world.shown()

    world.now_ms += 1_000_000
    claims = world._claims()
    chance.shuffle(claims)
    world.site = {name: turned(chance, kind, number) for number, name in enumerate(NAMES)}
    for start in range(0, chance.randint(1, len(NAMES)), 2):
        world.visit(claims[start : start + 2])
        if chance.random() < 0.6:
            world.deliver()
    world.put_back()
    world.deliver()
    world._remove()

    assert world.rows() == before
    assert world.shown() == texts
    assert world.index == index


def test_documents_when_only_those_that_are_put_back_name_others_then_they_are_as_before(database: Database) -> None:
    world = Watched(database, random.Random(1), site={name: Page(body=name) for name in NAMES})
    world.site["b"] = Page(body="b", canonical="a")
    world.add(NAMES)
    world.crawl()
    world.changed.clear()
    before = world.rows()
    world.now_ms += 1_000_000
    world.site["b"] = Page(body="turned")
    world.visit(world._claims())
    # A process that goes on with the run finds none that names another one.
    world.put_back(canonicals=False)

    assert world.rows() == before


@pytest.mark.parametrize("sent", [False, True])
def test_documents_when_their_records_are_gone_then_the_table_says_what_the_index_has(
    database: Database, sent: bool
) -> None:
    world = Watched(database, random.Random(1), site={name: Page(body=name) for name in NAMES})
    world.add(NAMES)
    world.crawl()
    before, texts = world.rows(), world.shown()

    world.now_ms += 1_000_000
    world.site = {name: Page(body=f"turned {name}") for name in NAMES}
    world.visit(world._claims())
    if sent:
        world.deliver()
    world.put_back(preserve=False)
    world.deliver()
    after = world.rows("fields_digest, segment, body_digest, etag, state")

    assert world.sent == len(NAMES) * (1 + sent)
    assert (world.shown() == texts) is not sent
    assert [row[3] for row in after[: len(NAMES)]] == [world.texts[name] for name in NAMES]
    if sent:
        # The next visit gets the page whole, and takes it for a change.
        assert {row[5:7] for row in after[: len(NAMES)]} == {(None, None)}
    else:
        assert {(row[4], row[7]) for row in after[: len(NAMES)]} == {(None, 3)}
        assert [row[5] for row in after[: len(NAMES)]] == [row[3] for row in before[: len(NAMES)]]


def test_kept_versions_when_documents_change_twice_then_the_first_counts_until_they_are_forgotten(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Watched(database, random.Random(1), site={name: Page(body=name) for name in NAMES})
    world.add(NAMES)
    world.crawl()
    before = world.rows()
    for edition in ("one", "two"):
        world.now_ms += 1_000_000
        world.site = {name: Page(body=f"{edition} {name}") for name in NAMES}
        world.visit(world._claims())
    world.put_back()

    assert world.rows() == before
    monkeypatch.setattr(former_table, "MOST", 3)
    with database.write_once() as transaction:
        former_table.forget_oldest(transaction, 1)
        assert len(former_table.load_sketches(transaction, 1, limit=100)) == 3
        assert not former_table.forget(transaction, 1, until_run=1)
        assert former_table.load_sketches(transaction, 1, limit=100) == []


def test_documents_when_they_are_put_back_then_what_the_other_text_says_of_links_is_forgotten(
    database: Database,
) -> None:
    world = Watched(database, random.Random(1), site={name: Page(body=name) for name in NAMES})
    world.add(NAMES)
    world.crawl()
    world.now_ms += 1_000_000
    world.site["a"] = Page(body="turned")
    world.visit(world._claims())
    with database.write_once() as transaction:
        found = [Unfollowed(page, Nofollow.REL, [7]) for page in (1, len(NAMES))]
        link_table.add_unfollowed(transaction, 1, found)
    world.put_back()

    with database.read_once() as transaction:
        left = transaction.execute(text("SELECT url_id FROM unfollowed_links")).scalars().all()
    assert left == [len(NAMES)]
