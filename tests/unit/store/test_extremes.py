"""Values at their limits, in both stores; errors that name no password; indexes that PostgreSQL uses."""

from __future__ import annotations

import random
import string
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event, text

from searchcrawl.exceptions import ConfigurationError, StoreError
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import link_table, url_queue, url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests.postgres_server import PASSWORD, RunningPostgres
from tests.site.client import ROOT
from tests.unit.store.support_store import NOW_MS, SOURCE, add, claim, row, settle

#: Writes to a store that has its tables; what was loaded for that.
_USE_SQLITE = """
import sys
from pathlib import Path
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
database = Database("sqlite:///store.db", Path(sys.argv[1]))
with database.write_once() as transaction:
    host_table.find_or_add(transaction, ["a.test:80"])
print([name for name in sys.modules if "postgresql" in name or "psycopg" in name])
"""
LONG = "".join(random.Random(1).choices(string.ascii_lowercase, k=20_000))


@pytest.fixture
def postgres_database(tmp_path: Path, empty_postgres_url: str) -> Iterator[Database]:
    with closing(Database(empty_postgres_url, tmp_path)) as database:
        with database.write_once() as transaction:
            transaction.execute(text("INSERT INTO sources (name) VALUES ('demo')"))
        yield database


def test_add_when_keys_use_all_64_bits_then_they_come_back(database: Database) -> None:
    keys = [-(2**63), -1, 0, 2**63 - 1]
    with database.write_once() as transaction:
        host = host_table.find_or_add(transaction, ["a.test:80"])["a.test:80"]
        rows = [NewUrl(key=key, url=f"http://a.test/{key}", host_id=host, depth=1) for key in keys]
        ids = url_table.add(transaction, SOURCE, rows, NOW_MS)

    known = {one.key: one.id for one in database.read(url_table.find_known, SOURCE, keys)}
    assert known == ids
    assert sorted(known) == keys


def test_add_when_rows_are_thousands_then_each_key_has_the_id_of_its_row(database: Database) -> None:
    ids = add(database, [f"page-{number}" for number in range(2500)])

    addresses = database.read(url_table.find_places, ids)
    assert [addresses[url_id][0] for url_id in ids] == [f"http://a.test:80/page-{number}" for number in range(2500)]


def test_values_when_they_are_long_then_they_are_kept_whole(database: Database) -> None:
    (url_id,) = add(database, [LONG], host="a.test:80")

    settle(database, [url_id], code=500, error=LONG, rule=LONG, redirects=LONG, attempts=100_000, failed_runs=100_000)

    found = row(database, url_id)
    assert (found.error, found.rule, found.redirects) == (LONG, LONG, LONG)
    assert (found.attempts, found.failed_runs) == (100_000, 100_000)


def test_hosts_when_a_name_is_longer_than_dns_allows_then_it_has_a_row(database: Database) -> None:
    (url_id,) = add(database, ["a"], host=f"{LONG}.test:80")

    names = database.read(host_table.find_names, [row(database, url_id).host_id])
    assert LONG.startswith(*names.values())


def test_settle_when_an_error_has_a_nul_then_the_visit_is_written(database: Database) -> None:
    (url_id,) = add(database, ["a"])

    settle(database, [url_id], code=905, error="bad \0 byte")

    assert row(database, url_id).error in {"bad \0 byte", "bad \ufffd byte"}


def test_refuse_when_the_reason_has_a_surrogate_then_postgresql_takes_it(postgres_database: Database) -> None:
    (url_id,) = add(postgres_database, ["a"])

    settle(postgres_database, [url_id], code=905, error="half \ud83d of a pair")

    assert row(postgres_database, url_id).error == "half ? of a pair"


def test_outlinks_when_ids_are_large_then_they_come_back(database: Database) -> None:
    (page,) = add(database, ["a"])
    targets = [1, 2**31, 2**62]

    with database.write_once() as transaction:
        link_table.store(transaction, {page: [2**31]})
        link_table.store(transaction, {page: targets})

    assert database.read(link_table.load, [page]) == {page: targets}


def test_claim_when_postgresql_plans_for_any_values_then_the_partial_indexes_are_used(
    postgres_database: Database,
) -> None:
    ids = add(postgres_database, [f"page-{number}" for number in range(3000)])
    settle(postgres_database, ids[:2000], due_ms=NOW_MS - 5)
    with postgres_database.write_once() as transaction:
        transaction.execute(text("ANALYZE"))

    # As a statement that was prepared: it must fit whatever its parameters are.
    event.listen(
        postgres_database._engine,
        "begin",
        lambda each: each.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan"),
    )
    claim(postgres_database, limit=2)
    settle(postgres_database, ids[2000:], due_ms=None)
    claim(postgres_database, limit=2)
    with postgres_database.write_once() as transaction:
        url_queue.recover(transaction, SOURCE, stalled=False)
        url_table.find_next_due_ms(transaction, SOURCE)
        transaction.execute(text("SELECT pg_stat_force_next_flush()"))

    with postgres_database.read_once() as transaction:
        query = text("SELECT indexrelname FROM pg_stat_user_indexes WHERE idx_scan > 0")
        used = set(transaction.execute(query).scalars())
    assert {"ix_urls_todo", "ix_urls_due", "ix_urls_claimed"} <= used


def test_sqlite_when_it_is_used_then_no_part_of_postgresql_is_loaded(tmp_path: Path) -> None:
    Database("sqlite:///store.db", tmp_path).close()

    ended = subprocess.run(
        [sys.executable, "-c", _USE_SQLITE, str(tmp_path)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")


def test_error_when_the_database_is_not_there_then_it_is_named(postgres: RunningPostgres, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match='database "no_such" does not exist') as caught:
        Database(postgres.url("no_such"), tmp_path)

    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_database_when_it_is_not_in_utf8_then_refused(postgres: RunningPostgres, tmp_path: Path, encoding: str) -> None:
    name = encoding.lower()
    with postgres.connect() as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0"
        )

    with pytest.raises(StoreError, match=f"database {name} has the encoding {encoding}; UTF8 is needed"):
        Database(postgres.url(name), tmp_path)


def test_database_when_the_driver_is_missing_then_a_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigurationError) as caught:
        Database(f"postgresql+psycopg://me:{PASSWORD}@db.test/pages", tmp_path)

    assert str(caught.value).startswith("searchcrawl.toml: store.url: PostgreSQL needs the driver psycopg: pip install")
    assert str(caught.value).endswith("(got postgresql+psycopg://me:***@db.test/pages)")
