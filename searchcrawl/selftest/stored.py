"""What an SQLite store says, read past the code under test: by the driver alone, and without a write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

#: Gives the rows of a query by the names of their columns; none while the store has no tables.
Select = Callable[[str], list[dict[str, Any]]]


def select_from_file(path: Path, statement: str) -> list[dict[str, Any]]:
    """Rows of an SQLite file; none where there is no file, or no table yet."""
    names, rows = read_file(path, statement)
    return [dict(zip(names, row, strict=True)) for row in rows]


def read_file(path: Path, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The same as the names of the columns, and the rows."""
    if not path.exists():
        return [], []
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
        try:
            found = store.execute("SELECT 1 FROM sqlite_master WHERE name = 'urls'").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            # It was cut off before it had a log: the next one to write takes back what there is.
            found = None
        if not found:
            return [], []
        cursor = store.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()
