"""Connections to an SQLite file: one writer at a time, readers beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event

from searchcrawl.exceptions import StoreError

#: A writer that may wait longer tries again (``OutageRetry``).
_BUSY_TIMEOUT_SECONDS: Final = 5


def open_engine(url: URL, root: Path) -> Engine:
    """The engine of a file, whose folder is made; relative paths start at ``root``. Raises StoreError.

    A connection with the option ``immediate`` takes the write lock at its beginning.
    """
    if url.database and url.database != ":memory:":
        path = root / url.database
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store {url.render_as_string()}: {error}") from error
        url = url.set(database=str(path))
    engine = create_engine(
        url,
        connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "isolation_level": None, "check_same_thread": False},
        pool_size=8,
        # Error messages must not quote the text of pages.
        hide_parameters=True,
    )
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]  # the driver's own connection
    cursor.execute("PRAGMA journal_mode = WAL")
    # NORMAL: commits survive the death of processes; after a power cut the last ones are lost, and done again.
    cursor.execute("PRAGMA synchronous = NORMAL")
    # At 32 MB of log instead of 4: pages that many groups change are copied once, which halves the bytes written.
    cursor.execute("PRAGMA wal_autocheckpoint = 8000")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -32000")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.close()


def _begin(connection: Connection) -> None:
    # The driver's implicit transactions start too late to be safe.
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
