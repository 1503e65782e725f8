"""The connection to the store: transactions, and bringing an older database up to date.

``write()`` and ``read()`` are the only ways in; every error of the driver becomes a StoreError.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from searchcrawl.exceptions import StoreError

#: What the table modules take; made by ``Database.write`` and ``Database.read`` alone.
Transaction = Connection

#: The newest revision in migrations/versions.
HEAD = "0002"
_BUSY_TIMEOUT_SECONDS = 30


class Database:
    """A store at ``url``; relative SQLite paths start at ``root``.

    Several threads may use it; within the process writers queue on a lock instead of polling the
    database's. Raises StoreError where it cannot be opened, StoreNewer for one of a newer release.
    """

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self._writing = threading.Lock()
        self._engine = _engine(url, root)
        self._migrate()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that holds the write lock from its beginning; commits at the end."""
        with self._writing, self._translated(), self._engine.connect() as connection:
            connection.execution_options(immediate=True)
            with connection.begin():
                yield connection

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that sees one state of the store and never waits for writers."""
        with self._translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise StoreError(f"store {make_url(self.url).render_as_string()}: {cause}") from error

    def _migrate(self) -> None:
        with self.read() as connection:
            if _revision(connection) == HEAD:
                return
        with self.write() as connection:
            # Another process may have done it meanwhile.
            if _revision(connection) != HEAD:
                from searchcrawl.store.migrating import migrate  # noqa: PLC0415  # heavy, and seldom needed

                migrate(connection, self.url)


def _revision(connection: Connection) -> str | None:
    """The revision that a database is at; None for an empty one. Without Alembic, which is slow to import."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def _engine(url: str, root: Path) -> Engine:
    parsed = make_url(url)
    if parsed.database and parsed.database != ":memory:":
        path = root / parsed.database
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store {url}: {error}") from error
        parsed = parsed.set(database=str(path))
    engine = create_engine(
        parsed,
        connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "isolation_level": None, "check_same_thread": False},
        pool_size=8,
        # Page text has no place in error messages.
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: object, _record: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]  # the driver's own connection
        cursor.execute("PRAGMA journal_mode = WAL")
        # NORMAL: a commit survives the death of processes; after a power cut the last ones repeat.
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA cache_size = -32000")
        cursor.execute("PRAGMA temp_store = MEMORY")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver's implicit transactions start too late to be safe (findings §7).
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine
