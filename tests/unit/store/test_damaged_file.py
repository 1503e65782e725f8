"""Files that are no store any more, or have no room: one error, whatever the driver makes of it."""

from __future__ import annotations

import resource
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


def test_open_when_nothing_can_be_written_beside_the_file_then_the_error_names_the_space(tmp_path: Path) -> None:
    Database(URL, tmp_path).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As on a full disk, the shared memory of SQLite does not fit, which is 32 KB.
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, hard))
    try:
        with pytest.raises(StoreError, match=r"store sqlite:///store.db: no space left on its disk \(disk I/O error\)"):
            Database(URL, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
