"""The host table: slots under a delay, pauses that grow, and blocked hosts (C2, X-R10)."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from searchcrawl.politeness.backoff import HostBackoff
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.host_table import MAX_BLOCK_MS, HostPause, HostReport, SlotReservation
from searchcrawl.store.schema import hosts
from tests.unit.store.support_store import add

NOW_MS = 1_900_000_000_000
HOST = "a.test:80"


@pytest.fixture
def host(database: Database) -> int:
    return database.write(host_table.find_or_add, [HOST])[HOST]


def reserve(database: Database, host: int, **values: int | SlotReservation) -> SlotReservation:
    return database.write(host_table.reserve_slot, host, **{"now_ms": NOW_MS, "delay_ms": 1000} | values)  # type: ignore[arg-type]


def report(
    database: Database, host: int, *, now_ms: int = NOW_MS, since_ms: int = NOW_MS - 1, **values: int | bool
) -> int:
    seen = HostReport(**{"pause_seconds": HostBackoff(0.25, 60.0).pause_seconds} | values)  # type: ignore[arg-type]
    return database.write(host_table.add_report, host, seen, since_ms=since_ms, now_ms=now_ms)


def blocks(database: Database, now_ms: int = NOW_MS) -> list[HostPause]:
    return database.read(host_table.find_blocks, now_ms)


def test_reserve_when_slots_are_taken_then_they_are_a_delay_apart_whoever_asks(database: Database, host: int) -> None:
    slots = [
        reserve(database, host),
        reserve(database, host),
        reserve(database, host, not_before_ms=NOW_MS + 5000),
        reserve(database, host, delay_ms=3000),
        reserve(database, host),
    ]

    assert [slot.start_ms - NOW_MS for slot in slots] == [0, 1000, 5000, 6000, 9000]


def test_reserve_when_a_slot_was_not_used_then_it_is_given_back_unless_others_came(
    database: Database, host: int
) -> None:
    first = reserve(database, host)
    alone = reserve(database, host, now_ms=NOW_MS + 200, unused=first)
    reserve(database, host, now_ms=NOW_MS + 300)

    beside = reserve(database, host, now_ms=NOW_MS + 400, unused=alone)

    assert alone.start_ms == NOW_MS + 200
    assert beside.start_ms == NOW_MS + 2200


def test_reserve_when_the_clock_was_set_back_then_nobody_waits_for_ever(database: Database, host: int) -> None:
    reserve(database, host, now_ms=NOW_MS + 10 * MAX_BLOCK_MS)

    assert reserve(database, host).start_ms <= NOW_MS + 1000


@pytest.mark.parametrize("ahead_ms", [0, 1, 700, 30_000, 1_800_000, 86_400_000, 4000 * 86_400_000])
def test_reserve_when_slots_were_reserved_by_a_clock_that_was_ahead_then_all_keep_their_distance_from_now(
    database: Database, host: int, ahead_ms: int
) -> None:
    for _ in range(4):
        reserve(database, host, now_ms=NOW_MS + ahead_ms, delay_ms=60_000)

    after = [reserve(database, host, delay_ms=200).start_ms - NOW_MS for _ in range(3)]

    assert after == [240_000, 240_200, 240_400]


def test_reserve_when_a_slot_of_a_clock_that_was_ahead_was_not_used_then_it_is_given_back(
    database: Database, host: int
) -> None:
    unused = reserve(database, host, now_ms=NOW_MS + 86_400_000)

    assert reserve(database, host, unused=unused).start_ms == NOW_MS


def test_reserve_when_an_older_release_noted_no_moment_then_its_slot_is_a_delay_ahead_at_most(
    database: Database, host: int
) -> None:
    starts = []
    for ahead_ms in (5000, 86_400_000):
        with database.write_once() as transaction:
            transaction.execute(update(hosts).values(next_allowed_ms=NOW_MS + ahead_ms, reserved_ms=0))
        starts.append(reserve(database, host).start_ms - NOW_MS)

    assert starts == [5000, 60_000]


@pytest.mark.parametrize("ahead_ms", [60_000, 1_800_000, 86_400_000])
def test_pause_when_a_clock_that_was_ahead_set_it_then_it_ends_within_its_own_length_and_a_new_one_counts(
    database: Database, host: int, ahead_ms: int
) -> None:
    report(database, host, now_ms=NOW_MS + ahead_ms, failures=4, code=906)
    seen = blocks(database)
    alone = database.read(host_table.find_block, HOST, NOW_MS)
    slot = reserve(database, host)
    report(database, host, until_ms=NOW_MS + 500, code=503)

    assert (seen, alone, slot.start_ms) == ([], None, NOW_MS)
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
    assert reserve(database, host).start_ms == NOW_MS + 4000


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
    database.write(host_table.save_robots, ORIGIN, b"User-agent: *\nDisallow: /a\n" * 100, 1_000)
    database.write(host_table.save_robots, ORIGIN, b"", 2_000)
    database.write(host_table.save_robots, "https://b.test", b"\xff\x00", 2_000)

    with database.read_once() as transaction:
        found = [
            host_table.find_robots(transaction, origin) for origin in (ORIGIN, "https://b.test", "http://a.test:8443")
        ]
    assert found == [b"", b"\xff\x00", None]


def test_robots_copies_when_old_swept_or_of_endless_names_then_are_not_found(database: Database) -> None:
    names = [f"http://h{number}.test" for number in range(5)]
    with database.write_once() as transaction:
        for number, name in enumerate([*names, f"http://{'a' * 5_000}.test"]):
            host_table.save_robots(transaction, name, b"x", number)
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
