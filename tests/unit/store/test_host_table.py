"""The host table: turns under a delay, pauses that grow, and hosts that are left alone (C2, X-R10)."""

from __future__ import annotations

import pytest

from searchcrawl.store.engine.database import Database
from searchcrawl.store.hosts import host_table
from searchcrawl.store.hosts.host_table import CLOSED_MOST_MS, Closed, Turn, Weather

NOW_MS = 1_900_000_000_000
HOST = "a.test:80"


@pytest.fixture
def host(database: Database) -> int:
    with database.write_once() as transaction:
        return host_table.ids(transaction, [HOST])[HOST]


def book(database: Database, host: int, **values: int | Turn) -> Turn:
    with database.write_once() as transaction:
        return host_table.book(transaction, host, **{"now_ms": NOW_MS, "delay_ms": 1000} | values)  # type: ignore[arg-type]


def tell(database: Database, host: int, *, now_ms: int = NOW_MS, **values: int | bool) -> int:
    with database.write_once() as transaction:
        weather = Weather(**{"first_seconds": 0.25, "limit_seconds": 60.0, "since_ms": NOW_MS - 1} | values)  # type: ignore[arg-type]
        return host_table.tell(transaction, host, weather, now_ms=now_ms)


def closed(database: Database, now_ms: int = NOW_MS) -> list[Closed]:
    with database.read_once() as transaction:
        return host_table.closed(transaction, now_ms)


def test_book_when_turns_are_taken_then_they_are_a_delay_apart_whoever_asks(database: Database, host: int) -> None:
    turns = [
        book(database, host),
        book(database, host),
        book(database, host, not_before_ms=NOW_MS + 5000),
        book(database, host, delay_ms=3000),
        book(database, host),
    ]

    assert [turn.first_ms - NOW_MS for turn in turns] == [0, 1000, 5000, 6000, 9000]


def test_book_when_a_turn_was_not_used_then_it_is_given_back_unless_others_came(database: Database, host: int) -> None:
    first = book(database, host)
    alone = book(database, host, now_ms=NOW_MS + 200, unused=first)
    book(database, host, now_ms=NOW_MS + 300)

    beside = book(database, host, now_ms=NOW_MS + 400, unused=alone)

    assert alone.first_ms == NOW_MS + 200
    assert beside.first_ms == NOW_MS + 2200


def test_book_when_the_clock_was_set_back_then_nobody_waits_for_ever(database: Database, host: int) -> None:
    book(database, host, now_ms=NOW_MS + 10 * CLOSED_MOST_MS)

    assert book(database, host).first_ms <= NOW_MS + CLOSED_MOST_MS + 2000


def test_tell_when_processes_meet_failures_then_one_pause_grows_for_both(database: Database, host: int) -> None:
    pauses = []
    for _ in range(5):
        until = tell(database, host, failed=1, code=906)
        pauses.append(until - NOW_MS)

    assert pauses == [250, 500, 1000, 2000, 4000]
    assert closed(database) == [Closed(HOST, NOW_MS + 4000, 906)]
    assert closed(database, NOW_MS + 4000) == []
    assert book(database, host).first_ms == NOW_MS + 4000


def test_tell_when_the_host_answered_in_between_then_the_pause_begins_anew(database: Database, host: int) -> None:
    tell(database, host, failed=4, code=906)

    tell(database, host, answered=True)
    until = tell(database, host, now_ms=NOW_MS + 60_000, since_ms=NOW_MS - 1, failed=1, code=906)

    assert until == NOW_MS + 60_250


def test_tell_when_the_failures_are_of_an_earlier_run_then_they_do_not_count(database: Database, host: int) -> None:
    tell(database, host, failed=4, code=906)

    assert tell(database, host, now_ms=NOW_MS + 9000, since_ms=NOW_MS + 8000, failed=1, code=906) == NOW_MS + 9250


def test_tell_when_a_host_asks_for_a_pause_then_all_keep_it_up_to_an_hour(database: Database, host: int) -> None:
    tell(database, host, until_ms=NOW_MS + 30_000, code=503)
    tell(database, host, until_ms=NOW_MS + 10_000, code=429)
    shorter = closed(database)
    tell(database, host, until_ms=NOW_MS + 7 * 86_400_000, code=429)

    assert shorter == [Closed(HOST, NOW_MS + 30_000, 503)]
    assert closed(database) == [Closed(HOST, NOW_MS + CLOSED_MOST_MS, 429)]
    # A clock that was set back a day.
    assert closed(database, NOW_MS - 86_400_000) == []
    assert tell(database, host, now_ms=NOW_MS - 86_400_000, failed=1, since_ms=0) == NOW_MS - 86_400_000 + 250
