"""The connection to the store: transactions, and bringing an older database up to date.

``write()`` and ``read()`` repeat a transaction while the store is away. ``write_once()`` and ``read_once()`` are one
try each, for this module, for tests and for callers that can do without the result. Every error of the driver
becomes a StoreError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import URL, Connection, Engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from searchcrawl.exceptions import StoreAway, StoreError, StoreLocked
from searchcrawl.store.engine.migration import HEAD, create_tables, find_revision, migrate
from searchcrawl.store.engine.outage_retry import OutageRetry, classify_error

#: The open transaction that the functions of the table modules take; only Database makes one.
Transaction = Connection

T = TypeVar("T")

#: The key of the lock: two processes must not migrate one database at once. Any number that no other program uses.
_MIGRATING: Final = 7_231_960_451_882_003


class Database:
    """A store at ``url``: an SQLite file, whose relative path starts at ``root``, or a PostgreSQL database.

    Several threads may use it; within the process writers queue on a lock. Raises StoreError where it
    cannot be opened, StoreNewer for one of a newer release, ConfigurationError where its driver is missing.

    ``patience_seconds`` limits how long a caller waits for a store that is locked, or that was reached before
    and is now out of reach. After that StoreAway is raised; with 0 there is one try.
    """

    def __init__(self, url: str, root: Path, *, patience_seconds: float = 0.0) -> None:
        parsed = make_url(url)
        self.outage_retry = OutageRetry(patience_seconds)
        #: As messages show it, without a password.
        self.name = parsed.render_as_string()
        self._writing = threading.Lock()
        self._closed = False
        with self._translate_errors():
            self._engine = _open_engine(parsed, root)
        self._writer, self._reader = _set_isolation(self._engine)
        #: Where the file of an SQLite database is.
        self.folder = _find_folder(self._engine.url)
        # Only a lock is waited for: a store that cannot be reached at the start may have a wrong address.
        try:
            self.outage_retry.attempt(self._migrate, only=StoreLocked)
        except BaseException:
            self.close()
            raise

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Calls ``work`` in a writing transaction, repeated while the store is away (X-S4, X-S9); returns its result.

        ``work`` may be called several times, so it must change nothing but the transaction. If the connection
        was lost and it is unknown whether the transaction was committed, the store is asked before the next
        try: nothing is written twice. Raises StoreAway when ``patience_seconds`` are over.
        """
        unknown: tuple[str, T] | None = None

        def attempt() -> T:
            nonlocal unknown
            with self.write_once() as transaction:
                if unknown is not None and self._was_committed(transaction, unknown[0]):
                    return unknown[1]
                unknown = None
                result = work(transaction)
                number = _find_number(transaction)
                if number is not None:
                    unknown = (number, result)
            return result

        return self.outage_retry.attempt(attempt)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Calls ``work`` in a reading transaction, repeated as in ``write``; returns its result."""

        def attempt() -> T:
            with self.read_once() as transaction:
                return work(transaction)

        return self.outage_retry.attempt(attempt, writes=False)

    @contextmanager
    def write_once(self) -> Iterator[Transaction]:
        """Opens a transaction that writes, and commits it at the end; one try.

        SQLite: it holds the write lock of the file from its beginning. PostgreSQL: it is READ
        COMMITTED, and ``lease.check`` locks the source for it. In both, what a writer has read of its
        source stays true until it commits. Tables that sources share (hosts, sources) may be written by
        others meanwhile: rows that are read in order to change them are locked, in rising order.
        """
        with self._writing, self._translate_errors(), self._connect(self._writer) as connection, connection.begin():
            yield connection

    @contextmanager
    def read_once(self) -> Iterator[Transaction]:
        """Opens a transaction that sees one state of the store and never waits for writers; one try."""
        with self._translate_errors(), self._connect(self._reader) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Closes all connections; one in use, as soon as its transaction has ended."""
        self._closed = True
        self._engine.dispose()

    @contextmanager
    def _connect(self, engine: Engine) -> Iterator[Connection]:
        with engine.connect() as connection:
            try:
                yield connection
            finally:
                if self._closed and not connection.closed and not connection.invalidated:
                    # Otherwise it would go back to a pool that is closed already, and stay open.
                    connection.detach()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise classify_error(error)(f"store {self.name}: {_describe(cause)}") from error

    def _was_committed(self, transaction: Transaction, number: str) -> bool:
        """Whether an earlier transaction was committed whose end is unknown; used for PostgreSQL only."""
        query = text("SELECT pg_xact_status(CAST(:number AS xid8))")
        status = transaction.execute(query, {"number": number}).scalar()
        if status == "in progress":
            raise StoreAway(f"store {self.name}: a transaction of a lost connection has not ended yet")
        if status not in {"committed", "aborted"}:
            raise StoreError(f"store {self.name}: does not know any more how transaction {number} ended")
        return bool(status == "committed")

    def _migrate(self) -> None:
        with self.read_once() as connection:
            if find_revision(connection) == HEAD:
                return
        with self.write_once() as connection:
            _lock_migration(connection)
            # Another process may have migrated it meanwhile.
            revision = find_revision(connection)
            if revision is None:
                create_tables(connection)
            elif revision != HEAD:
                migrate(connection, self.name)


def _open_engine(url: URL, root: Path) -> Engine:
    if url.get_backend_name() == "sqlite":
        from searchcrawl.store.engine.sqlite_engine import open_engine as open_sqlite  # noqa: PLC0415  # one of two

        return open_sqlite(url, root)
    from searchcrawl.store.engine.postgresql_engine import open_engine as open_postgresql  # noqa: PLC0415  # one of two

    return open_postgresql(url)


def _set_isolation(engine: Engine) -> tuple[Engine, Engine]:
    """Returns the engine with the options of writing transactions, and with those of reading ones."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(immediate=True), engine
    reading: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    return engine, engine.execution_options(**reading)


def _find_folder(url: URL) -> Path | None:
    is_file = url.get_backend_name() == "sqlite" and url.database not in {None, "", ":memory:"}
    return Path(str(url.database)).parent if is_file else None


def _find_number(transaction: Transaction) -> str | None:
    """The number of a transaction in PostgreSQL; None for SQLite, where a commit that failed was not made."""
    if transaction.dialect.name == "sqlite":
        return None
    return str(transaction.exec_driver_sql("SELECT pg_current_xact_id()::text").scalar_one())


def _describe(cause: BaseException) -> str:
    # Further lines of a message of PostgreSQL can quote rows.
    diagnosis = getattr(cause, "diag", None)
    primary = getattr(diagnosis, "message_primary", None)
    return str(primary or cause)


def _lock_migration(connection: Connection) -> None:
    """Waits until no other process migrates this database, however long a migration takes."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
