"""Several processes at one store: what they see of each other, and who waits for whom (D1, D7)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import make_url

from searchcrawl.exceptions import SourceBusy, StoreError
from searchcrawl.store import host_owners, host_table, source_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.runs.lease import EXPIRY_MS, Lease
from searchcrawl.store.urls import url_table
from tests.postgres_server import RunningPostgres
from tests.unit.store.support_store import SOURCE, add, age_leases

PROCESSES = 4
T = TypeVar("T")


@pytest.fixture
def stores(tmp_path: Path, store_url: str) -> Iterator[list[Database]]:
    """The same store as several processes have it open; who waits for a lock of SQLite may wait long, and tries again."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(closing(Database(store_url, tmp_path, patience_seconds=60))) for _ in range(PROCESSES)
        ]
        assert opened[0].write(run_table.find_or_add_source, "demo") == SOURCE
        yield opened


@pytest.fixture
def postgres_stores(tmp_path: Path, empty_postgres_url: str) -> Iterator[list[Database]]:
    """Two processes at one PostgreSQL database."""
    with closing(Database(empty_postgres_url, tmp_path)) as one, closing(Database(empty_postgres_url, tmp_path)) as two:
        assert one.write(run_table.find_or_add_source, "demo") == SOURCE
        yield [one, two]


def together(stores: list[Database], work: Callable[[Database], T]) -> list[T]:
    """Does the same in each process at once."""
    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(work, stores))


def take(store: Database) -> Lease:
    return store.write(lease.take, SOURCE, name="demo")


def count_connections(postgres: RunningPostgres, url: str, *, waiting_for: str = "%") -> int:
    with postgres.connect() as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND coalesce(wait_event_type, '') LIKE %s"
        row = connection.execute(query, [make_url(url).database, waiting_for]).fetchone()
    assert row is not None
    return int(row[0])


