"""Files that are no store any more: one error, whatever the driver makes of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.exceptions import StoreError
from searchcrawl.store.engine.database import Database

URL = "sqlite:///store.db"


def test_open_when_the_message_of_the_driver_quotes_damaged_bytes_then_a_store_error(tmp_path: Path) -> None:
    Database(URL, tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as file:
        file.execute("PRAGMA writable_schema = ON")
        file.execute("UPDATE sqlite_master SET name = CAST(x'ffcc' AS TEXT), sql = 'no' WHERE name = 'urls'")

    with pytest.raises(StoreError, match=r"store sqlite:///store.db: is damaged"):
        Database(URL, tmp_path)
