"""What groups of visits leave in the store, run after run: as if it had all been crawled at once (F2, F3, A4, D8)."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import text

from searchcrawl import clock
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.removal_table import Before
from searchcrawl.store.urls import url_table
from tests.statements import READ, statements
from tests.unit.commit.support_world import RUN_MS, SITE, Page, World, some_page


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: 0)


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(15))
def test_runs_when_pages_change_at_random_then_the_index_is_that_of_a_fresh_crawl(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    names = "abcdefgh"[: chance.choice([3, 5, 8])]
    world = World(database, chance, preserve=chance.random() < 0.6, fits=chance.random() < 0.7)
    displays = chance.random() < 0.4
    world.add(names)

    for _ in range(6):
        for name in chance.sample(names, chance.randint(1, len(names))):
            world.site[name] = some_page(chance, names, displays=displays, failures=world.preserve)
        # An edited source file: no validators, everything is read again.
        world.forced = displays or chance.random() < 0.2
        if chance.random() < 0.2 and not world.preserve:
            # What a copy is was edited, or is another one in this release.
            world.copies, world.forced = not world.copies, True
        world.crawl()

        assert world.index == world.expected()
    world.crawl()

    assert world.sent == 0


@pytest.mark.parametrize("again", [Page("1", markup="<br>"), Page("1", menu="~")])
def test_copies_when_an_earlier_release_chose_among_them_then_they_stay_until_their_text_changes(
    database: Database, again: Page
) -> None:
    names = "abcdef"
    world = World(database, random.Random(1))
    world.add(names)
    world.site = dict.fromkeys(names, Page("1"))
    world.crawl()
    before = dict(world.index)

    # This release reads all pages again: the same text in other bytes, or with another menu.
    world.fits = world.forced = True
    world.site = dict.fromkeys(names, again)
    world.crawl()
    after = dict(world.index)
    world.site = dict.fromkeys(names, Page("3"))
    world.crawl()

    assert before == after == {"a": list("bcdef")}
    assert world.index == world.expected() != before


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(15))
def test_runs_when_removals_wait_for_some_runs_then_the_approved_index_is_that_of_a_fresh_crawl(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    names = "abcdefgh"[: chance.choice([3, 5, 8])]
    world = World(database, chance, preserve=chance.random() < 0.6, holds=True, fits=chance.random() < 0.7)
    displays = chance.random() < 0.4
    world.add(names)
    held = 0

    for _ in range(8):
        for name in chance.sample(names, chance.randint(1, len(names))):
            world.site[name] = some_page(chance, names, displays=displays, failures=world.preserve)
        world.forced = displays or chance.random() < 0.2
        before = set(world.index)
        world.crawl()

        assert before <= set(world.index)
        assert set(world.expected()) <= set(world.index)
        if chance.random() < 0.4:
            held += world.approve()
            assert world.index == world.expected()

    assert held or len(names) == 3


def test_run_when_nothing_changed_then_no_document_is_looked_at(database: Database) -> None:
    world = World(database, random.Random(1), site={name: Page(body="1") for name in "abc"})
    world.add("abc")
    world.crawl()

    with statements(database, "documents.copy_digest IN", "documents.canonical_key IN") as asked:
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
    rows = database.write(url_table.claim, 1, 1, limit=copies + 2, now_ms=9, horizon_ms=9, forced=False)
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
    rows = database.write(url_table.claim, 1, 1, limit=400, now_ms=9, horizon_ms=9, forced=False)
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
    rows = database.write(url_table.claim, 1, 1, limit=100, now_ms=9, horizon_ms=9, forced=False)
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
    world.now_ms += RUN_MS
    claims = {claim.url: claim for claim in world._claims()}
    world.visit([claims[f"{SITE}b"]])
    with database.write_once() as transaction:
        batch_table.note_accepted(transaction, *_sealed(transaction))
        surplus = [one.url_id for one in removal_table.find_new_copies(transaction, 1, before=Before(0, 0))]
        removal_table.seal(transaction, 1, 1, world.now_ms, surplus, counted=True)

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
    batch = batch_table.seal_documents(transaction, 1, 1, 5 * RUN_MS)
    assert batch is not None
    return batch, [row.url_id for row in batch_table.find_without_receipt(transaction, batch.number, after=0, limit=99)]
