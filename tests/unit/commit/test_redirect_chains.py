"""Redirects from row to row end with 963 where they loop or are too many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.commit import link_rows
from searchcrawl.items import Claim, Link, Outcome
from searchcrawl.store import host_table, schema
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import link_table, url_table
from searchcrawl.store.urls.url_table import NewUrl


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    with closing(Database(store_url, tmp_path)) as database:
        database.write(run_table.find_or_add_source, "example")
        yield database


def hop(number: int) -> str:
    return f"http://www.example.org/hop/{number}"


def visited(database: Database, number: int, target: int | None, *, referrer: int | None = None) -> int:
    """A row that was found by a link, and redirected to that of another number at its visit; None: it was not visited."""
    with database.write_once() as transaction:
        host = host_table.find_or_add(transaction, ["www.example.org:80"])["www.example.org:80"]
        row = NewUrl(key=urls.key(hop(number)), url=hop(number), host_id=host, depth=0, referrer_id=referrer)
        url_id = url_table.add(transaction, 1, [row], 0)[row.key]
    if target is not None:
        point(database, url_id, Code.MOVED, [target])
    return url_id


def point(database: Database, url_id: int, code: int, targets: list[int]) -> None:
    """What the last visit of a row found."""
    with database.write_once() as transaction:
        link_table.store(transaction, {url_id: targets}, {})
        transaction.execute(update(schema.urls).where(schema.urls.c.id == url_id).values(code=int(code)))


def chain_of(database: Database, length: int, *, code: int = Code.MOVED) -> int:
    """Rows of which each redirected to the next; the id of the last, which was not visited yet."""
    last = visited(database, 0, None)
    for number in range(1, length + 1):
        before, last = last, visited(database, number, None, referrer=last)
        point(database, before, code, [last])
    return last


def moved(database: Database, url_id: int, number: int, target: str, *, max_redirects: int = 10) -> Outcome:
    claim = Claim(url_id=url_id, url=hop(number), host_id=1, depth=0)
    outcome = Outcome(claim=claim, code=Code.MOVED, links=(Link(target),))
    (found,) = database.read(link_rows.cut_redirect_chains, [outcome], source_id=1, max_redirects=max_redirects)
    assert isinstance(found, Outcome)
    return found


@pytest.mark.parametrize(
    ("length", "code", "expected"),
    [
        (9, Code.MOVED, Code.MOVED),
        (10, Code.MOVED, Code.REDIRECT_LOOP),
        (10, Code.META_REFRESH, Code.REDIRECT_LOOP),
        # An ordinary page links to it: the count begins there.
        (10, 200, Code.MOVED),
    ],
)
def test_redirect_when_as_many_as_allowed_came_before_then_963_and_leads_nowhere(
    database: Database, length: int, code: int, expected: Code
) -> None:
    target = hop(length + 1)

    found = moved(database, chain_of(database, length, code=code), length, target)

    assert (found.code, found.links) == (expected, (Link(target),) if expected == Code.MOVED else ())


def test_redirect_when_it_leads_back_to_one_before_then_963(database: Database) -> None:
    found = moved(database, chain_of(database, 3), 3, hop(1))

    assert found.code == Code.REDIRECT_LOOP
    assert found.error == f"redirect loop, from page to page: {hop(3)}"


def test_redirect_when_the_page_that_found_it_redirects_elsewhere_now_then_no_loop(database: Database) -> None:
    found_by = visited(database, 0, None)
    last = visited(database, 1, None, referrer=found_by)
    point(database, found_by, Code.MOVED, [visited(database, 2, None)])

    assert moved(database, last, 1, hop(0)).code == Code.MOVED


def test_redirect_when_it_leads_to_a_page_that_was_a_loop_then_its_links_of_before_are_no_redirect(
    database: Database,
) -> None:
    last, old = visited(database, 1, None), visited(database, 0, None)
    point(database, old, Code.REDIRECT_LOOP, [last])

    assert moved(database, last, 1, hop(0)).code == Code.MOVED


@pytest.mark.parametrize("length", [1, 3, 9])
def test_redirect_when_links_led_to_all_pages_of_a_loop_then_963(database: Database, length: int) -> None:
    last = visited(database, length, None)
    target = last
    for number in reversed(range(length)):
        target = visited(database, number, target)

    assert moved(database, last, length, hop(0)).code == Code.REDIRECT_LOOP
    assert moved(database, last, length, hop(length)).code == Code.REDIRECT_LOOP


def test_redirect_when_what_follows_is_a_loop_without_it_then_leads_on(database: Database) -> None:
    outside, second = visited(database, 5, None), visited(database, 2, None)
    first = visited(database, 1, second)
    point(database, second, Code.MOVED, [first])

    assert moved(database, outside, 5, hop(1)).code == Code.MOVED


def test_redirects_when_they_are_in_one_group_then_the_last_of_a_loop_gets_963(database: Database) -> None:
    ids = [visited(database, number, None) for number in range(3)]
    items = [
        Outcome(
            claim=Claim(url_id=url_id, url=hop(number), host_id=1, depth=0),
            code=Code.MOVED,
            links=(Link(hop((number + 1) % 3)),),
        )
        for number, url_id in enumerate(ids)
    ]
    found = database.read(link_rows.cut_redirect_chains, items, source_id=1, max_redirects=10)

    assert [item.code for item in found] == [Code.MOVED, Code.MOVED, Code.REDIRECT_LOOP]
