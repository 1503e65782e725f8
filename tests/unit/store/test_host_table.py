"""The host table: pauses that grow, and blocked hosts (X-R10)."""

from __future__ import annotations

import pytest

from searchcrawl.politeness.backoff import HostBackoff
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.host_table import MAX_BLOCK_MS, HostPause, HostReport
from tests.unit.store.support_store import add

NOW_MS = 1_900_000_000_000
HOST = "a.test:80"


@pytest.fixture
def host(database: Database) -> int:
    return database.write(host_table.find_or_add, [HOST])[HOST]


def report(
    database: Database, host: int, *, now_ms: int = NOW_MS, since_ms: int = NOW_MS - 1, **values: int | bool
) -> int:
    seen = HostReport(**{"pause_seconds": HostBackoff(0.25, 60.0).pause_seconds} | values)  # type: ignore[arg-type]
    return database.write(host_table.add_reports, {host: seen}, since_ms=since_ms, now_ms=now_ms)[host]


def blocks(database: Database, now_ms: int = NOW_MS) -> list[HostPause]:
    return database.read(host_table.find_blocks, now_ms)


@pytest.mark.parametrize("ahead_ms", [60_000, 1_800_000, 86_400_000])
def test_pause_when_a_clock_that_was_ahead_set_it_then_it_ends_within_its_own_length_and_a_new_one_counts(
    database: Database, host: int, ahead_ms: int
) -> None:
    report(database, host, now_ms=NOW_MS + ahead_ms, failures=4, code=906)
    seen = blocks(database)
    alone = database.read(host_table.find_block, HOST, NOW_MS)
    report(database, host, until_ms=NOW_MS + 500, code=503)

    assert (seen, alone) == ([], None)
    assert blocks(database) == [HostPause(HOST, NOW_MS + 500, 503)]


def test_pause_when_clocks_of_machines_are_a_little_apart_then_it_counts_on_all(database: Database, host: int) -> None:
    report(database, host, now_ms=NOW_MS + 3000, failures=4, code=906)

    assert blocks(database) == [HostPause(HOST, NOW_MS + 5000, 906)]


def test_report_when_processes_meet_failures_then_one_pause_grows_for_both(database: Database, host: int) -> None:
    pauses = []
    for _ in range(5):
        until = report(database, host, failures=1, code=906)
        pauses.append(until - NOW_MS)

    assert pauses == [250, 500, 1000, 2000, 4000]
    assert blocks(database) == [HostPause(HOST, NOW_MS + 4000, 906)]
    assert blocks(database, NOW_MS + 4000) == []


def test_reports_when_they_are_of_many_hosts_then_each_counts_for_its_own(database: Database, host: int) -> None:
    names = [f"h{number}.test:80" for number in range(700)]
    ids = database.write(host_table.find_or_add, names)
    reports = {ids[name]: HostReport(until_ms=NOW_MS + 1000 + number, code=503) for number, name in enumerate(names)}
    report(database, host, until_ms=NOW_MS + 30_000, code=429)

    ends = database.write(host_table.add_reports, reports, since_ms=0, now_ms=NOW_MS)

    assert ends == {ids[name]: NOW_MS + 1000 + number for number, name in enumerate(names)}
    assert sorted(blocks(database)) == sorted(
        [HostPause(HOST, NOW_MS + 30_000, 429)]
        + [HostPause(name, NOW_MS + 1000 + number, 503) for number, name in enumerate(names)]
    )


def test_report_when_the_host_answered_in_between_then_the_pause_begins_anew(database: Database, host: int) -> None:
    report(database, host, failures=4, code=906)

    report(database, host, answered=True)
    until = report(database, host, now_ms=NOW_MS + 60_000, since_ms=NOW_MS - 1, failures=1, code=906)

    assert until == NOW_MS + 60_250


def test_report_when_the_failures_are_of_an_earlier_run_then_they_do_not_count(database: Database, host: int) -> None:
    report(database, host, failures=4, code=906)

    assert report(database, host, now_ms=NOW_MS + 9000, since_ms=NOW_MS + 8000, failures=1, code=906) == NOW_MS + 9250


def test_report_when_a_host_asks_for_a_pause_then_all_keep_it_up_to_an_hour(database: Database, host: int) -> None:
    report(database, host, until_ms=NOW_MS + 30_000, code=503)
    report(database, host, until_ms=NOW_MS + 10_000, code=429)
    shorter = blocks(database)
    report(database, host, until_ms=NOW_MS + 7 * 86_400_000, code=429)

    assert shorter == [HostPause(HOST, NOW_MS + 30_000, 503)]
    assert blocks(database) == [HostPause(HOST, NOW_MS + MAX_BLOCK_MS, 429)]
    # A clock that was set back a day.
    assert blocks(database, NOW_MS - 86_400_000) == []
    assert report(database, host, now_ms=NOW_MS - 86_400_000, failures=1, since_ms=0) == NOW_MS - 86_400_000 + 250


ORIGIN = "https://a.test:8443"


def test_robots_copy_when_saved_twice_then_the_last_is_found(database: Database) -> None:
    database.write(host_table.save_robots, {ORIGIN: b"User-agent: *\nDisallow: /a\n" * 100}, 1_000)
    database.write(host_table.save_robots, {ORIGIN: b"", "https://b.test": b"\xff\x00"}, 2_000)

    with database.read_once() as transaction:
        found = [
            host_table.find_robots(transaction, origin) for origin in (ORIGIN, "https://b.test", "http://a.test:8443")
        ]
    assert found == [b"", b"\xff\x00", None]


def test_robots_copies_when_old_swept_or_of_endless_names_then_are_not_found(database: Database) -> None:
    names = [f"http://h{number}.test" for number in range(5)]
    with database.write_once() as transaction:
        for number, name in enumerate([*names, f"http://{'a' * 5_000}.test"]):
            host_table.save_robots(transaction, {name: b"x"}, number)
        host_table.drop_robots_before(transaction, 3)

        found = [host_table.find_robots(transaction, name) for name in (*names, f"http://{'a' * 5_000}.test")]
        of_late = [host_table.find_robots(transaction, names[4], since_ms=since) for since in (4, 5)]
    assert found == [None, None, None, b"x", b"x", None]
    assert of_late == [b"x", None]


def test_host_when_it_was_noted_then_answers_any_and_others_do_not(database: Database) -> None:
    add(database, ["a"], host="b.test:80")
    database.write(host_table.note_answers_any, [HOST, "x" * 400])

    with database.read_once() as transaction:
        noted = [host_table.answers_any(transaction, name) for name in (HOST, "x" * 400, "b.test:80", "c.test:80")]

    assert noted == [True, True, False, False]
