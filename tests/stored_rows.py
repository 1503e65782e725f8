"""What the store of a project says, read past the code under test: by the drivers alone."""

from __future__ import annotations

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg
from sqlalchemy import make_url

from searchcrawl.selftest.final_state import read_file

_DEFAULT: Final = "sqlite:///var/searchcrawl.db"


def store_url(folder: Path) -> str:
    """``store.url`` of a project."""
    url: str = tomllib.loads((folder / "searchcrawl.toml").read_text("utf-8")).get("store", {}).get("url", _DEFAULT)
    return url


def query(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """Rows of the project's store; an empty list while it has no tables."""
    return _select(folder, statement)[1]


def query_columns(folder: Path, statement: str) -> list[dict[str, Any]]:
    """The same by the names of the columns."""
    names, rows = _select(folder, statement)
    return [dict(zip(names, row, strict=True)) for row in rows]


def execute(folder: Path, statement: str) -> None:
    """Writes to the project's store, behind the back of those who have it open."""
    if is_file(folder):
        with closing(sqlite3.connect(_path(folder), timeout=30)) as store, store:
            store.execute(statement)
    else:
        with psycopg.connect(**connection_values(store_url(folder))) as connection:
            connection.execute(statement.encode())


def age_leases(folder: Path, *, seconds: int) -> None:
    """Makes the last beat of each lease so many seconds older."""
    clocks = ", ".join(f"{name} = {name} - {seconds * 1000}" for name in ("renewed_ms", "beat_ms"))
    execute(folder, f"UPDATE leases SET {clocks}")


def is_being_written(folder: Path) -> bool:
    """Whether a process holds the lock of a writer of the project's one source."""
    try:
        if is_file(folder):
            with closing(sqlite3.connect(_path(folder), timeout=0, isolation_level=None)) as store:
                store.execute("BEGIN IMMEDIATE")
        else:
            with psycopg.connect(**connection_values(store_url(folder))) as connection:
                connection.execute("SELECT fence FROM leases FOR UPDATE NOWAIT")
    except (sqlite3.OperationalError, psycopg.errors.LockNotAvailable):
        return True
    return False


def is_file(folder: Path) -> bool:
    """Whether the store is an SQLite file."""
    return make_url(store_url(folder)).get_backend_name() == "sqlite"


def connection_values(url: str) -> dict[str, Any]:
    """What psycopg needs to connect to the database of a ``store.url``."""
    parsed = make_url(url)
    values = {"user": parsed.username, "password": parsed.password, "host": parsed.host, "port": parsed.port}
    return {key: value for key, value in values.items() if value} | {"dbname": parsed.database} | dict(parsed.query)


def _select(folder: Path, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    if is_file(folder):
        return read_file(_path(folder), statement)
    with psycopg.connect(**connection_values(store_url(folder))) as connection:
        try:
            # The statement is a test's own.
            cursor = connection.execute(statement.encode())
        except psycopg.errors.UndefinedTable:
            return [], []
        return [column.name for column in cursor.description or ()], cursor.fetchall()


def _path(folder: Path) -> Path:
    return folder / str(make_url(store_url(folder)).database)
