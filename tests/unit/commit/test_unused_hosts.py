"""Hosts that nothing names or uses any more leave the table; no id that a running process knows is wrong after that."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import select, update

from searchcrawl import clock
from searchcrawl import urls as urls_of
from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.commit.retention import purge_hosts
from searchcrawl.items import Link
from searchcrawl.politeness.host_leases import HostLeases
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.rules.boundary import Boundary
from searchcrawl.store import host_owners, host_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.schema import hosts, urls
from tests.filled_store import FilledStore

DAYS: Final = 90
DAY_MS: Final = 86_400_000
#: The host of the pages of ``FilledStore``.
NAMED: Final = "www.acme.test:8000"
#: Its id is the highest: names are added in order.
LAST: Final = "zz.test:80"


@pytest.fixture
def filled(filled: FilledStore) -> FilledStore:
    filled.admit("/a")
    return filled


def learn(filled: FilledStore, *names: str) -> dict[str, int]:
    return filled.database.write(host_table.find_or_add, names)


def age(filled: FilledStore, *, days: int = 100, name: str | None = None) -> None:
    """Makes the last use of hosts so many days older."""
    here = hosts.c.used_ms > 0 if name is None else hosts.c.name == name
    with filled.database.write_once() as transaction:
        transaction.execute(update(hosts).where(here).values(used_ms=hosts.c.used_ms - days * DAY_MS))


def set_values(filled: FilledStore, name: str, **values: int) -> None:
    with filled.database.write_once() as transaction:
        transaction.execute(update(hosts).where(hosts.c.name == name).values(values))


def known(filled: FilledStore) -> dict[str, int]:
    with filled.database.read_once() as transaction:
        return {row.name: row.id for row in transaction.execute(select(hosts))}


def names_of_urls(database: Database) -> list[tuple[str, str | None]]:
    query = select(urls.c.url, hosts.c.name).outerjoin(hosts, hosts.c.id == urls.c.host_id).order_by(urls.c.url)
    with database.read_once() as transaction:
        return [(row.url, row.name) for row in transaction.execute(query)]


def admission() -> Admission:
    return Admission(source_id=1, boundary=Boundary(allow_all=True), max_urls=0, known_urls=0)


def admit(tested: Admission, transaction: Transaction, *found: str) -> None:
    tested.admit(transaction, [FoundLinks(None, 1, [Link(url, False) for url in found])])


def test_purge_when_nothing_names_or_used_a_host_for_long_then_it_goes(filled: FilledStore) -> None:
    learn(filled, "old.test:80", "closed.test:80", "slot.test:80", LAST)
    age(filled)
    set_values(filled, "closed.test:80", closed_until_ms=clock.now_ms() + 1000)
    set_values(filled, "slot.test:80", next_allowed_ms=clock.now_ms() - 1000)

    gone = purge_hosts(filled.run, DAYS)

    assert gone == 1
    assert set(known(filled)) == {NAMED, "closed.test:80", "slot.test:80", LAST}


@pytest.mark.parametrize(("days", "aged"), [(DAYS, 89), (1, 6)])
def test_purge_when_the_last_use_is_not_long_ago_then_the_host_stays(filled: FilledStore, days: int, aged: int) -> None:
    learn(filled, "old.test:80", LAST)
    age(filled, days=aged)

    assert purge_hosts(filled.run, days) == 0


def test_purge_when_an_older_release_noted_no_use_then_the_time_begins_now(filled: FilledStore) -> None:
    learn(filled, "old.test:80", LAST)
    set_values(filled, "old.test:80", used_ms=0)

    first = purge_hosts(filled.run, DAYS)
    age(filled)
    second = purge_hosts(filled.run, DAYS)

    assert (first, second) == (0, 1)


def test_purge_when_urls_name_hosts_then_they_are_looked_for_once_in_the_time(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    find = "searchcrawl.store.host_table.find_named"
    monkeypatch.setattr(find, lambda transaction, *, after: looked.append(after) or {known(filled)[NAMED]})
    learn(filled, LAST)
    age(filled)

    for _ in range(3):
        purge_hosts(filled.run, DAYS)

    assert looked == [0]


def test_purge_when_the_newest_host_went_then_its_id_is_never_given_to_another(filled: FilledStore) -> None:
    before = learn(filled, "old.test:80", LAST)
    age(filled)

    purge_hosts(filled.run, DAYS)
    after = learn(filled, "old.test:80", "new.test:80")

    assert len({*before.values(), *after.values()}) == 4


def test_admission_when_another_process_forgot_a_host_then_its_next_url_has_one(filled: FilledStore) -> None:
    tested = admission()
    with filled.database.write_once() as transaction:
        admit(tested, transaction, "http://gone.test/1", "http://stays.test/1")
    tested.note_commit()
    with filled.database.write_once() as transaction:
        transaction.execute(urls.delete().where(urls.c.url == "http://gone.test/1"))
    learn(filled, LAST)
    age(filled)

    gone = purge_hosts(filled.run, DAYS)
    with filled.database.write_once() as transaction:
        admit(tested, transaction, "http://gone.test/2", "http://stays.test/2")

    assert gone == 1
    assert names_of_urls(filled.database) == [
        ("http://gone.test/2", "gone.test:80"),
        ("http://stays.test/1", "stays.test:80"),
        ("http://stays.test/2", "stays.test:80"),
        ("http://www.acme.test:8000/a", NAMED),
    ]


def test_purge_when_a_process_owns_the_host_then_it_stays(filled: FilledStore) -> None:
    ids = learn(filled, "owned.test:80", "ended.test:80", LAST)
    owner, ended = (filled.database.write(host_owners.register) for _ in range(2))
    filled.database.write(host_owners.take, owner, {ids["owned.test:80"]: 1000})
    filled.database.write(host_owners.take, ended, {ids["ended.test:80"]: 1000})
    filled.database.write(host_owners.end, ended)
    age(filled)

    gone = purge_hosts(filled.run, DAYS)

    assert gone == 1
    assert set(known(filled)) == {NAMED, "owned.test:80", LAST}


def test_host_when_another_process_forgot_it_then_it_is_taken_all_the_same(filled: FilledStore) -> None:
    registry = HostRegistry(host_concurrency=4, delay_seconds=1.0)
    tested = HostLeases(filled.database, registry)

    def ask() -> float | None:
        registry.reserve("gone.test:80", clock.monotonic())
        tested.update()
        return registry.reserve("gone.test:80", clock.monotonic())

    first = ask()
    tested.stop()
    learn(filled, LAST)
    age(filled)
    set_values(filled, "gone.test:80", next_allowed_ms=0)
    purge_hosts(filled.run, DAYS)
    gone = "gone.test:80" not in known(filled)
    second = ask()

    assert gone
    assert first is not None
    assert second is not None


@pytest.fixture
def beside(filled: FilledStore, tmp_path: Path) -> Iterator[Database]:
    """The same store, as another process has it open."""
    with closing(Database(filled.project.database_url, tmp_path)) as database:
        yield database


def test_purge_when_a_process_is_about_to_use_the_host_then_it_stays(
    filled: FilledStore, beside: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL comes after the look at all URLs, and before the host would be deleted."""
    learn(filled, "old.test:80", LAST)
    age(filled)
    run = filled.run
    look = "searchcrawl.commit.retention._find_named_hosts"

    def admit_late(_run: object, _unused: object) -> set[int]:
        with beside.write_once() as transaction:
            admit(admission(), transaction, "http://old.test/late")
        return set()

    monkeypatch.setattr(look, admit_late)
    purge_hosts(run, DAYS)

    assert ("http://old.test/late", "old.test:80") in names_of_urls(filled.database)