def until(condition: Callable[[], bool]) -> None:
    """Waits until something is so; AssertionError where it is not after half a minute."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_read_when_others_write_meanwhile_then_it_sees_one_state(stores: list[Database]) -> None:
    add(stores[0], ["a"])

    with stores[1].read_once() as transaction:
        before = run_table.count_urls(transaction, SOURCE)
        add(stores[0], ["b"])
        after = run_table.count_urls(transaction, SOURCE)

    assert (before, after) == (1, 1)


def test_read_when_it_tries_to_write_then_postgresql_refuses(postgres_stores: list[Database]) -> None:
    with pytest.raises(StoreError, match="read-only"), postgres_stores[0].read_once() as transaction:
        run_table.find_or_add_source(transaction, "other")


def test_source_when_processes_run_it_for_the_first_time_at_once_then_it_has_one_id(stores: list[Database]) -> None:
    def first_run(store: Database) -> int:
        return store.write(run_table.find_or_add_source, "fresh")

    ids = together(stores, first_run)

    assert len(set(ids)) == 1


def test_lease_when_processes_take_it_for_the_first_time_at_once_then_one_has_it(stores: list[Database]) -> None:
    def attempt(store: Database) -> Lease | None:
        try:
            return take(store)
        except SourceBusy:
            return None

    taken = together(stores, attempt)

    assert [one for one in taken if one is not None] == [Lease(SOURCE, 1)]


def test_lease_when_its_holder_is_writing_then_a_take_over_waits_for_the_end(
    postgres: RunningPostgres, postgres_stores: list[Database], empty_postgres_url: str
) -> None:
    old = take(postgres_stores[0])
    age_leases(postgres_stores[0], EXPIRY_MS)

    with ThreadPoolExecutor(1) as pool:
        with postgres_stores[0].write_once() as transaction:
            lease.check(transaction, old)
            successor = pool.submit(take, postgres_stores[1])
            while not count_connections(postgres, empty_postgres_url, waiting_for="Lock"):
                assert not successor.done()
                time.sleep(0.01)
            source_table.note(transaction, SOURCE, fingerprint="written under the lease")
        fence = successor.result().fence

    assert postgres_stores[1].read(source_table.find, SOURCE, "fingerprint") == "written under the lease"
    assert fence == old.fence + 1


def test_lease_when_another_source_is_being_written_then_nobody_waits(postgres_stores: list[Database]) -> None:
    one, two = postgres_stores
    first = take(one)
    with two.write_once() as transaction:
        other = run_table.find_or_add_source(transaction, "other")
        second = lease.take(transaction, other, name="other")

    with one.write_once() as transaction:
        lease.check(transaction, first)
        with two.write_once() as meanwhile:
            lease.check(meanwhile, second)
            source_table.note(meanwhile, other, fingerprint="done")

    assert one.read(source_table.find, other, "fingerprint") == "done"


def test_lease_when_its_holder_froze_within_a_transaction_then_it_can_be_taken_over(
    tmp_path: Path, empty_postgres_url: str
) -> None:
    impatient = f"{empty_postgres_url}&options=-c%20idle_in_transaction_session_timeout%3D2s"
    with (
        # Makes the tables, which may take its time.
        closing(Database(empty_postgres_url, tmp_path)) as other,
        closing(Database(impatient, tmp_path)) as frozen,
    ):
        frozen.write(run_table.find_or_add_source, "demo")
        old = take(frozen)
        age_leases(frozen, EXPIRY_MS)

        with pytest.raises(StoreError):
            _freeze_within_a_transaction(frozen, old, other)

        assert other.read(source_table.find, SOURCE, "fingerprint") is None
        age_leases(other, EXPIRY_MS)
        assert take(other).fence == old.fence + 2


def _freeze_within_a_transaction(frozen: Database, old: Lease, other: Database) -> None:
    with frozen.write_once() as transaction:
        lease.check(transaction, old)
        assert take(other).fence == old.fence + 1
        source_table.note(transaction, SOURCE, fingerprint="too late")


def test_hosts_when_processes_add_the_same_then_all_agree_on_their_ids(stores: list[Database]) -> None:
    def learn(store: Database) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, 60, 20):
            with store.write_once() as transaction:
                found |= host_table.find_or_add(
                    transaction, {f"h{number}.test:80" for number in range(start, start + 40)}
                )
        return found

    ids = together(stores, learn)

    assert len(set(ids[0].values())) == 80
    assert all(found == ids[0] for found in ids)


def test_hosts_when_processes_take_them_at_once_then_each_has_one_owner_and_all_have_each_in_turn(
    stores: list[Database],
) -> None:
    """They ask in different orders, and want from each other what they do not get."""
    ids = sorted(stores[0].write(host_table.find_or_add, [f"h{number}.test:80" for number in range(12)]).values())
    asking = {host: threading.Lock() for host in ids}

    def crawl(store: Database) -> set[int]:
        owner, had, chance = store.write(host_owners.register), set[int](), random.Random(id(store))
        end = time.monotonic() + 20
        while had != {*ids} and time.monotonic() < end:
            wanted = dict.fromkeys(chance.sample(ids, 6), 0)
            owned = [*(store.write(host_owners.take, owner, wanted) or ())]
            handed = store.read(host_owners.find_contested, owner)[1]
            store.write(host_owners.accept, owner, [*handed])
            owned = [*{*owned, *handed}]
            for host in owned:
                assert asking[host].acquire(blocking=False), "two processes ask it"
            had |= {*owned}
            for host in owned:
                asking[host].release()
            store.write(host_owners.hand_over, owner, dict.fromkeys(owned, 0))
        store.write(host_owners.end, owner)
        return had

    assert together(stores, crawl) == [{*ids}] * PROCESSES


def test_close_when_a_transaction_is_under_way_then_its_connection_ends_with_it(
    postgres: RunningPostgres, tmp_path: Path, empty_postgres_url: str
) -> None:
    database = Database(empty_postgres_url, tmp_path)

    with database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
        database.close()

    until(lambda: count_connections(postgres, empty_postgres_url) == 0)
    with closing(Database(empty_postgres_url, tmp_path)) as again, again.read_once() as transaction:
        assert run_table.find_source(transaction, "demo") == SOURCE


def test_store_when_the_server_was_started_again_then_the_next_transaction_is_well(
    postgres: RunningPostgres, postgres_stores: list[Database]
) -> None:
    ids = add(postgres_stores[0], ["a"])

    postgres.kill()
    with pytest.raises(StoreError), postgres_stores[0].read_once() as transaction:
        url_table.find_depths(transaction, ids)
    postgres.start()
    depths = postgres_stores[0].read(url_table.find_depths, ids)

    assert depths == {ids[0]: 1}
