"""Files that are no store any more, or have no room: one error, whatever the driver makes of it."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.exceptions import StoreError
from searchcrawl.store.engine.database import Database
from tests.site.client import ROOT

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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can take other users' rights")
def test_open_when_a_file_belongs_to_somebody_else_then_the_error_says_so(tmp_path: Path) -> None:
    Database(URL, tmp_path).close()
    (tmp_path / "store.db").chmod(0o600)
    code = f"""
import os
from pathlib import Path
from searchcrawl.exceptions import StoreError
from searchcrawl.store.engine.database import Database
from searchcrawl.store.engine.sqlite_dialect import DIALECT
os.chown({str(tmp_path)!r}, 65534, 65534)
os.chdir({str(tmp_path)!r})
os.setuid(65534)
try:
    Database({URL!r}, Path())
except StoreError as error:
    print(error)
"""

    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert said == "store sqlite:///store.db: unable to open database file (store.db: Permission denied)\n"
