"""Of very many hosts the claiming thread finds those with rows that are due, and the end of a run finds all (C1, D4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.frontier import claiming
from searchcrawl.frontier.claiming import DueHosts
from tests.filled_store import FilledStore
from tests.unit.store.support_store import add, settle

_HORIZON_MS = 1000


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[FilledStore]:
    store = FilledStore(tmp_path, store_url)
    yield store
    store.close()


def due(filled: FilledStore, host: int, *, rows: int = 1, due_ms: int = 5) -> None:
    """Adds rows to a host that are due."""
    names = [f"{due_ms}-{number}" for number in range(rows)]
    settle(filled.database, add(filled.database, names, host=f"h{host}.test:80"), due_ms=due_ms)


def scan(tested: DueHosts, *, most: int = 64, horizon_ms: int = _HORIZON_MS) -> list[int]:
    tested.begin()
    found = []
    for _ in range(1000):
        found += tested.take(horizon_ms, most=most)
        if tested.done:
            return found
    raise AssertionError("the scan does not end")


@pytest.mark.parametrize("most", [1, 3, 64])
@pytest.mark.parametrize("together", [True, False])
def test_hosts_when_some_are_due_then_a_scan_finds_each_once(filled: FilledStore, most: int, together: bool) -> None:
    for host in range(1, 8):
        due(filled, host, rows=4, due_ms=5 if together else 5 * host)
    due(filled, 8, due_ms=_HORIZON_MS + 1)
    tested = DueHosts(filled.run)

    assert scan(tested, most=most) == [1, 2, 3, 4, 5, 6, 7]
    assert tested.is_whole


def test_hosts_when_they_are_known_then_the_next_scan_has_them_and_dropped_ones_not(filled: FilledStore) -> None:
    for host in (1, 2, 3):
        due(filled, host)
    tested = DueHosts(filled.run)
    scan(tested)
    tested.drop(2)

    again, whole = scan(tested), tested.is_whole
    tested.drop(1)
    tested.drop(3)

    assert (again, whole) == ([1, 3], False)
    assert scan(tested) == [1, 2, 3]
    assert tested.is_whole


@pytest.mark.parametrize("due_ms", [0, 5, _HORIZON_MS])
def test_hosts_when_rows_become_due_during_the_run_then_a_whole_scan_finds_them(
    filled: FilledStore, due_ms: int
) -> None:
    due(filled, 1, due_ms=500)
    tested = DueHosts(filled.run)
    scan(tested)
    due(filled, 2, due_ms=due_ms)
    settle(filled.database, [1], due_ms=_HORIZON_MS + 1)
    tested.drop(1)

    assert scan(tested) == [2]


def test_hosts_when_more_are_due_than_the_window_takes_then_the_others_come_once_these_are_done(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_MOST_HOSTS", 3)
    monkeypatch.setattr(claiming, "_PAGE_ROWS", 2)
    for host in range(1, 11):
        due(filled, host, rows=3)
    tested, found = DueHosts(filled.run), list[int]()
    while hosts := scan(tested):
        found += hosts
        for host in hosts:
            settle(filled.database, range(3 * host - 2, 3 * host + 1), due_ms=_HORIZON_MS + 1)
            tested.drop(host)

    assert sorted(found) == list(range(1, 11))


def test_hosts_when_nothing_is_to_be_visited_again_yet_then_none(filled: FilledStore) -> None:
    due(filled, 1, due_ms=0)
    tested = DueHosts(filled.run)

    assert scan(tested, horizon_ms=-1) == []
    assert scan(tested) == [1]
