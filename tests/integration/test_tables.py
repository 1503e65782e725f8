"""Rows of real databases: what is listed, what is read, what is missed by none of it (A1, E9)."""

from __future__ import annotations

import os
import tracemalloc
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from searchcrawl import urls
from searchcrawl.answer_headers import find_display, find_permissions, list_values
from searchcrawl.kinds.table.lister import TableLister
from searchcrawl.listing.model import Read, Unread
from tests.integration.support_tables import Marks, Shop, TableRuns, open_sqlite_shop

if TYPE_CHECKING:
    from tests.mariadb_server import RunningMariadb
    from tests.postgres_server import RunningPostgres

_ARTICLES = "CREATE TABLE articles (id INTEGER PRIMARY KEY, title VARCHAR(200), body TEXT, changed TIMESTAMP(6) NULL)"
_KEYS = {"table": "articles", "key": ["id"], "text": "body"}


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    """A database of each kind with an empty table ``articles``."""
    if request.param == "sqlite":
        found = open_sqlite_shop(tmp_path)
    elif request.param == "postgresql":
        found = _open_postgres_shop(request.getfixturevalue("postgres"), tmp_path)
    else:
        found = _open_mariadb_shop(request.getfixturevalue("mariadb"), tmp_path)
    found.execute(_ARTICLES)
    return found


def _open_postgres_shop(server: RunningPostgres, root: Path) -> Shop:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    url = server.create_database(name)
    return Shop("postgresql", url, root, lambda: psycopg.connect(url.replace("+psycopg", ""), autocommit=True))


def _open_mariadb_shop(server: RunningMariadb, root: Path) -> Shop:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    return Shop("mariadb", server.create_database(name), root, lambda: server.connect(name))


def test_rows_when_listed_then_all_are_named_with_tokens_that_change_with_any_column(shop: Shop) -> None:
    shop.execute("INSERT INTO articles VALUES (1, 'One', 'first', NULL), (2, 'Two', 'second', NULL)")
    runs = TableRuns(shop, _KEYS)
    first = runs.list_rows()
    shop.execute("UPDATE articles SET title = 'Zwei' WHERE id = 2", "INSERT INTO articles VALUES (3, NULL, NULL, NULL)")

    second = runs.list_rows()

    assert [entry.url for entry in first.entries] == ["row://shop/articles/1", "row://shop/articles/2"]
    assert all(urls.resolve(entry.url, listed=True) == entry.url for entry in first.entries)
    assert first.end.whole
    assert second.end.whole
    assert second.keys == {"1", "2", "3"}
    assert {key for key, token in second.tokens.items() if first.tokens.get(key) == token} == {"1"}


def test_row_when_read_then_its_text_is_the_body_and_other_columns_are_values(shop: Shop) -> None:
    shop.execute("INSERT INTO articles VALUES (7, 'Pears', 'Pears are green.', '2030-01-31 12:00:00.5')")
    runs = TableRuns(
        shop, {**_KEYS, "title": "title", "modified": "changed", "display": "https://shop.test/a?id={id}&t={title}"}
    )

    [answer, gone] = runs.read("7", "8")

    assert isinstance(answer, Read)
    assert answer.body == b"Pears are green."
    headers = dict(answer.headers)
    assert headers[b"Content-Type"] == b"text/plain; charset=utf-8"
    assert headers[b"Last-Modified"] == b"Thu, 31 Jan 2030 12:00:00 GMT"
    values = dict(list_values(answer.headers))
    assert values["column:id"] == "7"
    assert values["column:title"] == "Pears"
    assert "column:body" not in values
    assert values["column:changed"].startswith("2030-01-31 12:00:00.5")
    assert find_display(answer.headers) == "https://shop.test/a?id=7&t=Pears"
    assert find_permissions(answer.headers) is None
    assert isinstance(gone, Unread)
    assert gone.code == 967
    assert not gone.transient


