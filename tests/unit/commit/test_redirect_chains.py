"""Redirects from row to row end with 963 where they loop or are too many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.commit import link_rows
from searchcrawl.items import Claim, Link, Outcome
from searchcrawl.store.engine.database import Database
from searchcrawl.store.hosts import host_table
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    with closing(Database(store_url, tmp_path)) as database:
        yield database


def hop(number: int) -> str:
    return f"http://www.example.org/hop/{number}"


def chain_of(database: Database, length: int, *, code: int = Code.MOVED) -> int:
    """Rows of which each redirected to the next; the id of the last, which was not visited yet."""
    referrer: int | None = None
    with database.write_once() as transaction:
        source = run_table.find_or_add_source(transaction, "example")
        host = host_table.find_or_add(transaction, ["www.example.org:80"])["www.example.org:80"]
        for number in range(length + 1):
            row = NewUrl(
                key=urls.key(hop(number)),
                url=hop(number),
                host_id=host,
                depth=0,
                referrer_id=referrer,
                code=code if number < length else 0,
            )
            referrer = url_table.add(transaction, source, [row], 0)[row.key]
    assert referrer is not None
    return referrer


def moved(database: Database, url_id: int, number: int, target: str, *, max_redirects: int = 10) -> Outcome:
    claim = Claim(url_id=url_id, url=hop(number), host_id=1, depth=0)
    outcome = Outcome(claim=claim, code=Code.MOVED, links=(Link(target),))
    with database.read_once() as transaction:
        (found,) = link_rows.cut_redirect_chains(transaction, [outcome], max_redirects=max_redirects)
    assert isinstance(found, Outcome)
    return found


def test_redirect_when_few_came_before_then_leads_on(database: Database) -> None:
    found = moved(database, chain_of(database, 9), 9, hop(10))

    assert (found.code, found.links) == (Code.MOVED, (Link(hop(10)),))


@pytest.mark.parametrize("code", [Code.MOVED, Code.META_REFRESH])
def test_redirect_when_as_many_as_allowed_came_before_then_963_and_leads_nowhere(
    database: Database, code: Code
) -> None:
    found = moved(database, chain_of(database, 10, code=code), 10, hop(11))

    assert (found.code, found.links) == (Code.REDIRECT_LOOP, ())


def test_redirect_when_it_leads_back_to_one_before_then_963(database: Database) -> None:
    found = moved(database, chain_of(database, 3), 3, hop(1))

    assert found.code == Code.REDIRECT_LOOP
    assert found.error == f"redirect loop, from page to page: {hop(3)}"


def test_redirect_when_an_ordinary_page_links_to_it_then_the_count_begins_there(database: Database) -> None:
    found = moved(database, chain_of(database, 10, code=200), 10, hop(11))

    assert found.code == Code.MOVED
