"""What the parts of sitemaps change in rows, over several transactions (L5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl import urls
from searchcrawl.admission.url_normalisation import normalise_parts
from searchcrawl.commit.link_rows import SitemapRows
from searchcrawl.items import ListedUrl, SitemapEnd, SitemapPart
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.sitemaps import sitemap_table
from tests.unit.store.support_store import SOURCE, add, row

URL = "http://a.test:80/sitemap.xml"
WHOLE = SitemapEnd(code=200, whole=True)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database("sqlite:///test.db", tmp_path)
    with database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
    yield database
    database.close()


def listed(*names: str) -> tuple[ListedUrl, ...]:
    return tuple(ListedUrl(f"http://a.test:80/{name}", 1000) for name in names)


def write(database: Database, rows: SitemapRows, *parts: SitemapPart, ids: dict[str, int], fails: bool = False) -> None:
    by_key = {urls.key(f"http://a.test:80/{name}"): url_id for name, url_id in ids.items()}
    with database.write_once() as transaction:
        rows.write(transaction, parts, by_key.__getitem__)
        if fails:
            transaction.rollback()
    if not fails:
        rows.note_commit()


def with_dates(database: Database, ids: dict[str, int]) -> list[str]:
    return [name for name, url_id in ids.items() if row(database, url_id).lastmod_ms == 1000]


def named_rows(database: Database, *names: str) -> dict[str, int]:
    return dict(zip(names, add(database, names), strict=True))


def test_found_when_parts_list_urls_then_they_are_links_of_no_page_at_depth_one() -> None:
    parts = [SitemapPart(url=URL, urls=listed("a", "b")), SitemapPart(url=URL, end=WHOLE)]

    _, (found,) = normalise_parts(parts, Rewriting())

    assert (found.page_id, found.depth, [link.url for link in found.links]) == (
        None,
        1,
        ["http://a.test:80/a", "http://a.test:80/b"],
    )


def test_reading_when_whole_then_rows_that_vanished_lose_their_dates_over_all_its_parts(database: Database) -> None:
    ids = named_rows(database, "a", "b", "c")
    rows = SitemapRows(SOURCE, 1)
    write(database, rows, SitemapPart(url=URL, urls=listed("a", "b", "c")), SitemapPart(url=URL, end=WHOLE), ids=ids)

    write(database, rows, SitemapPart(url=URL, urls=listed("a")), ids=ids)
    write(database, rows, SitemapPart(url=URL, urls=listed("b")), ids=ids)
    before = with_dates(database, ids)
    write(database, rows, SitemapPart(url=URL, end=WHOLE), ids=ids)

    assert before == ["a", "b", "c"]
    assert with_dates(database, ids) == ["a", "b"]


def test_reading_when_cut_then_no_row_loses_its_date(database: Database) -> None:
    ids = named_rows(database, "a", "b")
    rows = SitemapRows(SOURCE, 1)
    write(database, rows, SitemapPart(url=URL, urls=listed("a", "b")), SitemapPart(url=URL, end=WHOLE), ids=ids)

    write(database, rows, SitemapPart(url=URL, urls=listed("a"), end=SitemapEnd(code=200)), ids=ids)

    assert with_dates(database, ids) == ["a", "b"]


def test_write_when_its_transaction_failed_then_it_counts_only_once_it_is_repeated(database: Database) -> None:
    ids = named_rows(database, "a", "b")
    rows = SitemapRows(SOURCE, 1)
    write(database, rows, SitemapPart(url=URL, urls=listed("a", "b")), SitemapPart(url=URL, end=WHOLE), ids=ids)

    write(database, rows, SitemapPart(url=URL, urls=listed("b")), ids=ids, fails=True)
    write(database, rows, SitemapPart(url=URL, urls=listed("a")), ids=ids)
    write(database, rows, SitemapPart(url=URL, end=WHOLE), ids=ids)

    assert with_dates(database, ids) == ["a"]


def test_index_when_read_then_its_children_are_known_and_those_that_vanished_are_not(database: Database) -> None:
    rows = SitemapRows(SOURCE, 1)
    write(database, rows, SitemapPart(url=URL, children=("http://a.test/1", "http://a.test/2"), end=WHOLE), ids={})

    write(database, rows, SitemapPart(url=URL, children=("http://a.test/2", "http://a.test/3"), end=WHOLE), ids={})

    with database.read_once() as transaction:
        index = sitemap_table.find(transaction, SOURCE, URL)
        assert index is not None
        assert (index.code, index.run_id) == (200, 1)
        assert sitemap_table.find_children(transaction, index.id) == ["http://a.test/2", "http://a.test/3"]
