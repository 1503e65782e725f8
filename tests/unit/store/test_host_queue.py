"""Hosts with rows to visit are found at a cost that does not rise with the number of hosts (C1, X-T6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_queue, url_table
from searchcrawl.store.urls.url_queue import FIRST, DuePlace
from searchcrawl.store.urls.url_table import NewUrl
from tests.unit.store.support_store import NOW_MS, SOURCE, add, settle

#: Numbers of hosts whose costs are compared.
FEW: Final = 200
MANY: Final = 6000


def to_do(database: Database, *, after: int = 0, limit: int = 9) -> list[int]:
    return database.read(url_queue.find_hosts_to_do, SOURCE, after=after, limit=limit)


def due(
    database: Database, *, after: DuePlace = FIRST, horizon_ms: int = NOW_MS, limit: int = 9
) -> list[tuple[int, int]]:
    return [tuple(place) for place in database.read(url_queue.find_due, SOURCE, horizon_ms, after=after, limit=limit)]


def test_hosts_when_some_have_rows_to_do_then_they_are_listed_a_page_at_a_time(database: Database) -> None:
    add(database, ["a"], host="a.test:80")
    idle = add(database, ["a"], host="b.test:80")
    add(database, ["a", "b"], host="c.test:80")
    settle(database, idle, due_ms=None)

    assert to_do(database) == [1, 3]
    assert [to_do(database, after=after, limit=1) for after in (0, 1, 3)] == [[1], [3], []]


def test_hosts_when_all_rows_are_due_later_then_none_until_then(database: Database) -> None:
    for host in ("a.test:80", "b.test:80"):
        settle(database, add(database, ["a", "b"], host=host), due_ms=NOW_MS + 5)
    settle(database, add(database, ["c"], host="b.test:80"))

    now, later = due(database), due(database, horizon_ms=NOW_MS + 5)

    assert now == [(NOW_MS, 2)]
    assert later == [(NOW_MS, 2), *[(NOW_MS + 5, host) for host in (1, 1, 2, 2)]]


def test_due_rows_when_those_of_a_host_are_due_together_then_the_next_page_begins_behind_them(
    database: Database,
) -> None:
    settle(database, add(database, [str(number) for number in range(50)], host="a.test:80"), due_ms=0)
    settle(database, add(database, ["a"], host="b.test:80"), due_ms=0)
    settle(database, add(database, ["a"], host="c.test:80"), due_ms=7)
    add(database, ["to do"], host="d.test:80")

    first = due(database, limit=2)
    second = due(database, after=DuePlace(*first[-1]), limit=2)

    assert (first, second) == ([(0, 1), (0, 1)], [(0, 2), (7, 3)])
    assert due(database, after=DuePlace(*second[-1])) == []


def fill(database: Database, hosts: int, *, visited: bool) -> None:
    """A source of so many hosts with a row each: visited in this run but for the last one, or to do."""
    with database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
        ids = host_table.find_or_add(transaction, [f"h{number:06}.test:80" for number in range(hosts)])
        rows = [NewUrl(key=host, url=f"http://{name}/", host_id=host, depth=1) for name, host in ids.items()]
        added = sorted(url_table.add(transaction, SOURCE, rows, NOW_MS).values())
    if visited:
        settle(database, added[:-1], due_ms=NOW_MS + 1)
        settle(database, added[-1:], due_ms=NOW_MS)


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Counts the steps of SQLite's machine that reading takes in a source of so many hosts."""
    opened: list[Database] = []

    def count(hosts: int, work: Callable[[Transaction], Any], *, visited: bool) -> int:
        database = Database(f"sqlite:///{hosts}.db", tmp_path)
        opened.append(database)
        fill(database, hosts, visited=visited)
        counted = 0

        def step() -> int:
            nonlocal counted
            counted += 1
            return 0

        with database.read_once() as transaction:
            connection: Any = transaction.connection.driver_connection
            work(transaction)
            connection.set_progress_handler(step, 1)
            work(transaction)
            connection.set_progress_handler(None, 1)
        return counted

    yield count
    for database in opened:
        database.close()


@pytest.mark.parametrize(
    ("work", "visited"),
    [
        (lambda transaction: url_queue.find_due(transaction, SOURCE, NOW_MS, after=FIRST, limit=64), True),
        (lambda transaction: url_queue.count_todo(transaction, SOURCE, NOW_MS), True),
        (lambda transaction: url_queue.find_hosts_to_do(transaction, SOURCE, after=0, limit=64), True),
        (lambda transaction: url_queue.find_hosts_to_do(transaction, SOURCE, after=0, limit=64), False),
        (lambda transaction: url_queue.find_due(transaction, SOURCE, NOW_MS, after=FIRST, limit=64), False),
    ],
    ids=["due", "count", "none to do", "to do", "none due"],
)
def test_work_when_hosts_are_many_then_finding_it_takes_no_longer(
    steps: Callable[..., int], work: Callable[[Transaction], Any], visited: bool
) -> None:
    few, many = steps(FEW, work, visited=visited), steps(MANY, work, visited=visited)

    assert 0 < many <= few * 1.1 + 20


def test_due_rows_when_a_page_begins_far_behind_then_reading_it_takes_no_longer(steps: Callable[..., int]) -> None:
    def page(after: int) -> Callable[[Transaction], Any]:
        place = DuePlace(NOW_MS + 1, after)
        return lambda transaction: url_queue.find_due(transaction, SOURCE, NOW_MS + 1, after=place, limit=64)

    early, late = steps(FEW, page(10), visited=True), steps(MANY, page(MANY - 100), visited=True)

    assert 0 < late <= early * 1.1 + 20