def test_increment_when_a_transaction_commits_late_then_its_rows_are_found(shop: Shop) -> None:
    if shop.kind == "sqlite":
        pytest.skip("one transaction writes at a time")
    now = "clock_timestamp()" if shop.kind == "postgresql" else "UTC_TIMESTAMP(6)"
    runs = TableRuns(shop, {**_KEYS, "modified": "changed", "lag_seconds": 0.0})
    shop.execute(f"INSERT INTO articles VALUES (1, 'a', 'a', {now})")
    runs.list_rows()
    with shop.transaction() as late:
        late(f"INSERT INTO articles VALUES (2, 'late', 'b', {now})")
        shop.execute(f"INSERT INTO articles VALUES (3, 'c', 'c', {now})")
        during = runs.list_rows()

    after = runs.list_rows()

    assert "2" not in during.keys
    assert "3" in during.keys
    assert not during.end.whole
    assert "2" in after.keys
    assert not after.end.whole


def test_increment_when_times_are_equal_at_its_begin_or_null_then_these_rows_are_found(shop: Shop) -> None:
    runs = TableRuns(shop, {**_KEYS, "modified": "changed", "lag_seconds": 0.0})
    shop.execute(
        "INSERT INTO articles VALUES (1, 'a', 'a', '2020-01-01 10:00:00'), (2, 'b', 'b', '2020-01-01 11:00:00')"
    )
    whole = runs.list_rows()
    shop.execute("INSERT INTO articles VALUES (3, 'c', 'c', '2020-01-01 11:00:00'), (4, 'd', 'd', NULL)")

    increment = runs.list_rows()

    assert whole.end.whole
    assert not increment.end.whole
    assert increment.keys == {"2", "3", "4"}
    assert increment.tokens["2"] == whole.tokens["2"]


@pytest.mark.parametrize("compare_hours", [0.0, 24.0])
def test_row_without_time_when_changed_then_it_is_found_as_without_the_column(shop: Shop, compare_hours: float) -> None:
    shop.execute(
        "INSERT INTO articles VALUES (1, 'a', 'a', NULL), (2, 'b', 'b', NULL), (3, 'c', 'c', '2020-01-01 10:00:00')"
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "changed", "compare_hours": compare_hours})
    before = runs.list_rows()
    shop.execute("UPDATE articles SET body = 'other' WHERE id = 1")

    after = runs.list_rows()

    assert after.end.whole is (compare_hours == 0.0)
    assert before.keys == after.keys == {"1", "2", "3"}
    assert {key for key in after.keys if before.tokens[key] != after.tokens[key]} == {"1"}


def test_rows_when_deleted_or_set_back_then_the_next_comparison_tells(shop: Shop) -> None:
    shop.execute(
        "INSERT INTO articles VALUES (1, 'a', 'a', '2020-01-01 10:00:00'), (2, 'b', 'b', '2020-01-01 11:00:00')"
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "changed", "compare_hours": 0.0})
    before = runs.list_rows()
    shop.execute(
        "DELETE FROM articles WHERE id = 1", "UPDATE articles SET changed = '2019-01-01 00:00:00' WHERE id = 2"
    )

    after = runs.list_rows()

    assert after.end.whole
    assert after.keys == {"2"}
    assert after.tokens["2"] != before.tokens["2"]


def test_mark_when_the_source_file_says_another_table_then_all_keys_are_read(shop: Shop) -> None:
    shop.execute("INSERT INTO articles VALUES (1, 'a', 'a', '2020-01-01 10:00:00')")
    runs = TableRuns(shop, {**_KEYS, "modified": "changed"})
    runs.list_rows()
    runs.keys = {**_KEYS, "table": None, "query": "SELECT * FROM articles", "modified": "changed"}

    listed = runs.list_rows()

    assert listed.end.whole


