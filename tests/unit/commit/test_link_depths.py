"""The depth of links whose page came nearer while it was fetched (B7)."""

from __future__ import annotations

from searchcrawl import urls
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.commit.link_rows import update_depths
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests import factories


def test_depths_when_a_page_comes_nearer_while_it_is_fetched_then_so_do_its_links(database: Database) -> None:
    url = "http://a.test/"
    with database.write_once() as transaction:
        host = host_table.find_or_add(transaction, ["a.test:80"])["a.test:80"]
        row = NewUrl(key=urls.key(url), url=url, host_id=host, depth=3)
        page = url_table.add(transaction, 1, [row], 0)[row.key]
        url_table.lower_depths(transaction, {page: 2})
    visited = factories.document(claim=factories.claim(page, depth=3))
    found = [FoundLinks(page, 4, ()), FoundLinks(None, 0, ())]

    assert [links.depth for links in database.read(update_depths, [visited], found)] == [3, 0]
