"""Many rows are written with one statement, whatever stands between its parameters."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, case, insert, select, update

from searchcrawl.exceptions import StoreError
from searchcrawl.store.engine.database import Database
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import write_rows
from searchcrawl.store.schema import outlinks, refused_links
from tests.unit.store.support_store import SOURCE, add

INSERT = insert(refused_links)


def rows(database: Database) -> list[tuple[str, str, int]]:
    columns = refused_links.c.rule, refused_links.c.host, refused_links.c.links
    with database.read_once() as transaction:
        return sorted((rule, host, links) for rule, host, links in transaction.execute(select(*columns)))


def test_write_when_rows_name_their_values_in_another_order_then_each_goes_to_its_column(database: Database) -> None:
    with database.write_once() as transaction:
        write_rows(transaction, INSERT, [{"links": 1, "host": "a", "rule": "x", "source_id": SOURCE}])
        write_rows(
            transaction,
            INSERT,
            [
                {"source_id": SOURCE, "rule": "y", "host": "b", "links": 2},
                {"source_id": SOURCE, "links": 3, "rule": "z", "host": "c"},
            ],
        )

    assert rows(database) == [("x", "a", 1), ("y", "b", 2), ("z", "c", 3)]


def test_write_when_a_statement_has_constants_and_a_value_twice_then_all_are_in_their_places(
    database: Database,
) -> None:
    is_many = refused_links.c.links > 10
    statement = (
        update(refused_links)
        .where(refused_links.c.host == bindparam("of_host"), refused_links.c.links != bindparam("number"))
        .values(links=case((is_many, refused_links.c.links + bindparam("number")), else_=7), rule="new")
    )
    with database.write_once() as transaction:
        hosts = [("a", 5), ("b", 50), ("c", 2)]
        write_rows(
            transaction,
            INSERT,
            [{"source_id": SOURCE, "rule": "old", "host": host, "links": links} for host, links in hosts],
        )
        write_rows(transaction, statement, [{"of_host": host, "number": 2} for host, _ in hosts])

    assert rows(database) == [("new", "a", 7), ("new", "b", 52), ("old", "c", 2)]


def test_write_when_rows_are_there_then_an_upsert_changes_them_and_keeps_bytes(database: Database) -> None:
    page, other = add(database, ["a", "b"])
    with database.write_once() as transaction:
        upsert = dialect_of(transaction).upsert(outlinks, ["url_id"], lambda new: {"links": new.links})
        write_rows(transaction, upsert, [{"url_id": page, "links": b"\0\xff", "texts": None}])
        write_rows(transaction, upsert, [{"url_id": each, "links": b"\1'", "texts": None} for each in (page, other)])

    with database.read_once() as transaction:
        found = transaction.execute(select(outlinks.c.url_id, outlinks.c.links)).all()
    assert sorted(map(tuple, found)) == [(page, b"\1'"), (other, b"\1'")]


def test_write_when_there_are_no_rows_then_nothing_is_done(database: Database) -> None:
    database.write(write_rows, INSERT, [])

    assert rows(database) == []


def test_write_when_the_database_refuses_a_row_then_the_error_is_one_of_the_store_without_its_values(
    database: Database,
) -> None:
    row = {"source_id": SOURCE, "rule": "secret", "host": None, "links": None}

    with pytest.raises(StoreError) as caught, database.write_once() as transaction:
        write_rows(transaction, INSERT, [row])

    assert "secret" not in str(caught.value)