def test_keys_when_of_several_columns_and_types_then_each_row_is_found_by_its_own(shop: Shop) -> None:
    binary = {"sqlite": "x'00ff'", "postgresql": r"'\x00ff'", "mariadb": "x'00ff'"}[shop.kind]
    kind = "BYTEA" if shop.kind == "postgresql" else "VARBINARY(9)"
    shop.execute(
        f"CREATE TABLE parts (shop VARCHAR(20), part {kind}, day DATE, body TEXT)",
        f"INSERT INTO parts VALUES ('a/b', {binary}, '2030-01-31', 'one'), ('..', {binary}, '2030-01-31', 'two'), "
        f"('17', {binary}, '2030-02-01', 'three'), ('é %2e', {binary}, '2030-02-01', 'four')",
    )
    runs = TableRuns(shop, {"table": "parts", "key": ["shop", "part", "day"], "text": "body"})

    read = runs.read_all()

    assert {key: answer.body for key, answer in read.items()} == {
        "a%2Fb/~b:00ff/2030-01-31": b"one",
        "~t:../~b:00ff/2030-01-31": b"two",
        "~t:17/~b:00ff/2030-02-01": b"three",
        "%C3%A9%20%252e/~b:00ff/2030-02-01": b"four",
    }
    assert all(urls.resolve(f"row://shop/parts/{key}", listed=True) == f"row://shop/parts/{key}" for key in read)


def test_text_keys_when_a_collation_takes_them_for_the_same_then_each_is_a_document(shop: Shop) -> None:
    shop.execute(
        "CREATE TABLE names (name VARCHAR(20), body TEXT)",
        "INSERT INTO names VALUES ('a', 'small'), ('A', 'large'), ('a ', 'blank'), ('á', 'accent')",
    )
    runs = TableRuns(shop, {"table": "names", "key": ["name"], "text": "body"})

    read = runs.read_all()

    bodies = {key: answer.body for key, answer in read.items()}
    assert bodies == {"a": b"small", "A": b"large", "a%20": b"blank", "%C3%A1": b"accent"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [("(NULL, 'x'), ('b', 'y')", "a column of the key is null"), ("('b', 'x'), ('b', 'y')", "row://shop/names/b")],
)
def test_keys_when_null_or_repeated_then_the_listing_fails_and_names_it(shop: Shop, rows: str, said: str) -> None:
    shop.execute("CREATE TABLE names (name VARCHAR(20), body TEXT)", f"INSERT INTO names VALUES {rows}")
    runs = TableRuns(shop, {"table": "names", "key": ["name"], "text": "body"})

    listed = runs.list_rows()

    assert listed.end.is_failure
    assert not listed.end.whole
    assert said in (listed.end.error or "")
    assert "b" in listed.keys


def test_row_when_its_key_is_repeated_then_it_is_not_read(shop: Shop) -> None:
    shop.execute("CREATE TABLE names (name VARCHAR(20), body TEXT)", "INSERT INTO names VALUES ('b', 'x'), ('b', 'y')")

    [answer] = TableRuns(shop, {"table": "names", "key": ["name"], "text": "body"}).read("b")

    assert isinstance(answer, Unread)
    assert answer.code == 500


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM articles; DELETE FROM articles",
        "SELECT 1 AS id, '' AS body) x; DELETE FROM articles; SELECT * FROM (SELECT 1 AS id, '' AS body",
        "SELECT 1 AS id, '' AS body) x; COMMIT; DELETE FROM articles; SELECT * FROM (SELECT 1 AS id, '' AS body",
        "DELETE FROM articles RETURNING *",
        "SELECT write_something() AS id, '' AS body",
    ],
)
def test_query_when_it_would_write_then_the_listing_fails_and_nothing_is_written(shop: Shop, query: str) -> None:
    shop.execute("INSERT INTO articles VALUES (1, 'a', 'a', NULL)")
    _make_writing_function(shop)
    runs = TableRuns(shop, {"query": query, "key": ["id"], "text": "body"})

    listed = runs.list_rows()
    [answer] = runs.read("1")

    assert listed.end.is_failure
    assert isinstance(answer, Unread)
    assert answer.code == 500
    kept = TableRuns(shop, _KEYS).list_rows()
    assert kept.keys == {"1"}


