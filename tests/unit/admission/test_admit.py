"""Links become rows: identity, boundary, smallest depth (B6, F1)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select

from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.codes import REFUSED
from searchcrawl.exceptions import StoreAway
from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.rules.url_rules import HostScope
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.schema import urls as list_urls
from searchcrawl.store.urls import link_table, url_classes

SITE = "http://a.test/"


def admission(database: Database, *, max_urls: int = 0, **scope: Any) -> Admission:
    known = database.read(run_table.count_urls, 1, without=REFUSED)
    boundary = Boundary(include_hosts=["a.test"], **scope)
    return Admission(source_id=1, boundary=boundary, max_urls=max_urls, known_urls=known)


def links(*names: str, nofollow: bool = False) -> list[Link]:
    return [Link(name if ":" in name else SITE + name, nofollow) for name in names]


def admit(database: Database, tested: Admission, *found: FoundLinks) -> tuple[int, int]:
    """Admits links in a run; returns how many URLs more it has to fetch, and how many more it rejects."""
    with database.write_once() as transaction:
        tally = url_classes.open_tally(transaction, run_id=1, horizon_ms=0)
        tested.admit(transaction, list(found))
    tested.note_commit()
    assert tally.changes["discovered"] == tally.changes["to_fetch"] + tally.changes["rejected"]
    return tally.changes["to_fetch"], tally.changes["rejected"]


def rows(database: Database) -> dict[str, tuple[int, int]]:
    """Depth and code by path."""
    with database.read_once() as transaction:
        found = transaction.exec_driver_sql("SELECT url, depth, code FROM urls")
        return {url.removeprefix(SITE): (depth, code) for url, depth, code in found}


def id_of(database: Database, name: str) -> int:
    with database.read_once() as transaction:
        return int(transaction.execute(select(list_urls.c.id).where(list_urls.c.url == SITE + name)).scalar_one())


def test_admit_when_links_are_new_then_each_is_a_row_once(database: Database) -> None:
    tested = admission(database)

    counts = admit(database, tested, FoundLinks(None, 0, links("a", "b", "a")), FoundLinks(None, 0, links("b")))

    assert counts == (2, 0)
    assert rows(database) == {"a": (0, 0), "b": (0, 0)}


def test_admit_when_known_by_memory_or_by_the_table_then_nothing_is_new(database: Database) -> None:
    tested = admission(database)
    admit(database, tested, FoundLinks(None, 0, links("a")))

    by_memory = admit(database, tested, FoundLinks(None, 0, links("a")))
    by_table = admit(database, admission(database), FoundLinks(None, 0, links("a")))

    assert (by_memory, by_table) == ((0, 0), (0, 0))


def test_admit_when_outside_the_boundary_then_a_row_with_its_code_and_rule(database: Database) -> None:
    counts = admit(database, admission(database), FoundLinks(None, 0, links("http://b.test/x", "a")))

    assert counts == (1, 1)
    assert rows(database) == {"a": (0, 0), "http://b.test/x": (0, 955)}


def test_admit_when_nofollow_then_no_row(database: Database) -> None:
    admit(database, admission(database), FoundLinks(None, 0, links("a", nofollow=True)))

    assert rows(database) == {}


def test_admit_when_pages_of_a_group_differ_in_depth_then_the_smallest_counts(database: Database) -> None:
    tested = admission(database)

    admit(
        database,
        tested,
        FoundLinks(None, 3, links("a")),
        FoundLinks(None, 1, links("a")),
        FoundLinks(None, 2, links("a")),
    )

    assert rows(database) == {"a": (1, 0)}


def test_admit_when_found_nearer_later_then_its_links_come_nearer_too(database: Database) -> None:
    tested = admission(database)
    admit(database, tested, FoundLinks(None, 4, links("a")))
    admit(database, tested, FoundLinks(id_of(database, "a"), 5, links("b")))
    admit(database, tested, FoundLinks(id_of(database, "b"), 6, links("c", "a")))

    admit(database, tested, FoundLinks(None, 1, links("a")))

    assert rows(database) == {"a": (1, 0), "b": (2, 0), "c": (3, 0)}


def test_admit_when_refused_for_its_depth_and_found_nearer_then_it_is_to_do(database: Database) -> None:
    tested = admission(database, depth=2)
    first = admit(database, tested, FoundLinks(None, 3, links("a")))

    second = admit(database, tested, FoundLinks(None, 2, links("a")))

    assert (first, second) == ((0, 1), (1, -1))
    with database.read_once() as transaction:
        state = transaction.exec_driver_sql("SELECT fetch_state, depth FROM urls").one()
    assert tuple(state) == (0, 2)


def test_admit_when_the_transaction_fails_then_the_links_are_not_remembered(database: Database) -> None:
    tested = admission(database)
    with suppress(RuntimeError), database.write_once() as transaction:
        tested.admit(transaction, [FoundLinks(None, 0, links("a"))])
        raise RuntimeError("no commit")
    tested.note_rollback()

    assert admit(database, tested, FoundLinks(None, 0, links("a"))) == (1, 0)
    assert rows(database) == {"a": (0, 0)}


def counted(database: Database) -> dict[tuple[str | None, str | None], int]:
    """Links without a row by rule and host."""
    return {(row.rule, row.host): row.links for row in database.read(link_table.load_refused, 1)}


def names_of_hosts(database: Database) -> set[str]:
    with database.read_once() as transaction:
        return {name for (name,) in transaction.exec_driver_sql("SELECT name FROM hosts")}


ELSEWHERE = ("scope.include_hosts: no include matches", "b.test")


@pytest.mark.parametrize(
    ("scope", "link", "rule", "host"),
    [
        ({}, "http://b.test/x", "scope.include_hosts: no include matches", "b.test"),
        ({}, "https://b.test:8443/x", "scope.include_hosts: no include matches", "b.test:8443"),
        ({}, "http://b.test/" + "x" * 3000, "scope.max_url_length: max_url_length = 2048", "b.test"),
        ({"exclude_hosts": ["x.a.test"]}, "http://x.a.test/", "scope.exclude_hosts: x.a.test", "x.a.test"),
        ({"depth": 1}, "http://b.test/x", "scope.include_hosts: no include matches", "b.test"),
        ({"include_urls": ["http://a.test/*"]}, "http://b.test/x", "scope.include_hosts: no include matches", "b.test"),
        # The same name at another port is another host.
        ({"include_ports": [80]}, "https://a.test/x", "scope.include_ports: no include matches", "a.test"),
        ({"exclude_ports": [8443]}, "https://a.test:8443/x", "scope.exclude_ports: 8443", "a.test:8443"),
        (
            {"hosts": [HostScope(host="a.test", include_ports=[80])]},
            "http://a.test:81/x",
            "scope.host[0].include_ports: no include matches",
            "a.test:81",
        ),
        ({"include_urls": ["http://a.test/*"]}, "https://a.test/x", "scope.include_urls: no include matches", "a.test"),
        (
            {"include_urls": ["http://a.test/*"]},
            "http://a.test:81/x",
            "scope.include_urls: no include matches",
            "a.test:81",
        ),
    ],
)
def test_admit_when_a_page_links_to_a_host_outside_then_no_row_and_it_is_counted(
    database: Database, scope: dict[str, Any], link: str, rule: str, host: str
) -> None:
    tested = admission(database, **scope)
    admit(database, tested, FoundLinks(None, 0, links("a")))
    page = FoundLinks(id_of(database, "a"), 1, links(link), only_counted=True)

    counts = [admit(database, tested, page), admit(database, tested, page, page)]

    assert counts == [(0, 0), (0, 0)]
    assert rows(database) == {"a": (0, 0)}
    assert names_of_hosts(database) == {"a.test:80"}
    assert counted(database) == {(rule, host): 3}


@pytest.mark.parametrize(
    ("include", "link", "has_row"),
    [
        (["http://a.test/docs/*"], "http://b.test/x", False),
        (["http://a.test/docs/*", "https://c.test:8000/*"], "http://a.test/x", True),
        (["http://a.test/docs/*", "https://c.test:8000/*"], "https://c.test:8000", True),
        (["http://a.test/docs/*", "https://c.test:8000/*"], "http://c.test:8000/", False),
        (["http://a.test/docs/*", "https://c.test:8000/*"], "https://a.test/docs/x", False),
        (["http://a.test:80/docs/*"], "http://a.test/x", True),
        (["http://a.test/docs/*", "http://*.c.test/*"], "http://b.test/x", True),
        (["re:^http://a"], "http://b.test/x", True),
        (["*/docs/*"], "http://b.test/x", True),
        (["HTTP://A.test/*"], "http://b.test/x", False),
        (["http://a.test*"], "http://b.test/x", True),
        (["http://a.test/*"], "http://a.test.b/x", False),
    ],
)
def test_admit_when_only_url_rules_include_then_hosts_that_none_of_them_names_are_outside(
    database: Database, include: list[str], link: str, has_row: bool
) -> None:
    boundary = Boundary(include_urls=include, max_url_length=0)
    tested = Admission(source_id=1, boundary=boundary, max_urls=0, known_urls=0)

    admit(database, tested, FoundLinks(None, 1, links(link), only_counted=True))

    assert bool(rows(database)) == has_row
    assert bool(counted(database)) != has_row


def test_admit_when_a_row_is_needed_or_there_then_a_link_outside_has_it_and_is_not_counted(database: Database) -> None:
    tested = admission(database)
    start, canonical, linked = "http://b.test/start", "http://b.test/canonical", "http://b.test/linked"
    admit(database, tested, FoundLinks(None, 0, links(start, "a")))
    page = FoundLinks(id_of(database, "a"), 1, links(start, canonical, linked), links(canonical), only_counted=True)

    counts = admit(database, tested, page)
    moved = admit(database, tested, FoundLinks(id_of(database, "a"), 1, links(linked)))
    admit(database, tested, page)

    assert (counts, moved) == ((0, 1), (0, 1))
    assert rows(database) == {start: (0, 955), "a": (0, 0), canonical: (0, 955), linked: (1, 955)}
    assert counted(database) == {ELSEWHERE: 1}


def test_admit_when_the_transaction_fails_then_refused_links_are_counted_once(database: Database) -> None:
    tested = admission(database)
    found = FoundLinks(None, 1, links("http://b.test/x", "http://b.test/y"), only_counted=True)
    with suppress(RuntimeError), database.write_once() as transaction:
        tested.admit(transaction, [found])
        raise RuntimeError("no commit")
    tested.note_rollback()

    admit(database, tested, found)

    assert counted(database) == {ELSEWHERE: 2}


def test_admit_when_there_are_very_many_hosts_then_the_most_frequent_are_named_and_all_are_counted(
    database: Database,
) -> None:
    tested = admission(database)
    many = [f"http://h{number}.test/" for number in range(5000)]
    often = [f"http://often{number}.test/{path}" for number in range(3) for path in range(9)]

    for _ in range(3):
        admit(database, tested, FoundLinks(None, 1, links(*many, *often), only_counted=True))

    found = counted(database)
    assert len(found) == link_table.MOST_PAIRS + 1
    assert sum(found.values()) == 3 * (5000 + 27)
    assert list(found.items())[:3] == [((ELSEWHERE[0], f"often{number}.test"), 27) for number in range(3)]
    assert list(found)[-1] == (None, None)
    assert (rows(database), names_of_hosts(database)) == ({}, set())


def test_max_urls_when_reached_by_links_of_pages_then_no_row_and_they_are_counted(database: Database) -> None:
    tested = admission(database, max_urls=2)
    page = FoundLinks(None, 1, links("a", "b", "c", "d"), only_counted=True)

    counts = [admit(database, tested, page), admit(database, tested, page)]
    later = admit(database, admission(database, max_urls=3), page)

    assert counts == [(2, 0), (0, 0)]
    assert later == (1, 0)
    assert len(rows(database)) == 3
    assert counted(database) == {("scope.max_urls: 2", "a.test"): 4, ("scope.max_urls: 3", "a.test"): 1}


def test_admit_when_discarded_on_a_host_outside_then_it_is_counted_under_the_rewriter(database: Database) -> None:
    decision = Decision(False, "discarded by plugin mine:Plugin", "", "rewrite[0].plugin")
    dropped = [NormalisedUrl(url, None, None, 955, decision) for url in ("http://b.test/x", f"{SITE}x")]
    found = FoundLinks(None, 1, [], discarded=dropped, only_counted=True)

    counts = admit(database, admission(database), found)

    assert (counts, rows(database)) == ((0, 1), {"x": (1, 955)})
    assert counted(database) == {("rewrite[0].plugin: discarded by plugin mine:Plugin", "b.test"): 1}


def test_max_urls_when_reached_then_further_links_are_refused(database: Database) -> None:
    counts = admit(database, admission(database, max_urls=2), FoundLinks(None, 0, links("a", "b", "c")))

    assert counts == (2, 1)
    assert sorted(code for _, code in rows(database).values()) == [0, 0, 955]


def test_max_urls_when_another_run_begins_then_refused_urls_do_not_count(database: Database) -> None:
    outside = links("http://b.test/1", "http://b.test/2")
    admit(database, admission(database, max_urls=2), FoundLinks(None, 0, [*outside, *links("a")]))

    counts = admit(database, admission(database, max_urls=2), FoundLinks(None, 0, links("b", "c")))

    assert counts == (1, 1)


def test_admit_when_a_transaction_is_rolled_back_and_repeated_then_hosts_are_those_of_the_store(
    database: Database,
) -> None:
    tested = admission(database)
    lost = FoundLinks(None, 0, links("http://one.a.test/", "http://two.a.test/"))
    with suppress(StoreAway), database.write_once() as transaction:
        tested.admit(transaction, [lost])
        raise StoreAway("gone")
    with database.write_once() as transaction:
        # Another process takes the numbers meanwhile.
        host_table.find_or_add(transaction, ["other.test:80", "third.test:80"])

    tested.note_rollback()
    admit(database, tested, lost)

    with database.read_once() as transaction:
        query = "SELECT url, name FROM urls JOIN hosts ON hosts.id = urls.host_id ORDER BY url"
        found = list(map(tuple, transaction.exec_driver_sql(query)))
    assert found == [("http://one.a.test/", "one.a.test:80"), ("http://two.a.test/", "two.a.test:80")]


def discarded(*names: str) -> list[NormalisedUrl]:
    decision = Decision(False, "discarded by plugin mine:Plugin", "", "rewrite[0].plugin")
    return [NormalisedUrl(SITE + name, None, None, 955, decision, "why") for name in names]


def test_admit_when_a_rewriter_discards_links_then_rows_say_so_and_known_ones_stay(database: Database) -> None:
    tested = admission(database)
    admit(database, tested, FoundLinks(None, 0, links("known")))

    counts = admit(database, tested, FoundLinks(None, 1, links("kept"), discarded=discarded("a", "known", "kept")))
    again = admit(database, tested, FoundLinks(None, 1, [], discarded=discarded("a")))

    assert (counts, again) == ((1, 1), (0, 0))
    assert rows(database) == {"known": (0, 0), "kept": (1, 0), "a": (1, 955)}


def test_admit_when_a_discarded_url_is_found_by_a_link_that_counts_then_it_is_to_do(database: Database) -> None:
    tested = admission(database)
    admit(database, tested, FoundLinks(None, 1, [], discarded=discarded("a", "b")))

    counts = admit(database, tested, FoundLinks(None, 1, [Link(f"{SITE}a", False, None, f"{SITE}raw")]))

    with database.read_once() as transaction:
        found = transaction.exec_driver_sql("SELECT url, fetch_state, found_as FROM urls ORDER BY url").all()
    assert counts == (1, -1)
    assert [(url.removeprefix(SITE), state, found_as) for url, state, found_as in found] == [
        ("a", 0, f"{SITE}raw"),
        ("b", 2, None),
    ]
