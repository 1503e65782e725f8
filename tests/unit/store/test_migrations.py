"""The migrations make the tables that the code expects."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from searchcrawl.exceptions import StoreError, StoreNewer
from searchcrawl.store.database import Database
from searchcrawl.store.schema import metadata

URL = "sqlite:///var/store.db"


def test_migrations_when_run_then_they_equal_the_tables_of_the_code(tmp_path: Path) -> None:
    database = Database(URL, tmp_path)

    with database.read() as transaction:
        context = MigrationContext.configure(transaction, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, metadata)
    database.close()

    assert differences == []


def test_store_when_opened_again_then_its_rows_are_still_there(tmp_path: Path) -> None:
    with closing(Database(URL, tmp_path)) as database, database.write() as transaction:
        transaction.exec_driver_sql("INSERT INTO sources (name) VALUES ('demo')")

    with closing(Database(URL, tmp_path)) as database, database.read() as transaction:
        names = transaction.exec_driver_sql("SELECT name FROM sources").scalars().all()

    assert names == ["demo"]


def test_store_when_written_by_a_newer_release_then_refused_and_untouched(tmp_path: Path) -> None:
    Database(URL, tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "var/store.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()

    with pytest.raises(StoreNewer, match="newer release"):
        Database(URL, tmp_path)


def test_store_when_the_file_is_no_database_then_a_store_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var/store.db").write_bytes(b"this is no database" * 100)

    with pytest.raises(StoreError, match=r"var/store\.db"):
        Database(URL, tmp_path)


def test_write_when_the_block_raises_then_nothing_is_written(tmp_path: Path) -> None:
    with closing(Database(URL, tmp_path)) as database:
        with pytest.raises(StoreError):
            _write_twice(database)
        with database.read() as transaction:
            rows = transaction.exec_driver_sql("SELECT count(*) FROM sources").scalar_one()

    assert rows == 0


def _write_twice(database: Database) -> None:
    with database.write() as transaction:
        for _ in range(2):
            transaction.exec_driver_sql("INSERT INTO sources (name) VALUES ('demo')")