def _make_writing_function(shop: Shop) -> None:
    if shop.kind == "postgresql":
        shop.execute(
            "CREATE FUNCTION write_something() RETURNS integer LANGUAGE sql AS 'DELETE FROM articles RETURNING 1'"
        )
    elif shop.kind == "mariadb":
        shop.execute(
            "CREATE FUNCTION write_something() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM articles; RETURN 1; END"
        )


def test_columns_when_one_is_dropped_then_listing_and_reading_fail_and_say_so(shop: Shop) -> None:
    shop.execute("INSERT INTO articles VALUES (1, 'a', 'a', NULL)")
    runs = TableRuns(shop, {**_KEYS, "title": "title"})
    runs.list_rows()
    shop.execute("ALTER TABLE articles DROP COLUMN title")

    listed = runs.list_rows()
    [answer] = runs.read("1")

    assert listed.end.code == 500
    assert listed.end.error == "table.title: there is no column title (there are id, body, changed)"
    assert isinstance(answer, Unread)
    assert answer.code == 500


def test_table_when_locked_then_the_listing_ends_within_its_time_and_removes_nothing(shop: Shop) -> None:
    lock = {
        "sqlite": "BEGIN EXCLUSIVE",
        "postgresql": "LOCK TABLE articles IN ACCESS EXCLUSIVE MODE",
        "mariadb": "LOCK TABLES articles WRITE",
    }[shop.kind]
    runs = TableRuns(shop, {**_KEYS, "statement_seconds": 1.0})
    connection = shop.open()
    cursor = connection.cursor()
    if shop.kind == "postgresql":
        cursor.execute("BEGIN")
    cursor.execute(lock)

    listed = runs.list_rows()
    [answer] = runs.read("1")

    connection.close()
    assert listed.end.code == 902
    assert not listed.end.whole
    assert isinstance(answer, Unread)
    assert (answer.code, answer.transient) == (902, True)


def test_query_when_it_takes_too_long_then_it_is_ended(shop: Shop) -> None:
    endless = {
        "sqlite": "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT max(id) AS id, '' AS body FROM n",
        "postgresql": "SELECT 1 AS id, pg_sleep(60)::text AS body",
        "mariadb": "SELECT 1 AS id, SLEEP(60) AS body",
    }[shop.kind]
    runs = TableRuns(shop, {"query": endless, "key": ["id"], "text": "body", "statement_seconds": 1.0})

    listed = runs.list_rows()

    assert listed.end.code == 902


def test_rows_when_all_of_them_take_longer_than_a_statement_may_then_they_are_listed(shop: Shop) -> None:
    if shop.kind != "mariadb":
        pytest.skip("the time is that of each part of the rows")
    shop.execute("INSERT INTO articles VALUES (1, 'a', 'a', NULL), (2, 'b', 'b', NULL), (3, 'c', 'c', NULL)")
    slow = "SELECT id, body, SLEEP(0.8) AS slept FROM articles"
    runs = TableRuns(shop, {"query": slow, "key": ["id"], "text": "body", "statement_seconds": 1.5})

    listed = runs.list_rows()

    assert listed.end.code == 200, listed.end
    assert listed.keys == {"1", "2", "3"}


def test_permissions_when_columns_have_principals_then_they_are_those_of_the_row(shop: Shop) -> None:
    shop.execute(
        "CREATE TABLE papers (id INTEGER, body TEXT, readers TEXT, others TEXT)",
        "INSERT INTO papers VALUES (1, 'x', 'user:anna, group:staff', 'user:carl'), (2, 'y', NULL, NULL), (3, 'z', ' , ', '')",
        "INSERT INTO papers VALUES (4, 'z', 'everyone', 'user:carl, anna')",
    )
    runs = TableRuns(shop, {"table": "papers", "key": ["id"], "text": "body", "allow": ["readers"], "deny": ["others"]})

    read = runs.read_all()

    found = {key: find_permissions(answer.headers) for key, answer in read.items()}
    assert found["1"] is not None
    assert (found["1"].allow, found["1"].deny) == (("user:anna", "group:staff"), ("user:carl",))
    assert found["2"] is not None
    assert found["2"].allow == ("nobody",)
    assert found["3"] is not None
    assert found["3"].allow == ("nobody",)
    assert found["4"] is not None
    assert found["4"].allow == ("nobody",)


