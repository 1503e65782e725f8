"""What the tables say of hosts that answer any path, and of pages that were none (L9, C10)."""

from __future__ import annotations

from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import url_queries
from tests.unit.store.support_store import SOURCE, add, settle

HOST = "a.test:80"


def test_host_when_it_was_noted_then_answers_any_and_others_do_not(database: Database) -> None:
    add(database, ["a"], host="b.test:80")
    with database.write_once() as transaction:
        host_table.note_answers_any(transaction, [HOST, "x" * 400])

    with database.read_once() as transaction:
        noted = [host_table.answers_any(transaction, name) for name in (HOST, "x" * 400, "b.test:80", "c.test:80")]

    assert noted == [True, True, False, False]


def test_warned_urls_when_counted_then_are_those_of_the_source_by_code(database: Database) -> None:
    for name, code in (("a", 965), ("b", 965), ("c", 959), ("d", 404), ("e", 200)):
        settle(database, add(database, [name]), code=code)

    with database.read_once() as transaction:
        counted = url_queries.count_warned_urls(transaction, SOURCE)
        elsewhere = url_queries.count_warned_urls(transaction, SOURCE + 1)

    assert counted == {965: 2, 959: 1}
    assert elsewhere == {}
