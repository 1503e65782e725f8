"""The claiming thread: rows come in ahead of need, and an idle scan costs next to nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from searchcrawl import urls
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.frontier import due_hosts
from searchcrawl.frontier.claiming import Claiming, Told
from searchcrawl.frontier.due_hosts import DueHosts
from searchcrawl.frontier.window import FEW_ROWS, Window
from searchcrawl.politeness.backoff import FAILURES_TO_BLOCK
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.store import host_table
from searchcrawl.store.schema import hosts
from searchcrawl.store.schema import urls as urls_table
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl, Settled
from tests.filled_store import FilledStore
from tests.unit.store.support_store import add, settle

#: Long enough for dozens of scans of a thread that does not rest.
_A_WHILE_SECONDS = 0.4
_LIMIT_SECONDS = 20.0


class Watched:
    """A claiming thread whose scans are counted."""

    def __init__(self, filled: FilledStore, *, delay_seconds: float, trap_after: int = 0) -> None:
        self.run = filled.run
        self.window = Window(HostRegistry(host_concurrency=4, delay_seconds=delay_seconds))
        self.exhausted = threading.Event()
        self.scans = 0
        self.came = 0
        self.traps = TrapWatch(filled.run.source_id, trap_after=trap_after, max_urls_per_pattern=0)
        self.claiming = Claiming(
            filled.run,
            self.window,
            Told(self._filled, self.exhausted.set),
            traps=self.traps,
            may_claim=self._may_claim,
            may_revisit=lambda: True,
            has_sent=self._has_sent,
        )
        self.asked = 0
        self.came_more = False
        self.sent_after = 1

    def _filled(self) -> None:
        self.came += 1

    def _may_claim(self) -> bool:
        self.scans += 1
        return True

    def _has_sent(self) -> bool:
        self.asked += 1
        return self.asked >= self.sent_after

    def run_for(self, seconds: float, *, until: Callable[[], bool] = lambda: True) -> None:
        """Lets the thread work until something is so and then for a while, or until nothing is left."""
        self.claiming.start()
        deadline = time.monotonic() + _LIMIT_SECONDS
        while not until() and time.monotonic() < deadline:
            self.exhausted.wait(0.01)
        self.exhausted.wait(seconds)
        self.claiming.stop()
        assert self.run.shutdown.failure is None


def admit(filled: FilledStore, *, count: int, rows: int) -> None:
    """Adds ``rows`` rows to each of so many hosts."""
    with filled.database.write_once() as transaction:
        for number in range(count):
            name = f"h{number}.acme.test:80"
            host_id = host_table.find_or_add(transaction, [name])[name]
            addresses = [f"http://h{number}.acme.test/{row}" for row in range(rows)]
            new = [NewUrl(key=urls.key(url), url=url, host_id=host_id, depth=1) for url in addresses]
            url_table.add(transaction, filled.run.source_id, new, 0)


def put_off(filled: FilledStore, laps: dict[int, int]) -> None:
    """Gives rows, by number, their laps."""
    filled.database.write(url_table.set_laps, laps)


@pytest.mark.parametrize(
    ("count", "rows", "last", "trap_after", "room_at_last", "delay_seconds", "waiting"),
    [
        pytest.param(1, 500, 0, 0, None, 5.0, FEW_ROWS, id="enough of a host with a delay"),
        pytest.param(1, 500, 0, 0, None, 0.0, 192, id="enough of a host without one"),
        pytest.param(70, 7, 0, 0, None, 5.0, 70 * FEW_ROWS, id="enough of each host"),
        pytest.param(65, 1, 0, 0, None, 0.0, 65, id="all there is"),
        pytest.param(1, 1000, 0, 200, None, 0.0, 64, id="few where traps are watched and nothing is stored yet"),
        pytest.param(1, 4, 2, 0, None, 0.0, 2, id="nothing that is put off while others are under way"),
        # And one of each host.
        pytest.param(1, 100, 100, 200, 10, 0.0, 11, id="no more than are left before a pattern is ended"),
    ],
)
def test_claiming_when_so_much_waits_then_it_rests_and_the_crawl_is_not_over(
    filled: FilledStore,
    count: int,
    rows: int,
    last: int,
    trap_after: int,
    room_at_last: int | None,
    delay_seconds: float,
    waiting: int,
) -> None:
    admit(filled, count=count, rows=rows)
    put_off(filled, dict.fromkeys(range(1, last + 1), 1))
    watched = Watched(filled, delay_seconds=delay_seconds, trap_after=trap_after)
    if room_at_last is not None:
        watched.traps.room_at_last = room_at_last

    watched.run_for(_A_WHILE_SECONDS, until=lambda: watched.window.size >= waiting)

    assert watched.window.size == waiting
    assert not watched.exhausted.is_set()
    if not last and not trap_after:
        # Two rounds see 70 hosts.
        assert watched.scans <= 4


def visit_next(filled: FilledStore, watched: Watched) -> int | None:
    """Visits what the window hands out, and stores it; its row."""
    found = watched.window.pop(time.monotonic())
    if found is None:
        return None
    _, claim = found
    filled.database.write(url_table.settle, [Settled(url_id=claim.url_id, code=200, due_ms=None, fetched_ms=1)])
    watched.window.release(claim.url_id)
    watched.claiming.note_committed(1)
    return claim.url_id


def test_claiming_when_traps_are_watched_and_much_is_stored_then_more_rows_wait(filled: FilledStore) -> None:
    admit(filled, count=1, rows=1000)
    watched = Watched(filled, delay_seconds=0.0, trap_after=200)

    def visit() -> bool:
        while visit_next(filled, watched) is not None and watched.window.size <= 96:
            pass
        return watched.window.size > 96

    watched.run_for(0.0, until=visit)

    assert watched.window.size > 96


def test_claiming_when_there_is_nothing_to_do_then_the_crawl_is_over(filled: FilledStore) -> None:
    watched = Watched(filled, delay_seconds=0.0)

    watched.run_for(_LIMIT_SECONDS)

    assert watched.exhausted.is_set()
    assert watched.came == 0


def suspect(filled: FilledStore, *, rows: int) -> None:
    """So many rows that may stop the process."""
    admit(filled, count=1, rows=rows)
    with filled.database.write_once() as transaction:
        transaction.execute(update(urls_table).values(fetch_state=int(FetchState.SUSPECT)))


def test_suspect_when_documents_are_still_being_sent_then_it_waits_for_them(filled: FilledStore) -> None:
    suspect(filled, rows=3)
    watched = Watched(filled, delay_seconds=0.0)
    watched.sent_after = 4

    watched.run_for(_A_WHILE_SECONDS, until=lambda: watched.window.size > 0)

    assert (watched.asked, watched.window.size) == (4, 1)


def test_suspect_when_it_is_visited_then_nothing_else_is_claimed_until_it_is_stored(filled: FilledStore) -> None:
    suspect(filled, rows=2)
    watched = Watched(filled, delay_seconds=0.0)

    def finds_more() -> bool:
        if watched.window.size and not watched.came_more:
            watched.came_more, watched.scans = True, 0
            # As where a sitemap lists more.
            with filled.database.write_once() as transaction:
                waits = urls_table.c.fetch_state == int(FetchState.SUSPECT)
                transaction.execute(update(urls_table).where(waits).values(fetch_state=int(FetchState.TODO)))
            watched.claiming._scan_soon()
        return watched.came_more

    watched.run_for(_A_WHILE_SECONDS, until=finds_more)

    assert (watched.window.size, watched.scans) == (1, 0)


def test_claiming_when_a_host_is_blocked_then_its_rows_come_at_once_and_reserve_no_slot(filled: FilledStore) -> None:
    admit(filled, count=1, rows=150)
    watched = Watched(filled, delay_seconds=5.0)
    host = "h0.acme.test:80"
    for _ in range(FAILURES_TO_BLOCK):
        watched.window.hosts.record_failure(host, 906)

    watched.run_for(_A_WHILE_SECONDS)

    assert watched.window.size == 150
    with filled.database.read_once() as transaction:
        assert transaction.execute(select(hosts.c.next_allowed_ms).where(hosts.c.name == host)).scalar() == 0


def visited(filled: FilledStore, *, count: int, rows: int) -> None:
    """So many hosts whose rows were visited before this run, and are due again."""
    admit(filled, count=count, rows=rows)
    with filled.database.write_once() as transaction:
        due = {"fetch_state": int(FetchState.SETTLED), "code": 200, "due_ms": filled.run.row.horizon_ms}
        transaction.execute(update(urls_table).values(due))


@pytest.mark.parametrize(("count", "rows"), [(300, 1), (3, 100), (1, 300)])
def test_claiming_when_rows_are_due_again_then_all_are_claimed_once_and_the_crawl_ends(
    filled: FilledStore, count: int, rows: int
) -> None:
    visited(filled, count=count, rows=rows)
    watched, claimed = Watched(filled, delay_seconds=0.0), list[int]()

    def visit() -> bool:
        while (found := watched.window.pop(time.monotonic())) is not None:
            _, claim = found
            claimed.append(claim.url_id)
            with filled.database.write_once() as transaction:
                due_ms = filled.run.row.horizon_ms + 1
                url_table.settle(transaction, [Settled(url_id=claim.url_id, code=304, due_ms=due_ms, fetched_ms=1)])
            watched.window.release(claim.url_id)
            watched.claiming.note_committed(1)
        return watched.exhausted.is_set()

    watched.run_for(0.0, until=visit)

    assert watched.exhausted.is_set()
    assert (len(claimed), len(set(claimed))) == (300, 300)


def test_claiming_when_rows_are_put_off_then_they_come_after_all_others_by_lap(filled: FilledStore) -> None:
    admit(filled, count=2, rows=4)
    put_off(filled, {1: 2, 2: 1, 5: 1})
    watched, claimed = Watched(filled, delay_seconds=0.0), list[int]()

    def visit() -> bool:
        # What is under way may name more that goes first.
        while (url_id := visit_next(filled, watched)) is not None:
            claimed.append(url_id)
        return watched.exhausted.is_set()

    watched.run_for(_LIMIT_SECONDS, until=visit)

    assert set(claimed[:5]) == {3, 4, 6, 7, 8}
    assert set(claimed[5:]) == {1, 2, 5}
    assert claimed.index(2) < claimed.index(1)


def test_window_when_a_pattern_is_put_off_then_its_claims_make_way(filled: FilledStore) -> None:
    admit(filled, count=1, rows=20)
    watched = Watched(filled, delay_seconds=0.0)
    watched.run_for(_A_WHILE_SECONDS, until=lambda: watched.window.size >= 20)

    taken = watched.window.take_unredirected()

    assert (len(taken), watched.window.size) == (20, 0)
    assert watched.window.pop(time.monotonic()) is None


_HORIZON_MS = 1000


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
    monkeypatch.setattr(due_hosts, "MOST_HOSTS", 3)
    monkeypatch.setattr(due_hosts, "_PAGE_ROWS", 2)
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
