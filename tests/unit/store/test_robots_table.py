"""The last good robots.txt of each origin."""

from __future__ import annotations

from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database

ORIGIN = "https://a.test:8443"


def test_copy_when_saved_twice_then_the_last_is_found(database: Database) -> None:
    with database.write_once() as transaction:
        host_table.save_robots(transaction, ORIGIN, b"User-agent: *\nDisallow: /a\n" * 100, 1_000)
        host_table.save_robots(transaction, ORIGIN, b"", 2_000)
        host_table.save_robots(transaction, "https://b.test", b"\xff\x00", 2_000)

    with database.read_once() as transaction:
        found = [
            host_table.find_robots(transaction, origin) for origin in (ORIGIN, "https://b.test", "http://a.test:8443")
        ]
    assert found == [b"", b"\xff\x00", None]


def test_copy_when_older_than_wanted_then_is_not_found(database: Database) -> None:
    with database.write_once() as transaction:
        host_table.save_robots(transaction, ORIGIN, b"x", 1_000)

    with database.read_once() as transaction:
        found = [host_table.find_robots(transaction, ORIGIN, since_ms=since) for since in (1_000, 1_001)]
    assert found == [b"x", None]


def test_copies_when_swept_then_only_those_of_late_are_left(database: Database) -> None:
    with database.write_once() as transaction:
        for number in range(5):
            host_table.save_robots(transaction, f"http://h{number}.test", b"x", number)
        host_table.drop_robots_before(transaction, 3)

    with database.read_once() as transaction:
        found = [host_table.find_robots(transaction, f"http://h{number}.test") for number in range(5)]
    assert found == [None, None, None, b"x", b"x"]


def test_copy_when_the_name_of_the_host_is_endless_then_is_left_out(database: Database) -> None:
    with database.write_once() as transaction:
        host_table.save_robots(transaction, f"http://{'a' * 5_000}.test", b"x", 1)

    with database.read_once() as transaction:
        assert host_table.find_robots(transaction, f"http://{'a' * 5_000}.test") is None