def test_body_when_a_column_has_a_file_then_it_comes_with_its_type(shop: Shop) -> None:
    kind, binary = ("BYTEA", r"'\x25504446'") if shop.kind == "postgresql" else ("BLOB", "x'25504446'")
    shop.execute(
        f"CREATE TABLE files (id INTEGER, data {kind}, mime VARCHAR(50))",
        f"INSERT INTO files VALUES (1, {binary}, 'application/pdf'), (2, NULL, 'application/pdf'), (3, {binary}, 'broken')",
    )
    runs = TableRuns(shop, {"table": "files", "key": ["id"], "body": "data", "body_type": "mime"})

    read = runs.read_all()

    assert (read["1"].body, dict(read["1"].headers).get(b"Content-Type")) == (b"%PDF", b"application/pdf")
    assert (read["2"].body, dict(read["2"].headers).get(b"Content-Type")) == (b"", b"text/plain; charset=utf-8")
    assert (read["3"].body, dict(read["3"].headers).get(b"Content-Type")) == (b"%PDF", None)


def test_text_when_a_template_has_columns_then_their_values_are_in_it(shop: Shop) -> None:
    shop.execute("INSERT INTO articles VALUES (1, 'Pears', NULL, NULL)")
    runs = TableRuns(shop, {**_KEYS, "text": "{title} {{no column}}: {body}."})

    [answer] = runs.read("1")

    assert isinstance(answer, Read)
    assert answer.body == b"Pears {no column}: ."


def test_query_when_it_has_colons_percents_and_a_comment_then_it_is_taken_as_it_is(shop: Shop) -> None:
    shop.execute("INSERT INTO articles VALUES (1, ':id %s %% a\\:b', 'x', NULL)")
    query = "SELECT id, title AS said, body FROM articles WHERE title LIKE ':id %' -- the end: %s"
    runs = TableRuns(shop, {"query": query, "key": ["id"], "text": "said"})

    read = runs.read_all()

    expected = b":id %s %% a:b" if shop.kind == "mariadb" else b":id %s %% a\\:b"
    assert {key: answer.body for key, answer in read.items()} == {"1": expected}


def test_database_when_it_is_not_there_then_the_listing_fails_and_shows_no_password(shop: Shop) -> None:
    if shop.kind == "sqlite":
        url, secret = "sqlite:///absent.db", "absent.db.none"
    else:
        secret = "hush-hush-secret"
        scheme = shop.url.partition("://")[0]
        url = f"{scheme}://crawler:{secret}@localhost:1/none"
    shop.url = url

    listed = TableRuns(shop, _KEYS).list_rows()

    assert listed.end.code == 905
    assert secret not in (listed.end.error or "")
    assert not (shop.root / "absent.db").exists()


def test_file_when_it_is_a_pipe_then_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    shop = Shop("sqlite", "sqlite:///pipe.db", tmp_path, lambda: None)

    listed = TableRuns(shop, _KEYS).list_rows()

    assert listed.end.code == 500
    assert listed.end.error == "pipe.db is no regular file"


def test_rows_when_they_are_more_then_a_listing_takes_no_more_memory(tmp_path: Path) -> None:
    shop = open_sqlite_shop(tmp_path)
    shop.execute(_ARTICLES)
    peaks = []
    for rows in (5_000, 40_000):
        numbers = f"WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < {rows - 1})"
        shop.execute(
            "DELETE FROM articles",
            f"INSERT INTO articles {numbers} SELECT id, 'name', printf('%0100d', id), NULL FROM n",
        )
        lister = TableLister(shop.source(**_KEYS), shop.project, Marks(), lambda: False)
        tracemalloc.start()
        listed = sum(len(part.entries) for part in lister.walk())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert listed == rows

    # Eight bytes a row, and some of them as numbers: 100 bytes a row would be more.
    assert peaks[1] - peaks[0] < 35_000 * 50