def test_purge_when_sources_admit_at_once_then_each_url_has_its_host(filled: FilledStore, tmp_path: Path) -> None:
    learn(filled, LAST)
    numbers, chance = itertools.count(), random.Random(1)
    forgotten: list[int] = []

    def crawl(number: int, store: Database, chosen: list[str]) -> None:
        with store.write_once() as transaction:
            source = run_table.find_or_add_source(transaction, f"source{number}")
            tested = Admission(source_id=source, boundary=Boundary(allow_all=True), max_urls=0, known_urls=0)
            admit(tested, transaction, *chosen)

    with ExitStack() as stack:
        stores = [stack.enter_context(closing(Database(filled.project.database_url, tmp_path))) for _ in range(3)]
        pool = stack.enter_context(ThreadPoolExecutor(4))
        for _ in range(40):
            age(filled)
            chosen = [[f"http://h{chance.randrange(30)}.test/{next(numbers)}" for _ in range(4)] for _ in stores]
            work = [pool.submit(crawl, *one) for one in zip(itertools.count(), stores, chosen, strict=False)]
            forgotten.append(purge_hosts(filled.run, DAYS))
            wait(work)
            assert not [one.exception() for one in work if one.exception()]
            found = names_of_urls(filled.database)
            assert [name for _, name in found] == [urls_of.host_and_port(url) for url, _ in found]
            with filled.database.write_once() as transaction:
                transaction.execute(urls.delete().where(urls.c.url.startswith("http://h")))

    assert sum(forgotten) > 100
