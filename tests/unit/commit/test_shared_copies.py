"""Sources that share copies: in whatever order they are crawled, one index (F4, F3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from searchcrawl.commit.shared_copies import find_over, settle_shared_copies
from searchcrawl.items import Claim, Document, Hop, Outcome
from searchcrawl.store.documents import shared_copy_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.schema import documents, listing_dues
from tests.unit.commit.support_world import SITE, Page, StoreOfRun, World, some_page

#: The names of the pages of each source: by their ranks they stand between each other.
NAMES = ("adgj", "behk", "cfil")
REDIRECTS = "<r>"


class Settling(StoreOfRun):
    """What settling needs of a run."""

    def write(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        """Only rows of the own source may change, but for what is due of others."""
        before = self.database.read(self._read_others)
        result = super().write(work, *args, **names)
        assert self.database.read(self._read_others) == before
        return result

    def _read_others(self, transaction: Any) -> list[Any]:
        others = select(documents).where(documents.c.source_id != self.source_id).order_by(documents.c.url_id)
        return list(transaction.execute(others))


def settle(world: World, *, gives_way: bool) -> bool:
    return settle_shared_copies(Settling(world.database, world.source_id), gives_way=gives_way)  # type: ignore[arg-type]  # what it needs of a run


def wants(world: World) -> bool:
    with world.database.read_once() as transaction:
        return find_over(transaction, world.source_id) or shared_copy_table.has_dues(transaction, world.source_id)


def hand_over(worlds: Sequence[World], without: World) -> None:
    for _ in range(3):
        for world in worlds:
            if world is not without and wants(world):
                world.batch_before = world.database.read(run_table.find_last_batch)
                settle(world, gives_way=False)
                world.deliver()


def crawl(worlds: Sequence[World], world: World, *, alone: bool = False) -> None:
    """One run of a source; ``alone``: all others are busy."""

    def end() -> None:
        settle(world, gives_way=True)
        world.deliver()
        if not alone:
            hand_over(worlds, world)
        settle(world, gives_way=False)

    if settle(world, gives_way=False):
        world.deliver()
    world.at_end = end
    world.crawl()


def expected(worlds: Sequence[World]) -> dict[str, list[str]]:
    """What the index holds once all were crawled: the survivors of the sources are copies of the best of them."""
    found = [(name, copies, world) for world in worlds for name, copies in world.expected().items()]
    best: dict[str, list[str]] = {}
    for name, _, world in found:
        body = world.seen[name].body
        same = [(its.order(other), other) for other, _, its in found if its.seen[other].body == body]
        best.setdefault(min(same)[1], []).append(name)
    copies_of = {name: copies for name, copies, _ in found}
    return {
        survivor: sorted([*(each for each in names if each != survivor), *(c for n in names for c in copies_of[n])])
        for survivor, names in best.items()
    }


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    database = Database(store_url, tmp_path)
    yield database
    database.close()


class RedirectingWorld(World):
    """Pages whose markup says so are the answers of other URLs."""

    def _visited(self, claim: Claim) -> Document | Outcome:
        made = super()._visited(claim)
        page = self.site.get(claim.url.removeprefix(SITE))
        if not isinstance(made, Document) or page is None or page.markup != REDIRECTS:
            return made
        return replace(made, base_url=f"{SITE}away", redirects=(Hop(claim.url, 302),))


def some_worlds(database: Database, chance: random.Random, *, preserve: bool, kind: type[World] = World) -> list[World]:
    index: dict[str, list[str]] = {}
    worlds = []
    for number, names in enumerate(NAMES):
        with database.write_once() as transaction:
            source_id = run_table.find_or_add_source(transaction, f"source{number}")
            run_table.register(transaction, source_id, "{}", shares_copies=True)
        world = kind(database, chance, source_id=source_id, preserve=preserve, fits=True)
        world.index = index
        world.add(names)
        worlds.append(world)
    return worlds


def change(world: World, chance: random.Random, names: str, *, many: bool) -> None:
    for name in chance.sample(names, len(names) if many else chance.randint(0, 2)):
        world.site[name] = some_page(chance, names, displays=chance.random() < 0.3, failures=True)


@pytest.mark.few(12)
@pytest.mark.parametrize("seed", range(400))
def test_sources_when_crawled_in_any_order_then_each_text_is_indexed_once_after_all_ran_again(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    worlds = some_worlds(database, chance, preserve=chance.random() < 0.7)
    for world, names in zip(worlds, NAMES, strict=True):
        change(world, chance, names, many=True)
    for _ in range(chance.randint(2, 8)):
        number = chance.randrange(len(worlds))
        change(worlds[number], chance, NAMES[number], many=False)
        crawl(worlds, worlds[number], alone=chance.random() < 0.3)
    # In the second of these rounds nothing changes any more.
    for _ in range(2 + (not worlds[0].preserve)):
        for world in chance.sample(worlds, len(worlds)):
            crawl(worlds, world)

    wanted = expected(worlds)
    assert {name: sorted(copies) for name, copies in worlds[0].index.items()} == wanted
    for world in chance.sample(worlds, len(worlds)):
        crawl(worlds, world)
        assert world.sent == 0
    with database.read_once() as transaction:
        assert transaction.execute(select(listing_dues)).all() == []


@pytest.mark.few(6)
@pytest.mark.parametrize("seed", range(100))
def test_sources_when_pages_answer_themselves_or_by_redirects_then_one_that_answers_itself_stands_for_the_others(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    worlds = some_worlds(database, chance, preserve=True, kind=RedirectingWorld)
    for number in [0, 1, 2, *chance.choices(range(3), k=4)]:
        for name in chance.sample(NAMES[number], 2):
            worlds[number].site[name] = Page(chance.choice("12"), markup=chance.choice(["", REDIRECTS]))
        crawl(worlds, worlds[number], alone=chance.random() < 0.3)
    for _ in range(2):
        for world in chance.sample(worlds, len(worlds)):
            crawl(worlds, world)

    seen = {name: page for world in worlds for name, page in world.seen.items()}
    worlds_of = {name: world for world in worlds for name in world.seen}
    wanted: dict[str, list[str]] = {}
    for body in {page.body for page in seen.values()}:
        same = [name for name, page in seen.items() if page.body == body]
        best = min(same, key=lambda name: (seen[name].markup == REDIRECTS, worlds_of[name].order(name)))
        wanted[best] = sorted({*same} - {best})
    assert {name: sorted(copies) for name, copies in worlds[0].index.items()} == wanted
