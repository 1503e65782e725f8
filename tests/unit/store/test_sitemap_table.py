"""What sitemaps say about rows, and what of it decides when they are due (L5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from searchcrawl.clock import DAY_MS
from searchcrawl.items import SitemapEnd
from searchcrawl.rules.recrawl import Proof, Word
from searchcrawl.store import sitemap_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.sitemap_table import Dates, SitemapRow
from tests.unit.store.support_store import NOW_MS, SOURCE, add, claim, row, settle

INDEX, URL, OTHER = (f"http://a.test/{name}.xml" for name in ("index", "one", "two"))
RUN = 7
DATES = Dates(source_id=SOURCE, run_id=RUN, horizon_ms=NOW_MS, urls=[INDEX, URL], now_ms=NOW_MS)
READ = SitemapEnd(code=200, error=None, etag='"1"', last_modified="then")


def named(database: Database, *urls: str, parent_id: int | None = None) -> list[int]:
    return database.write(sitemap_table.add, SOURCE, urls, parent_id=parent_id)


def end(database: Database, sitemap_id: int, reading: SitemapEnd = READ, *, run_id: int = RUN) -> None:
    database.write(sitemap_table.end, sitemap_id, reading, run_id=run_id, now_ms=NOW_MS)


def list_urls(database: Database, sitemap_id: int, lastmods: dict[int, int | None]) -> None:
    database.write(sitemap_table.list_urls, sitemap_id, lastmods)


def listed(
    database: Database, lastmod: int, *, pages: int = 1, reading: SitemapEnd = READ, run_id: int = RUN, **settled: int
) -> tuple[list[int], int]:
    """Pages that a sitemap lists, and that were visited; their ids and that of the sitemap, which an index names."""
    ids = add(database, [f"page{number}" for number in range(pages)])
    (index,) = named(database, INDEX)
    (sitemap,) = named(database, URL, parent_id=index)
    list_urls(database, sitemap, dict.fromkeys(ids, lastmod))
    end(database, sitemap, reading, run_id=run_id)
    claim(database)
    settle(database, ids, **settled)
    return ids, sitemap


def said(database: Database, url_id: int) -> tuple[int | None, int | None]:
    found = row(database, url_id)
    return found.sitemap_id, found.lastmod_ms


def find(database: Database, url: str) -> SitemapRow | None:
    return database.read(sitemap_table.find, SOURCE, url)


FOREIGN, HOST_OF_INDEX = "http://b.test/evil.xml", "http://a.test/second.xml"


def children(database: Database, index: int) -> list[str]:
    return database.read(sitemap_table.find_children, index)


def test_rows_when_added_twice_then_there_is_one_and_no_index_takes_it_over(database: Database) -> None:
    first = named(database, URL)
    (index,) = named(database, INDEX)

    both = named(database, OTHER, URL, parent_id=index)

    assert both[0] == first[0]
    assert children(database, index) == [OTHER]
    assert database.read(sitemap_table.find_others, index, [index, *both]) == first
    assert database.read(sitemap_table.find_existing, [*first, 1000]) == first


@pytest.mark.parametrize(("owner", "taken"), [(FOREIGN, True), (HOST_OF_INDEX, False)])
def test_rows_when_an_index_of_another_host_has_them_then_their_own_takes_them_over(
    database: Database, owner: str, taken: bool
) -> None:
    first, index = named(database, owner)[0], named(database, INDEX)[0]
    child = named(database, URL, parent_id=first)

    database.write(sitemap_table.take_from_foreign, child, index)
    by_index = children(database, index)
    database.write(sitemap_table.give_to, child, None)

    assert by_index == ([URL] if taken else [])
    assert (children(database, first), children(database, index)) == ([], [])


def test_rows_when_an_index_names_itself_then_it_is_no_child_of_its_own(database: Database) -> None:
    (index,) = named(database, INDEX)

    named(database, INDEX, URL, parent_id=index)

    assert database.write(sitemap_table.find_children, index) == [URL]
    assert len(database.write(sitemap_table.find_other_children, index, set())) == 1
    assert find(database, INDEX) is not None


def test_sort_when_some_were_read_then_those_that_never_were_come_first_and_then_the_oldest(database: Database) -> None:
    late, early, never = named(database, URL, OTHER, INDEX)
    for sitemap_id, read_ms in ((late, 20), (early, 10)):
        database.write(sitemap_table.end, sitemap_id, READ, run_id=RUN, now_ms=read_ms)

    found = database.read(sitemap_table.sort_by_reading, SOURCE, [URL, "http://a.test/new.xml", OTHER, INDEX])

    assert never
    assert found == ["http://a.test/new.xml", INDEX, OTHER, URL]


def test_find_when_a_reading_failed_then_the_validators_are_kept(database: Database) -> None:
    (sitemap,) = named(database, URL)

    end(database, sitemap)
    end(database, sitemap, SitemapEnd(code=503, error="503 Service Unavailable", etag=None, last_modified=None))

    found = find(database, URL)
    assert found == SitemapRow(id=sitemap, url=URL, code=503, etag='"1"', last_modified="then", run_id=RUN)
    assert not found.is_good


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((URL, 10), (URL, 5), (URL, 5)),
        ((URL, 10), (URL, None), (URL, None)),
        ((URL, None), (URL, 3), (URL, 3)),
        ((OTHER, 10), (URL, 20), (URL, 20)),
        ((OTHER, 10), (URL, 5), (OTHER, 10)),
        ((OTHER, 10), (URL, None), (OTHER, 10)),
        ((OTHER, None), (URL, 5), (URL, 5)),
    ],
)
def test_lastmod_when_several_sitemaps_list_a_row_then_the_latest_counts(
    database: Database,
    before: tuple[str, int | None],
    after: tuple[str, int | None],
    expected: tuple[str, int | None],
) -> None:
    (url_id,) = add(database, ["page"])
    ids = dict(zip((URL, OTHER), named(database, URL, OTHER), strict=True))

    for sitemap, lastmod in (before, after):
        list_urls(database, ids[sitemap], {url_id: lastmod})

    assert said(database, url_id) == (ids[expected[0]], expected[1])


def test_unlist_when_rows_vanished_then_they_lose_their_dates(database: Database) -> None:
    kept, gone, elsewhere = add(database, ["kept", "gone", "elsewhere"])
    sitemap, other = named(database, URL, OTHER)
    list_urls(database, sitemap, {kept: 1, gone: 2})
    list_urls(database, other, {elsewhere: 3})

    count = database.write(sitemap_table.unlist_others, sitemap, {kept})

    assert count == 1
    assert [said(database, url_id) for url_id in (kept, gone, elsewhere)] == [(sitemap, 1), (None, None), (other, 3)]


def test_forget_when_an_index_names_a_sitemap_no_more_then_it_and_its_dates_go(database: Database) -> None:
    (url_id,) = add(database, ["page"])
    (index,) = named(database, INDEX)
    kept, gone = named(database, URL, OTHER, parent_id=index)
    list_urls(database, gone, {url_id: 1})

    vanished = database.write(sitemap_table.find_other_children, index, {kept})
    database.write(sitemap_table.forget, vanished)

    assert (vanished, find(database, OTHER), said(database, url_id)) == ([gone], None, (None, None))
    assert find(database, URL) is not None


def test_put_off_when_a_date_is_not_after_the_last_visit_then_the_row_is_not_due(database: Database) -> None:
    names = ["same", "changed", "undated", "failed", "missing"]
    same, changed, undated, failed, missing = ids = add(database, names)
    (sitemap,) = named(database, URL)
    list_urls(database, sitemap, {same: NOW_MS, changed: NOW_MS + 1, undated: None, failed: 1, missing: 1})
    end(database, sitemap)
    claim(database)
    settle(database, ids[:3])
    settle(database, [failed], failed_runs=1)
    settle(database, [missing], code=404)

    count = database.write(sitemap_table.put_off, DATES)

    assert count == 1
    assert sorted(claim(database)) == [changed, undated, failed, missing]
    assert claim(database, horizon_ms=NOW_MS + 1) == [same]


@pytest.mark.parametrize(("code", "run_id"), [(404, RUN), (200, RUN - 1)])
def test_put_off_when_the_sitemap_was_not_read_in_this_run_then_its_dates_do_not_count(
    database: Database, code: int, run_id: int
) -> None:
    listed(database, 1, reading=SitemapEnd(code=code, error=None, etag=None, last_modified=None), run_id=run_id)

    assert database.write(sitemap_table.put_off, DATES) == 0


def test_bring_forward_when_a_date_is_after_the_last_visit_then_the_row_is_due(database: Database) -> None:
    same, changed, visited = ids = add(database, ["same", "changed", "visited"])
    (sitemap,) = named(database, URL)
    list_urls(database, sitemap, {same: 1, changed: NOW_MS + 1, visited: NOW_MS + 1000})
    end(database, sitemap, SitemapEnd(code=304, error=None, etag=None, last_modified=None))
    claim(database)
    settle(database, ids, due_ms=NOW_MS + 500)
    # In this run: a date in the future must not bring it back for ever.
    settle(database, [visited], due_ms=NOW_MS + 500, fetched_ms=NOW_MS + 1)

    count = database.write(sitemap_table.bring_forward, DATES)

    assert (count, claim(database)) == (1, [changed])


def prove(database: Database, sitemap_id: int, said: Word, *, changed: int, same: int) -> None:
    proofs = [Proof(sitemap_id=sitemap_id, said=said, changed=True)] * changed
    proofs += [Proof(sitemap_id=sitemap_id, said=said, changed=False)] * same
    database.write(sitemap_table.note_proofs, proofs)


@pytest.mark.parametrize(("changed", "same", "sooner"), [(0, 0, 10), (0, 9, 10), (0, 10, 0), (3, 9, 12), (30, 60, 12)])
def test_bring_forward_when_dates_were_wrong_then_only_as_many_rows_are_due_as_the_sitemap_has_proven(
    database: Database, changed: int, same: int, sooner: int
) -> None:
    _, sitemap = listed(database, NOW_MS + 1, pages=12, due_ms=NOW_MS + 500)
    # What a sitemap proves is that of the index that names it.
    prove(database, sitemap, Word.CHANGED, changed=changed, same=same)

    assert database.write(sitemap_table.bring_forward, DATES) == sooner


def test_bring_forward_when_a_date_is_far_ahead_then_it_says_nothing(database: Database) -> None:
    listed(database, NOW_MS + 3 * DAY_MS, due_ms=NOW_MS + 500)

    assert database.write(sitemap_table.bring_forward, DATES) == 0


@pytest.mark.parametrize(("changed", "same", "count"), [(0, 0, 1), (2, 0, 1), (3, 0, 0), (3, 26, 0), (3, 28, 1)])
def test_put_off_when_pages_changed_without_a_new_date_then_the_sitemap_keeps_none_from_a_visit(
    database: Database, changed: int, same: int, count: int
) -> None:
    _, sitemap = listed(database, 1)
    prove(database, sitemap, Word.SAME, changed=changed, same=same)

    assert database.write(sitemap_table.put_off, DATES) == count


@pytest.mark.parametrize(("visited_ms", "count"), [(NOW_MS - 101, 0), (NOW_MS - 100, 1), (NOW_MS + 1, 0)])
def test_put_off_when_the_last_visit_is_long_ago_or_still_to_come_then_the_row_is_visited(
    database: Database, visited_ms: int, count: int
) -> None:
    listed(database, 1, fetched_ms=visited_ms)

    assert database.write(sitemap_table.put_off, replace(DATES, longest_ms=100)) == count


def test_failures_when_listed_sitemaps_could_not_be_read_then_they_are_told(database: Database) -> None:
    good, bad, _ = named(database, URL, OTHER, INDEX)
    end(database, good)
    end(database, bad, SitemapEnd(code=404, error="404 Not Found", etag=None, last_modified=None))

    assert database.read(sitemap_table.find_failures, SOURCE, [URL, OTHER, INDEX]) == [(OTHER, "404 Not Found")]
