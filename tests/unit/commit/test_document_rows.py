"""What groups of visits leave in the store, run after run: as if it had all been crawled at once (F2, F3, A4, D8)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import text

from searchcrawl import clock, urls
from searchcrawl.cache.segment import Place
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import decide
from searchcrawl.duplicates.resolution import rank
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.sources.config import Source
from searchcrawl.store.batches import batch_table
from searchcrawl.store.batches.batch_table import SealedBatch
from searchcrawl.store.documents import duplicate_key_table as keys
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.hosts import host_table
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests.factories import document, outcome
from tests.statements import READ, statements

SITE: Final = "http://a.test/"
SOURCE: Final = Source.model_validate(
    {"name": "demo", "file": "sources/demo.toml", "start": {"urls": [SITE]}, "scope": {"include_hosts": ["a.test"]}}
)
_RUN_MS: Final = 1_000_000


@dataclass(frozen=True)
class Page:
    """A page of the site, by names; ``status`` 404 and 503 bring none, ``markup`` is no part of its text."""

    body: str
    canonical: str | None = None
    display: str | None = None
    status: int = 200
    markup: str = ""


@dataclass
class World:
    """A site, a store, and an index, without a network between them."""

    database: Database
    chance: random.Random
    preserve: bool = True
    site: dict[str, Page] = field(default_factory=dict)
    #: what the last good visit of each page saw
    seen: dict[str, Page] = field(default_factory=dict)
    #: what the index holds: the duplicates that each document names
    index: dict[str, list[str]] = field(default_factory=dict)
    sent: int = 0
    visits: int = 0
    segment: int = 0
    now_ms: int = _RUN_MS
    forced: bool = False

    def add(self, names: str) -> None:
        with self.database.write_once() as transaction:
            host = host_table.find_or_add(transaction, ["a.test:80"])["a.test:80"]
            rows = [NewUrl(key=urls.key(SITE + name), url=SITE + name, host_id=host, depth=1) for name in names]
            url_table.add(transaction, 1, rows, self.now_ms)

    def crawl(self, *, group: int = 3) -> None:
        """One run: visits all, in any order and in groups, delivering in between and at the end."""
        self.now_ms += _RUN_MS
        self.sent = self.visits = 0
        while claims := self._claims():
            self.chance.shuffle(claims)
            while claims:
                size = self.chance.randint(1, group)
                self.visit(claims[:size])
                claims = claims[size:]
                if self.chance.random() < 0.3:
                    self.deliver()
            self.deliver()
        self._remove()

    def visit(self, claims: list[Claim]) -> None:
        """Commits the visits of a group."""
        items = [self._visited(claim) for claim in claims]
        self.visits += len(items)
        self.segment += 1
        decided = decide(items, SOURCE, horizon_ms=self.now_ms)
        places = {
            one.claim.url_id: Place(segment=self.segment, offset=0, response_bytes=1, fields_bytes=1)
            for one in decided.stored
            if one.code == 200
        }
        with self.database.write_once() as transaction:
            document_rows.write_documents(transaction, 1, decided, places)
            url_table.settle(transaction, decided.settled)

    def deliver(self) -> None:
        """Sends what is cached, and takes surplus copies out; a part of the receipts may come late."""
        with self.database.write_once() as transaction:
            batch = batch_table.seal_documents(transaction, 1, 1, self.now_ms)
        if batch is not None:
            self._send(batch)
        with self.database.write_once() as transaction:
            surplus = batch_table.find_removable_copies(transaction, 1)
            if surplus:
                batch_table.seal_removals(transaction, 1, 1, self.now_ms, [one.url_id for one in surplus])
        self._acknowledge_removals()
        if not self.preserve:
            with self.database.write_once() as transaction:
                for number in set(range(1, self.segment + 1)) - batch_table.find_segments_in_use(transaction, 1):
                    batch_table.forget_segment(transaction, 1, number)

    def _send(self, batch: SealedBatch) -> None:
        with self.database.read_once() as transaction:
            rows = batch_table.find_without_receipt(transaction, batch.number, after=0, limit=1000)
            duplicates = keys.find_duplicates(transaction, [row.url_id for row in rows])
        assert all(row.segment is not None for row in rows), "a document without a record was sent"
        for row in rows:
            self.index[row.url.removeprefix(SITE)] = [
                copy.url.removeprefix(SITE) for copy in duplicates.get(row.url_id, ())
            ]
        self.sent += len(rows)
        with self.database.write_once() as transaction:
            batch_table.note_accepted(transaction, batch, [row.url_id for row in rows])

    def _remove(self) -> None:
        with self.database.write_once() as transaction:
            leaving = [one.url_id for one in batch_table.find_removal_candidates(transaction, 1)]
            if leaving:
                batch_table.seal_removals(transaction, 1, 1, self.now_ms, leaving)
        self._acknowledge_removals()

    def _acknowledge_removals(self) -> None:
        with self.database.write_once() as transaction:
            for _, _, rows in batch_table.find_removals_under_way(transaction, 1):
                for row in rows:
                    del self.index[row.url.removeprefix(SITE)]
                batch_table.note_removed(transaction, [row.url_id for row in rows])

    def _claims(self) -> list[Claim]:
        with self.database.write_once() as transaction:
            return url_table.claim(
                transaction, 1, 1, limit=100, now_ms=self.now_ms, horizon_ms=self.now_ms, forced=self.forced
            )

    def _visited(self, claim: Claim) -> Document | Outcome:
        name = claim.url.removeprefix(SITE)
        page = self.site.get(name, Page("", status=404))
        if page.status != 200:
            if page.status == 404:
                self.seen.pop(name, None)
            return outcome(page.status, claim=claim)
        self.seen[name] = page
        named = None if page.canonical in (None, name) else f"{SITE}{page.canonical}"
        made = document(
            f"{page.body}{page.markup} canonical {page.canonical}",
            text=f"{page.body} canonical {page.canonical}",
            claim=claim,
            canonical=named,
            fetched_at=clock.from_ms(self.now_ms),
            display_url=None if page.display is None else SITE + page.display,
        )
        if made.body_digest != claim.body_digest:
            return made
        if claim.etag is not None or self.chance.random() < 0.5:
            return outcome(304, claim=claim)
        return replace(made, page=None, fields_digest=claim.fields_digest or b"")

    def expected(self) -> dict[str, list[str]]:
        """What an index of the pages last seen holds, by the rules of ``dedup.standing``."""
        shown = {
            name: page
            for name, page in self.seen.items()
            if page.display is None
            or name == min((n for n, p in self.seen.items() if p.display == page.display), key=lambda n: rank(SITE + n))
        }

        def target(name: str) -> str | None:
            named = shown[name].canonical
            return named if named != name and named in shown else None

        def root(name: str) -> str:
            passed = [name]
            while (named := target(passed[-1])) is not None and named not in passed:
                passed.append(named)
            return passed[-1] if named is None else named

        found: dict[str, list[str]] = {}
        for name in sorted(shown):
            end = root(name)
            same = [
                other
                for other, page in shown.items()
                if root(other) == other and replace(page, display=None) == replace(shown[end], display=None)
            ]
            survivor = min(same, key=lambda other: rank(SITE + other))
            found.setdefault(survivor, [])
            if survivor != name:
                found[survivor].append(name)
        return found


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database("sqlite:///store.db", tmp_path)
    with database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
    yield database
    database.close()


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: 0)


def some_page(chance: random.Random, names: str, *, displays: bool, failures: bool) -> Page:
    return Page(
        body=chance.choice("123"),
        canonical=chance.choice(names) if chance.random() < 0.5 else None,
        display=chance.choice("xyz") if displays and chance.random() < 0.7 else None,
        status=chance.choices([200, 404, 503], [8, 2, int(failures)])[0],
        markup=chance.choice(["", "", "<br>"]),
    )


@pytest.mark.parametrize("seed", range(15))
def test_runs_when_pages_change_at_random_then_the_index_is_that_of_a_fresh_crawl(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    names = "abcdefgh"[: chance.choice([3, 5, 8])]
    world = World(database, chance, preserve=chance.random() < 0.6)
    displays = chance.random() < 0.4
    world.add(names)

    for _ in range(6):
        for name in chance.sample(names, chance.randint(1, len(names))):
            world.site[name] = some_page(chance, names, displays=displays, failures=world.preserve)
        # An edited source file: no validators, everything is read again.
        world.forced = displays or chance.random() < 0.2
        world.crawl()

        assert world.index == world.expected()
    world.crawl()

    assert world.sent == 0


def test_run_when_nothing_changed_then_no_document_is_looked_at(database: Database) -> None:
    world = World(database, random.Random(1), site={name: Page(body="1") for name in "abc"})
    world.add("abc")
    world.crawl()

    with statements(database, "documents.body_digest IN", "documents.canonical_key IN") as asked:
        world.crawl()

    assert asked == []
    assert (world.visits, world.sent) == (3, 0)


@pytest.mark.parametrize("copies", [100, 3000])
def test_group_when_copies_are_thousands_then_it_reads_and_writes_what_changes_only(
    database: Database, copies: int
) -> None:
    names = [f"x{number:05}" for number in range(copies)]
    world = World(database, random.Random(1), site=dict.fromkeys([*names, "yyyyyy", "a"], Page(body="same")))
    world.add([*names, "yyyyyy", "a"])  # type: ignore[arg-type]  # names of one letter elsewhere
    with database.write_once() as transaction:
        rows = url_table.claim(transaction, 1, 1, limit=copies + 2, now_ms=9, horizon_ms=9, forced=False)
    for start in range(0, copies, 500):
        world.visit(rows[start : min(start + 500, copies)])
    world.deliver()

    with statements(database) as asked:
        # One more copy, and one of better rank that stands for all from now on.
        world.visit([rows[copies]])
        world.visit([rows[copies + 1]])

    with database.read_once() as transaction:
        standing = transaction.execute(text("SELECT code, count(*) FROM documents GROUP BY code")).all()
        survivors = transaction.execute(text("SELECT count(DISTINCT duplicate_of) FROM documents")).scalar_one()
    assert {tuple(row) for row in standing} == {(200, 1), (909, copies + 1)}
    assert survivors == 1
    # The same number of statements whatever the number of copies; one of them moves them all.
    assert len(asked) <= 30
    assert sum("UPDATE documents SET duplicate_of" in statement for statement in asked) == 1
    assert sum(rows for _, rows in READ) <= 12


def test_group_when_hundreds_of_copies_are_gone_then_they_are_not_looked_at(database: Database) -> None:
    names = [f"x{number:05}" for number in range(300)]
    world = World(database, random.Random(1), site=dict.fromkeys(["a", "b", *names], Page(body="same")))
    world.add(["a", *names, "b"])  # type: ignore[arg-type]  # names of one letter elsewhere
    with database.write_once() as transaction:
        rows = url_table.claim(transaction, 1, 1, limit=400, now_ms=9, horizon_ms=9, forced=False)
    world.visit(rows[:-1])
    world.site = {"a": Page(body="same"), "b": Page(body="same")}
    world.visit(rows[1:-1])

    with statements(database):
        world.visit(rows[-1:])

    assert sum(read for _, read in READ) <= 3


def test_survivor_when_copies_come_in_many_groups_then_it_is_sent_once_a_batch(database: Database) -> None:
    names = [chr(ord("b") + number) for number in range(20)]
    world = World(database, random.Random(1), site=dict.fromkeys(["a", *names], Page(body="same")))
    world.add("".join(["a", *names]))
    with database.write_once() as transaction:
        rows = url_table.claim(transaction, 1, 1, limit=100, now_ms=9, horizon_ms=9, forced=False)
    world.visit(rows[:2])
    world.deliver()
    for row in rows[2:]:
        world.visit([row])
    world.deliver()

    assert world.sent == 2
    assert world.index == {"a": sorted(names)}


def test_removal_when_a_copy_is_on_its_way_out_and_its_survivor_is_gone_then_it_is_sent_again(
    database: Database,
) -> None:
    world = World(database, random.Random(1), site={"a": Page("1"), "b": Page("2")})
    world.add("ab")
    world.crawl()
    world.site["b"] = Page("1")
    world.now_ms += _RUN_MS
    claims = {claim.url: claim for claim in world._claims()}
    world.visit([claims[f"{SITE}b"]])
    with database.write_once() as transaction:
        batch_table.note_accepted(transaction, *_sealed(transaction))
        surplus = [one.url_id for one in batch_table.find_removable_copies(transaction, 1)]
        batch_table.seal_removals(transaction, 1, 1, world.now_ms, surplus)

    # While its removal is under way.
    world.site["a"] = Page("1", status=404)
    world.visit([claims[f"{SITE}a"]])
    world._acknowledge_removals()
    world.deliver()
    world._remove()

    assert surplus == [claims[f"{SITE}b"].url_id]
    assert world.index == {"b": []}


def test_failure_when_a_copy_cannot_be_fetched_and_is_promoted_then_its_row_keeps_the_failure(
    database: Database,
) -> None:
    world = World(database, random.Random(1), site={"a": Page("1"), "b": Page("1")})
    world.add("ab")
    world.crawl()
    world.site |= {"a": Page("1", status=404), "b": Page("1", status=503)}

    world.crawl()

    with database.read_once() as transaction:
        codes = dict(transaction.execute(text("SELECT url, code FROM urls")).all())  # type: ignore[arg-type]  # pairs
    assert codes == {f"{SITE}a": 404, f"{SITE}b": 503}
    assert world.index == {"b": []}


def _sealed(transaction: Transaction) -> tuple[SealedBatch, list[int]]:
    batch = batch_table.seal_documents(transaction, 1, 1, 5 * _RUN_MS)
    assert batch is not None
    return batch, [row.url_id for row in batch_table.find_without_receipt(transaction, batch.number, after=0, limit=99)]
