"""How the dialect of a store is found, and that no other module tests which database it has."""

from __future__ import annotations

import re
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import make_url

from searchcrawl.exceptions import ConfigurationError, StoreError
from searchcrawl.store.engine import dialect as dialects
from searchcrawl.store.engine.database import Database
from searchcrawl.store.engine.dialect import dialect_of, load_dialect
from searchcrawl.store.runs import run_table

_STORE = Path(dialects.__file__).parent.parent


def test_load_when_the_database_is_unknown_then_key_and_value_are_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Database("mariadb+pymysql://me:secret@db.test/pages", tmp_path)

    assert str(caught.value) == (
        "searchcrawl.toml: store.url: must be the URL of postgresql or sqlite (got mariadb+pymysql://me:***@db.test/pages)"
    )


@pytest.mark.parametrize("name", sorted(dialects._MODULES))
def test_load_when_the_database_is_known_then_its_dialect_has_all_operations(name: str) -> None:
    found = load_dialect(make_url(f"{name}://"))

    assert not type(found).__abstractmethods__


def test_dialect_of_when_asked_in_a_transaction_then_it_is_that_of_the_url(database: Database) -> None:
    assert database.read(dialect_of) is database._dialect


def test_modules_when_searched_then_none_compares_the_name_of_a_dialect() -> None:
    comparison = re.compile(r"(dialect\.name|get_backend_name\(\))\s*(==|!=|in\b|not in\b)")

    assert [path.name for path in _STORE.rglob("*.py") if comparison.search(path.read_text("utf-8"))] == []


def test_transactions_when_the_database_says_otherwise_then_are_on_the_disk_when_they_end(
    database: Database, store_url: str, tmp_path: Path
) -> None:
    def change(statement: str) -> None:
        with database.write_once() as transaction:
            if transaction.dialect.name == "postgresql":
                transaction.exec_driver_sql(f'ALTER DATABASE "{make_url(store_url).database}" {statement}')

    change("SET synchronous_commit = off")
    with closing(Database(store_url, tmp_path)) as other, other.write_once() as transaction:
        is_file = transaction.dialect.name == "sqlite"
        level = transaction.exec_driver_sql("PRAGMA synchronous" if is_file else "SHOW synchronous_commit").scalar()
    change("RESET synchronous_commit")

    # 2 is FULL.
    assert level == (2 if is_file else "on")


def test_write_when_rows_were_put_back_without_their_sequences_then_the_error_says_what_mends_it(
    empty_postgres_url: str, tmp_path: Path
) -> None:
    with closing(Database(empty_postgres_url, tmp_path)) as database:
        add = partial(run_table.find_or_add_source, name="first")
        database.write(add)
        with database.write_once() as transaction:
            transaction.exec_driver_sql("SELECT setval('sources_id_seq', 1, false)")
        with pytest.raises(StoreError) as caught:
            database.write(partial(run_table.find_or_add_source, name="second"))
        mend = str(caught.value).partition("is behind its rows: ")[2]
        with database.write_once() as transaction:
            transaction.exec_driver_sql(mend)

        number = database.write(partial(run_table.find_or_add_source, name="second"))

    assert mend == "SELECT setval(pg_get_serial_sequence('sources', 'id'), max(id)) FROM sources"
    assert number == 2
