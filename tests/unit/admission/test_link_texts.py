"""Texts of links are stored with the links of a page, and that they changed is noted where they did (C8)."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.store import source_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.schema import outlinks, urls
from searchcrawl.store.urls.link_table import LinkTexts, decode_texts

SITE = "http://a.test/"


@pytest.fixture(autouse=True)
def page(database: Database) -> None:
    run(database, FoundLinks(None, 0, [Link(f"{SITE}page")]))


def run(database: Database, *found: FoundLinks) -> bool:
    """Admits links in a run of their own, after one that froze all texts; returns whether a change is noted."""
    boundary = Boundary(include_hosts=["a.test"], depth=9)
    tested = Admission(source_id=1, boundary=boundary, max_urls=0, known_urls=0)
    with database.write_once() as transaction:
        source_table.note(transaction, 1, anchors="frozen")
        tested.admit(transaction, list(found))
        noted = source_table.find(transaction, 1, "anchors") is None
    tested.note_commit()
    return noted


def stored(database: Database) -> tuple[str, dict[str, list[str]]]:
    """The title of the page, and the texts of its links by path."""
    with database.read_once() as transaction:
        names = {row.id: row.url.removeprefix(SITE) for row in transaction.execute(select(urls.c.id, urls.c.url))}
        title, texts = decode_texts(transaction.execute(select(outlinks.c.texts)).scalar_one())
    return title, {names[target]: list(said) for target, said in texts.items()}


def page_of(*links: Link, title: str = "Title") -> FoundLinks:
    return FoundLinks(1, 1, links, only_counted=True, title=title)


def test_texts_when_a_page_is_admitted_then_are_stored_for_targets_that_have_a_row(database: Database) -> None:
    links = [
        Link(f"{SITE}a", texts=("one", "two")),
        Link(f"{SITE}b"),
        Link(f"{SITE}refused", nofollow=True, texts=("no",)),
        Link("http://elsewhere.test/", texts=("no",)),
        Link(f"{SITE}c", texts=("日本",)),
    ]

    assert run(database, page_of(*links, title=" Title\tof\nit "))

    assert stored(database) == ("Title of it", {"a": ["one", "two"], "c": ["日本"]})


def test_texts_when_they_are_as_before_then_no_change_is_noted(database: Database) -> None:
    links = [Link(f"{SITE}a", texts=("one",)), Link(f"{SITE}b", texts=("two",))]

    assert run(database, page_of(*links))
    assert not run(database, page_of(*links))
    assert not run(database, FoundLinks(None, 1, [Link(f"{SITE}new")]))
    assert run(database, page_of(*links, title="Another"))
    assert run(database, page_of(*links[:1], title="Another"))
    assert run(database, page_of(Link(f"{SITE}a", texts=("uno",)), title="Another"))
    assert stored(database) == ("Another", {"a": ["uno"]})


def test_texts_when_there_is_nothing_to_say_then_nothing_is_stored(database: Database) -> None:
    assert run(database, page_of(Link(f"{SITE}a"), title=""))

    assert decode_texts(None) == LinkTexts("", {})
    with database.read_once() as transaction:
        assert transaction.execute(select(outlinks.c.texts)).scalar_one() is None
