"""Values of real databases for which Python has no type, or another one: none keeps a row from being read (A1, E9)."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from searchcrawl import urls
from searchcrawl.answer_headers import list_values
from searchcrawl.listing.model import Read
from tests.integration.support_tables import Shop, TableRuns, open_sqlite_shop

if TYPE_CHECKING:
    from tests.mariadb_server import RunningMariadb
    from tests.postgres_server import RunningPostgres

_KEYS = {"table": "things", "key": ["id"], "text": "body"}
_ID = "550e8400-e29b-41d4-a716-446655440000"


def _values(answer: Read) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for origin, value in list_values(answer.headers):
        found.setdefault(origin.removeprefix("column:"), []).append(value)
    return found


def test_postgresql_when_its_types_are_read_then_each_value_is_a_text(
    postgres: RunningPostgres, tmp_path: Path
) -> None:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    url = postgres.create_database(name)
    shop = Shop("postgresql", url, tmp_path, lambda: psycopg.connect(url.replace("+psycopg", ""), autocommit=True))
    shop.execute(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE TABLE things (id uuid PRIMARY KEY, body text, whole numeric, part float8, moment timestamptz, day date, "
        "span interval, list text[], days date[], data jsonb, mood mood, net inet, spans int4range, yes boolean, raw bytea)",
        f"INSERT INTO things VALUES ('{_ID}', 'x', 'NaN', '-Infinity', 'infinity', '0044-03-15 BC', '1 day 2 hours', "
        """ARRAY['a,b', NULL, 'c'], ARRAY['infinity'::date], '{"a": [1, null]}', 'glad', '10.0.0.0/8', '[1,5)', true, '\\x00ff')""",
        "INSERT INTO things (id) VALUES ('00000000-0000-0000-0000-000000000001')",
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "moment"})

    read = runs.read_all()

    assert _values(read[_ID]) == {
        "id": [_ID], "whole": ["NaN"], "part": ["-Infinity"], "moment": ["infinity"], "day": ["0044-03-15 BC"], "span": ["P1DT2H"],
        "list": ["a,b", "c"], "days": ["infinity"], "data": ['{"a": [1, null]}'], "mood": ["glad"], "net": ["10.0.0.0/8"],
        "spans": ["[1,5)"], "yes": ["true"],
    }  # fmt: skip
    assert read["00000000-0000-0000-0000-000000000001"].body == b""


def test_postgresql_when_times_have_zones_then_an_increment_misses_none(
    postgres: RunningPostgres, tmp_path: Path
) -> None:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    url = postgres.create_database(name)
    shop = Shop("postgresql", url, tmp_path, lambda: psycopg.connect(url.replace("+psycopg", ""), autocommit=True))
    zone = "SET LOCAL TimeZone = 'Europe/Berlin'"
    shop.execute(
        "CREATE TABLE things (id int PRIMARY KEY, body text, changed timestamptz)",
        "INSERT INTO things VALUES (1, 'summer', '2024-10-27 02:30:00+02'), (0, 'old', '2024-10-01 00:00:00+00')",
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "changed", "lag_seconds": 0.0})
    runs.list_rows()
    # An hour later it is the same time of day in Berlin.
    shop.execute(
        zone, "INSERT INTO things VALUES (2, 'winter', '2024-10-27 02:29:00+01'), (3, 'b', '2024-10-27 02:30:00+01')"
    )

    increment = runs.list_rows()

    assert not increment.end.whole
    assert increment.keys == {"1", "2", "3"}


def test_mariadb_when_its_types_are_read_then_each_value_is_a_text(mariadb: RunningMariadb, tmp_path: Path) -> None:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    shop = Shop("mariadb", mariadb.create_database(name), tmp_path, lambda: mariadb.connect(name))
    shop.execute(
        "CREATE TABLE things (id BIGINT UNSIGNED PRIMARY KEY, body LONGTEXT, moment DATETIME, day DATE, span TIME, year YEAR, "
        "data JSON, mood ENUM('glad', 'sad'), flags SET('a', 'b'), bits BIT(3), yes BOOLEAN, part FLOAT, whole DECIMAL(20, 5), "
        "old VARCHAR(20) CHARACTER SET latin1)",
        "INSERT INTO things VALUES (18446744073709551615, 'x', '0000-00-00 00:00:00', '2024-00-00', '-838:59:59', 1999, "
        "'{\"a\": 1}', 'glad', 'a,b', b'101', true, 1.5, 1.50000, 'é')",
        "INSERT INTO things (id, body) VALUES (1, 'y')",
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "moment"})

    read = runs.read_all()

    assert _values(read["18446744073709551615"]) == {
        "id": ["18446744073709551615"], "moment": ["0000-00-00 00:00:00"], "day": ["2024-00-00"], "span": ["-838:59:59"],
        "year": ["1999"], "data": ['{"a": 1}'], "mood": ["glad"], "flags": ["a,b"], "yes": ["1"], "part": ["1.5"],
        "whole": ["1.50000"], "old": ["é"],
    }  # fmt: skip
    assert read["1"].body == b"y"


def test_mariadb_when_the_user_sees_no_transactions_of_others_then_the_lag_alone_counts(
    mariadb: RunningMariadb, tmp_path: Path
) -> None:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    mariadb.create_database(name)
    mariadb.execute(
        None,
        f"CREATE USER reader_{name}@localhost IDENTIFIED BY 'a-reader'",
        f"GRANT SELECT ON {name}.* TO reader_{name}@localhost",
    )
    url = mariadb.url(name, user=f"reader_{name}", password="a-reader")
    shop = Shop("mariadb", url, tmp_path, lambda: mariadb.connect(name))
    shop.execute(
        "CREATE TABLE things (id INT PRIMARY KEY, body TEXT, changed DATETIME)",
        "INSERT INTO things VALUES (1, 'a', '2020-01-01 10:00:00'), (2, 'b', '2020-01-01 10:06:00')",
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "changed"})

    whole = runs.list_rows()
    increment = runs.list_rows()

    assert whole.end.whole
    assert increment.keys == {"2"}


def test_servers_when_they_know_no_such_user_or_database_then_the_listing_says_which(
    mariadb: RunningMariadb, postgres: RunningPostgres, tmp_path: Path
) -> None:
    name = f"shop_{uuid.uuid4().hex[:12]}"
    mariadb.create_database(name)
    absent = postgres.url("absent_database")
    urls_and_codes = {
        mariadb.url(name, password="wrong-hush-word"): 959,
        mariadb.url("absent_database"): 959,
        absent: 500,
        absent.replace("crawler:", "nobody_here:"): 959,
    }

    listed = {url: TableRuns(Shop("", url, tmp_path, lambda: None), _KEYS).list_rows().end for url in urls_and_codes}

    assert {url: end.code for url, end in listed.items()} == urls_and_codes
    assert "wrong-hush-word" not in str(listed.values())


def test_sqlite_when_texts_are_no_utf8_and_numbers_no_numbers_then_rows_are_read(tmp_path: Path) -> None:
    shop = open_sqlite_shop(tmp_path)
    shop.execute(
        "CREATE TABLE things (id, body, part REAL, moment)",
        "INSERT INTO things VALUES (CAST(x'ff41' AS TEXT), CAST(x'00ff' AS TEXT), 9e999, 'yesterday'), (1, 'y', NULL, 5)",
    )
    runs = TableRuns(shop, {**_KEYS, "modified": "moment"})

    read = runs.read_all()

    assert read["%FFA"].body == "\ufffd\ufffd".encode()
    assert _values(read["%FFA"]) == {"id": ["\ufffdA"], "part": ["Infinity"], "moment": ["yesterday"]}
    assert urls.resolve("row://shop/things/%FFA", listed=True) == "row://shop/things/%FFA"
    # No time: all keys are read each time.
    assert runs.list_rows().end.whole
