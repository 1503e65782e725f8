"""Superseded records leave the cache before good ones do, and no record that is needed is lost on the way (E2)."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import pytest

from searchcrawl import failpoints
from searchcrawl.commit.turned_pages import TurnedPages
from searchcrawl.delivery import cache_space
from searchcrawl.delivery.cache_space import CacheSpace
from searchcrawl.exceptions import CacheError
from searchcrawl.items import Place
from searchcrawl.rules.turned_pages import PageWords
from searchcrawl.store.documents import document_table, former_table, segment_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.run_schema import segments
from tests.factories import claim, document
from tests.filled_store import SITE, CachedStore

PAGES: Final = 12
BODY: Final = 4000


def names(first: int, last: int) -> list[str]:
    return [f"/{number}" for number in range(first, last)]


def visit(cached: CachedStore, *paths: str, version: int = 1, deliver: bool = True) -> None:
    """Stores pages with bodies that hardly shrink, different ones in each version."""
    for path in paths:
        cached.bodies[path] = random.Random(f"{path} {version}").randbytes(BODY)
    cached.fetch(*paths)
    if deliver:
        cached.send()
        cached.commit()


def wasted(cached: CachedStore) -> None:
    """Segment 1: two pages of three were changed since. 2: all are as they were. 3: the changed ones; 4 is written."""
    visit(cached, *names(0, PAGES))
    cached.begin_segment()
    visit(cached, *names(PAGES, 2 * PAGES))
    cached.begin_segment()
    visit(cached, *(f"/{number}" for number in range(PAGES) if number % 3), version=2)
    cached.begin_segment()


def places(cached: CachedStore) -> dict[str, Place | None]:
    return {path: cached.find_place(path) for path in cached.ids}


def readable(cached: CachedStore) -> set[str]:
    """The pages whose record is there, as it was stored last."""
    found = set()
    for path, place in places(cached).items():
        if place is not None:
            page = cached.cache.read_page(place, url=SITE + path)
            assert page.body == cached.bodies[path]
            assert page.fields["title"] == f"Page {path}"
            found.add(path)
    return found


def sizes(cached: CachedStore) -> dict[int, int]:
    return dict(cached.cache.list_segments())


def total(cached: CachedStore) -> int:
    return sum(sizes(cached).values())


def free(cached: CachedStore, max_bytes: int) -> None:
    cached.limit_cache(max_bytes)
    CacheSpace(cached.run, cached.cache).free()


def test_free_when_records_are_superseded_then_they_go_and_no_good_one_does(cached: CachedStore) -> None:
    wasted(cached)
    before = total(cached)

    free(cached, before - BODY)

    assert readable(cached) == set(names(0, 2 * PAGES))
    assert total(cached) <= before - PAGES * 2 // 3 * BODY
    assert sorted(sizes(cached)) == [2, 3, 4, 5]


def test_free_when_that_is_not_enough_then_the_oldest_go_also_where_they_were_moved(cached: CachedStore) -> None:
    wasted(cached)
    free(cached, total(cached) - BODY)

    free(cached, total(cached) - 1)

    # Segment 5 has what is left of the first one.
    assert sorted(sizes(cached)) == [2, 3, 4]
    assert readable(cached) == set(names(0, 2 * PAGES)) - {f"/{number}" for number in range(0, PAGES, 3)}


def test_free_when_the_cache_is_within_its_limit_then_all_stays(cached: CachedStore) -> None:
    wasted(cached)

    free(cached, total(cached))

    assert sorted(sizes(cached)) == [1, 2, 3, 4]


def test_free_when_records_wait_for_the_index_then_their_segment_stays_as_it_is(cached: CachedStore) -> None:
    wasted(cached)
    visit(cached, "/new", deliver=False)
    cached.begin_segment()
    visit(cached, "/new", version=2, deliver=False)
    cached.database.write(document_table.send_again, [cached.ids["/0"]])
    before = places(cached)

    free(cached, 1)

    assert sizes(cached).keys() == {1, 5}
    assert readable(cached) >= {"/0", "/new"}
    assert {path: places(cached)[path] for path in ("/0", "/new")} == {path: before[path] for path in ("/0", "/new")}


def test_free_when_a_delivery_is_not_committed_then_its_records_stay(cached: CachedStore) -> None:
    wasted(cached)
    visit(cached, "/0", version=3, deliver=False)
    cached.send()
    cached.begin_segment()

    free(cached, 1)

    assert "/0" in readable(cached)
    cached.commit()
    free(cached, 1)
    assert readable(cached) == set()


def test_free_when_a_record_is_to_be_sent_meanwhile_then_it_stays_where_it_is(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    wasted(cached)

    def reach(name: str) -> None:
        if name == "segment.copied":
            cached.database.write(document_table.send_again, [cached.ids["/3"]])

    monkeypatch.setattr(cache_space, "reach", reach)
    free(cached, total(cached) - BODY)

    assert readable(cached) == set(names(0, 2 * PAGES))
    assert {path for path, place in places(cached).items() if place and place.segment == 1} == {"/3"}


def test_free_when_what_was_before_may_be_put_back_then_it_is_kept(cached: CachedStore) -> None:
    visit(cached, *names(0, PAGES))
    cached.database.write(former_table.keep, cached.run.source_id, cached.run.id, {cached.ids["/1"]: b""})
    before = cached.bodies["/1"]
    cached.begin_segment()
    visit(cached, *names(0, PAGES - 1), version=2)
    cached.begin_segment()

    free(cached, total(cached) - BODY)

    (change,) = cached.database.read(former_table.find_changes, [cached.ids["/1"]])
    assert change.before is not None
    place = Place(*change.before)
    assert place.segment == 4
    assert cached.cache.read_page(place, url=f"{SITE}/1").body == before


def test_free_when_a_record_is_damaged_then_the_others_are_moved(cached: CachedStore) -> None:
    wasted(cached)
    file = cached.project.cache_dir / "demo" / "00000001.warc.gz"
    last = cached.places[f"/{PAGES - 3}"]
    with file.open("r+b") as cut:
        cut.truncate(last.offset + 10)

    free(cached, total(cached) - BODY)

    assert set(names(0, 2 * PAGES)) - readable(cached) == {f"/{PAGES - 3}"}


def test_free_when_copies_cannot_be_written_then_the_oldest_go(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    wasted(cached)

    def fail(*_: object) -> int:
        raise CacheError("no space")

    monkeypatch.setattr("searchcrawl.cache.segment.SegmentWriter.copy", fail)
    free(cached, total(cached) - BODY)

    assert 1 not in sizes(cached)
    assert readable(cached) == set(names(0, 2 * PAGES)) - {f"/{number}" for number in range(0, PAGES, 3)}


def test_free_when_many_small_segments_are_left_then_they_become_one(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_space, "_LEAST_SEGMENTS", 1)
    for first in range(0, 20, 2):
        visit(cached, f"/{first}", f"/{first + 1}")
        cached.begin_segment()
    visit(cached, *(f"/{number}" for number in range(1, 20, 2)), version=2)
    cached.begin_segment()

    free(cached, total(cached) - BODY)

    assert readable(cached) == set(names(0, 20))
    assert len(sizes(cached)) == 3


def test_writer_when_records_were_moved_then_its_segment_is_the_one_it_had(cached: CachedStore) -> None:
    wasted(cached)

    free(cached, total(cached) - BODY)

    with cached.database.write_once() as transaction:
        assert segment_table.find_open(transaction, cached.run.source_id)[0] == 4
        assert segment_table.begin(transaction, cached.run.source_id) == 6
        rows = transaction.execute(segments.select().where(segments.c.number == 5)).one()
    assert rows.newest == 1
    assert rows.committed_bytes == sizes(cached)[5]


class Killed(Exception):
    """The process ends here."""


@pytest.mark.few(6)
@pytest.mark.parametrize("point", ["segment.copied", "segment.moved", "cache.freed"])
@pytest.mark.parametrize("passing", [1, 2, 3])
def test_free_when_the_process_ends_at_any_step_then_no_record_is_lost_and_the_next_goes_on(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch, point: str, passing: int
) -> None:
    wasted(cached)
    monkeypatch.setattr(cache_space, "_STEP_RECORDS", 2)
    limit = total(cached) - 2 * BODY
    passed: list[str] = []

    def reach(name: str) -> None:
        passed.append(name)
        if passed.count(point) == passing:
            raise Killed

    with monkeypatch.context() as context:
        context.setattr(cache_space, "reach", reach)
        context.setattr(failpoints, "reach", reach)
        with suppress(Killed):
            free(cached, limit)
    after_kill = readable(cached)
    free(cached, limit)

    assert after_kill == readable(cached) == set(names(0, 2 * PAGES))
    assert total(cached) <= limit


def test_free_when_nothing_can_be_freed_then_records_are_counted_once(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(cached, *names(0, 3), deliver=False)
    cached.begin_segment()
    cached.limit_cache(1)
    counted: list[int] = []
    count = segment_table.count_needed

    def watched(transaction: Transaction, source_id: int) -> dict[int, int]:
        counted.append(source_id)
        return count(transaction, source_id)

    monkeypatch.setattr(segment_table, "count_needed", watched)
    space = CacheSpace(cached.run, cached.cache)
    for _ in range(5):
        space.free()

    assert len(counted) == 1
    assert readable(cached) == set(names(0, 3))


def test_turned_pages_when_a_record_is_moved_while_it_is_read_then_it_is_found(
    cached: CachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    wasted(cached)
    limit = total(cached) - BODY
    tested = TurnedPages(cached.run, cached.cache)
    find = former_table.find_earlier

    def move_then(transaction: Transaction, url_ids: list[int]) -> dict[int, tuple[Place | None, int]]:
        found = find(transaction, url_ids)
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as other:
            other.submit(free, cached, limit).result()
        return found

    monkeypatch.setattr(former_table, "find_earlier", move_then)
    page = document("new", claim=claim(cached.ids["/3"], url=f"{SITE}/3"))
    versions = tested._read_versions([page], {cached.ids["/3"]: PageWords.of(page.claim.url, "new", "words")})

    assert versions[cached.ids["/3"]].before is not None
