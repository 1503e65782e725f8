"""Links that may not be followed: a blob of each page that has any, at most so many, in place of what was known (L1)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import text

from searchcrawl import urls
from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import link_table, url_classes
from searchcrawl.store.urls.link_table import MOST_TARGETS, Nofollow
from tests.statements import statements

SITE = "http://a.test/"
PAGE = f"{SITE}page"


@pytest.fixture
def tested(database: Database) -> Admission:
    made = Admission(source_id=1, boundary=Boundary(include_hosts=["a.test"]), max_urls=0, known_urls=0)
    admit(database, made, FoundLinks(None, 0, [Link(PAGE)]))
    return made


def admit(database: Database, tested: Admission, *found: FoundLinks) -> None:
    with database.write_once() as transaction:
        url_classes.open_tally(transaction, run_id=1, horizon_ms=0)
        tested.admit(transaction, list(found))
    tested.note_commit()


def links(*names: str, nofollow: bool = True) -> list[Link]:
    return [Link(name if ":" in name else SITE + name, nofollow) for name in names]


def named(database: Database, name: str, *, gone: Sequence[int] = (404,)) -> list[tuple[str, str]]:
    found = database.read(link_table.find_unfollowed, 1, urls.key(SITE + name), gone=gone)
    return [(one.page.removeprefix(SITE), one.kind.title) for one in found]


def rows(database: Database) -> list[tuple[int, int]]:
    """Bytes of the targets, and whether there are more."""
    with database.read_once() as transaction:
        query = text("SELECT length(targets), cut FROM unfollowed_links")
        return [(row[0], row[1]) for row in transaction.execute(query)]


def test_page_when_links_are_not_to_be_followed_then_each_is_known_by_what_says_so(
    database: Database, tested: Admission
) -> None:
    by_page = links("b", "c", nofollow=False)

    admit(database, tested, FoundLinks(1, 1, links("a"), unfollowed=by_page, nofollow=Nofollow.META))

    assert [named(database, name) for name in "abcd"] == [
        [("page", "rel=nofollow")],
        [("page", "meta robots nofollow")],
        [("page", "meta robots nofollow")],
        [],
    ]
    assert len(rows(database)) == 2


def test_page_when_it_is_read_again_then_what_it_has_now_counts(database: Database, tested: Admission) -> None:
    admit(database, tested, FoundLinks(1, 1, links("a", "b")))
    later = Admission(source_id=1, boundary=Boundary(include_hosts=["a.test"]), max_urls=0, known_urls=0)
    admit(database, later, FoundLinks(1, 1, links("b")))
    second = [named(database, name) for name in "ab"]
    admit(database, later, FoundLinks(1, 1, links("b", nofollow=False)))

    assert second == [[], [("page", "rel=nofollow")]]
    assert rows(database) == []


def test_page_when_it_is_gone_then_its_links_count_no_more(database: Database, tested: Admission) -> None:
    admit(database, tested, FoundLinks(1, 1, links("a")))
    with database.write_once() as transaction:
        transaction.execute(text("UPDATE urls SET code = 404 WHERE id = 1"))

    assert (named(database, "a"), named(database, "a", gone=[410])) == ([], [("page", "rel=nofollow")])


def test_page_when_it_has_very_many_such_links_then_it_costs_one_row_of_8_kilobytes(
    database: Database, tested: Admission
) -> None:
    many = links(*(f"n{number}" for number in range(20_000)))

    admit(database, tested, FoundLinks(1, 1, many))

    assert rows(database) == [(8 * MOST_TARGETS, 1)]
    assert named(database, "n999") == [("page", "rel=nofollow")]
    assert database.read(link_table.is_unfollowed_cut, 1)


def test_source_when_its_links_take_too_much_then_further_pages_are_only_known_to_have_some(
    database: Database, tested: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_table, "MOST_BYTES", 24)
    admit(database, tested, FoundLinks(None, 0, links("second", "third", nofollow=False)))
    boundary = Boundary(include_hosts=["a.test"])
    first, later = (Admission(source_id=1, boundary=boundary, max_urls=0, known_urls=0) for _ in range(2))

    admit(database, first, FoundLinks(1, 1, links("a", "b")), FoundLinks(2, 1, links("a", "b")))
    admit(database, later, FoundLinks(3, 1, links("c")))

    assert sorted(rows(database)) == [(0, 1), (8, 0), (16, 0)]
    assert (named(database, "a"), named(database, "c")) == ([("page", "rel=nofollow")], [("third", "rel=nofollow")])


def test_page_when_such_links_lead_to_hosts_outside_then_they_are_not_kept(
    database: Database, tested: Admission
) -> None:
    admit(database, tested, FoundLinks(1, 1, links(*(f"http://spam{number}.test/" for number in range(2000)), "a")))

    assert rows(database) == [(8, 0)]


def test_pages_when_none_has_such_links_then_no_statement_is_about_them(database: Database, tested: Admission) -> None:
    admit(database, tested, FoundLinks(1, 1, links("a", nofollow=False)))

    with statements(database, "unfollowed_links") as asked:
        admit(database, tested, FoundLinks(1, 1, links("a", "b", nofollow=False)))

    assert asked == []
