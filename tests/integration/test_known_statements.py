"""What tests spare their stores (``tests.known_statements``) changes nothing in them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import create_engine

from searchcrawl.store.engine.database import Database
from searchcrawl.store.run_schema import ALL_TABLES


def test_tables_when_their_texts_are_known_then_are_those_of_sqlalchemy(tmp_path: Path) -> None:
    for name in ("first", "second"):
        Database(f"sqlite:///{name}.db", tmp_path).close()
    engine = create_engine(f"sqlite:///{tmp_path}/anew.db")
    with engine.begin() as connection:
        type(ALL_TABLES).create_all(ALL_TABLES, connection, checkfirst=False)
    engine.dispose()

    assert _list(tmp_path / "second.db") >= _list(tmp_path / "anew.db")
    assert _list(tmp_path / "second.db") == _list(tmp_path / "first.db")


def _list(file: Path) -> set[tuple[str, str]]:
    """Tables, indexes and views, with their statements."""
    with closing(sqlite3.connect(file)) as connection:
        return set(connection.execute("SELECT name, sql FROM sqlite_master"))
