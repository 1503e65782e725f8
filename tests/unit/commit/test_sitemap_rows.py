"""What the parts of sitemaps change in rows, over several transactions (L5)."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import select

from searchcrawl import urls
from searchcrawl.admission.url_normalisation import normalise_parts
from searchcrawl.codes import Code
from searchcrawl.commit.link_rows import SitemapRows
from searchcrawl.items import SitemapEnd, SitemapPart, SitemapUrl
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.store import sitemap_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.schema import sitemaps
from tests.unit.store.support_store import SOURCE, add, row

URL = "http://a.test:80/sitemap.xml"
WHOLE = SitemapEnd(code=200, whole=True)


def listed(*names: str) -> tuple[SitemapUrl, ...]:
    return tuple(SitemapUrl(f"http://a.test:80/{name}", 1000) for name in names)


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


EVIL = "http://evil.test/index.xml"
CHILD = "http://a.test:80/child.xml"
MARKED = SitemapEnd(code=200, whole=True, etag='"1"')


def names(url: str, *children: str, own: bool = False) -> SitemapPart:
    return SitemapPart(url=url, children=children, own_children=children if own else (), end=MARKED)


def children_of(database: Database, url: str) -> tuple[list[str], str | None]:
    """The sitemaps of an index, and its validator."""
    with database.read_once() as transaction:
        index = sitemap_table.find(transaction, SOURCE, url)
        assert index is not None
        return sitemap_table.find_children(transaction, index.id), index.etag


@pytest.mark.parametrize(
    ("own", "has"),
    [
        # robots.txt, or the host's own guess, leads to it; or the host's own index.
        (SitemapPart(url=CHILD, urls=listed("a"), end=WHOLE, is_root=True), []),
        (SitemapPart(url=CHILD, urls=listed("a"), end=WHOLE, is_guess=True), []),
        (names(URL, CHILD, own=True), [CHILD]),
    ],
)
def test_child_when_its_own_host_names_it_too_then_a_foreign_index_does_not_take_it_along(
    database: Database, own: SitemapPart, has: list[str]
) -> None:
    ids = named_rows(database, "a")
    rows = SitemapRows(SOURCE, 1)
    write(database, rows, SitemapPart(url=URL, end=WHOLE), names(EVIL, CHILD), ids=ids)
    write(database, rows, SitemapPart(url=CHILD, urls=listed("a"), end=WHOLE), own, ids=ids)

    write(database, rows, names(EVIL, CHILD), ids=ids)
    during = children_of(database, EVIL)
    write(database, rows, names(EVIL), ids=ids)

    # What it does not own it has to name again each time.
    assert during == ([], None)
    assert children_of(database, URL)[0] == has
    assert with_dates(database, ids) == ["a"]


@pytest.mark.parametrize("at_once", [True, False])
def test_child_when_its_index_names_it_no_more_but_another_does_then_it_is_the_others(
    database: Database, at_once: bool
) -> None:
    ids = named_rows(database, "a")
    rows = SitemapRows(SOURCE, 1)
    write(database, rows, names(URL, CHILD), SitemapPart(url=CHILD, urls=listed("a"), end=WHOLE), ids=ids)

    changes = [names(EVIL, CHILD), names(URL)]
    for group in [changes] if at_once else [[change] for change in changes]:
        write(database, rows, *group, ids=ids)

    assert [children_of(database, url)[0] for url in (EVIL, URL)] == [[CHILD], []]
    assert with_dates(database, ids) == ["a"]


UNREAD = [
    SitemapEnd(code=404, error="there is none"),
    SitemapEnd(code=Code.TIMEOUT, error="it does not answer"),
    SitemapEnd(code=304),
    SitemapEnd(code=304, etag='"2"'),
    SitemapEnd(code=200),
    WHOLE,
]


def list_known(database: Database, name: str) -> list[tuple[str, int, str | None, str | None, int, str | None]]:
    """What is known of the sitemaps of hosts whose names begin with ``name``, and which index each belongs to."""
    parents = sitemaps.alias()
    columns = sitemaps.c.url, sitemaps.c.code, sitemaps.c.error, sitemaps.c.etag, sitemaps.c.is_feed, parents.c.url
    query = select(*columns).outerjoin(parents, parents.c.id == sitemaps.c.parent_id).order_by(sitemaps.c.url)
    with database.read_once() as transaction:
        rows = transaction.execute(query.where(sitemaps.c.url.startswith(f"http://{name}-"))).all()
    return [
        tuple(value.replace(f"//{name}-", "//") if isinstance(value, str) else value for value in row) for row in rows
    ]


@pytest.mark.parametrize("seed", range(10))
def test_unread_when_sitemaps_of_many_hosts_end_together_then_it_is_as_one_by_one(
    database: Database, seed: int
) -> None:
    for name in ("alone", "together"):
        chance = random.Random(seed)
        index = f"http://{name}-index.test/index.xml"
        hosts = [f"http://{name}-{number}.test/sitemap.xml" for number in range(30)]
        rows = SitemapRows(SOURCE, 1)
        write(database, rows, names(index, *chance.sample(hosts, 10)), ids={})
        parts = [
            SitemapPart(
                url=url,
                children=(f"{url}?child",) if chance.random() < 0.1 else (),
                end=chance.choice(UNREAD) if chance.random() < 0.9 else None,
                is_root=chance.random() < 0.2,
                is_guess=chance.random() < 0.5,
                is_feed=chance.random() < 0.2,
            )
            for url in [*chance.sample(hosts, 30), *chance.sample(hosts, 30)]
        ]
        for group in [parts[:30], parts[30:]] if name == "together" else [[part] for part in parts]:
            write(database, rows, *group, ids={})

    assert list_known(database, "together") == list_known(database, "alone")
    assert len({row[1] for row in list_known(database, "alone")}) > 3
