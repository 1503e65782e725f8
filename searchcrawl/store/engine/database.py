"""The connection to the store: transactions, and the tables of an empty database.

``write()`` and ``read()`` repeat a transaction while the store is away. ``write_once()`` and ``read_once()`` are one
try each, for this module, for tests and for callers that can do without the result. Every error of the driver
becomes a StoreError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from searchcrawl.exceptions import OtherRevision, StoreAway, StoreError, StoreLocked
from searchcrawl.failpoints import reach
from searchcrawl.store.engine import written_tables
from searchcrawl.store.engine.dialect import load_dialect
from searchcrawl.store.engine.outage_retry import OutageRetry
from searchcrawl.store.run_schema import ALL_TABLES
from searchcrawl.store.views import create_views

#: The open transaction that the functions of the table modules take; only Database makes one.
Transaction = Connection

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Database:
    """A store at ``url``: an SQLite file, whose relative path starts at ``root``, or a PostgreSQL database.

    Several threads may use it; within the process writers queue on a lock. Raises StoreError where it
    cannot be opened, OtherRevision for one of another release, ConfigurationError where its driver is missing.

    ``patience_seconds`` limits how long a caller waits for a store that is locked, or that was reached before
    and is now out of reach. After that StoreAway is raised; with 0 there is one try.
    """

    def __init__(self, url: str, root: Path, *, patience_seconds: float = 0.0) -> None:
        parsed = make_url(url)
        self._dialect = load_dialect(parsed)
        self.outage_retry = OutageRetry(patience_seconds)
        #: The name in messages, without a password.
        self.name = parsed.render_as_string()
        self._writing = threading.Lock()
        self._closed = False
        self._engine_url: URL | None = None
        with self._translate_errors():
            self._engine = self._dialect.build_engine(parsed, root)
        self._reader, self._writer = self._dialect.build_reader_and_writer(self._engine)
        written_tables.listen(self._writer)
        self._engine_url = self._engine.url
        #: Where the file of an SQLite database is.
        self.folder = self._dialect.find_folder(self._engine.url)
        # At first only a lock is waited for: a store that cannot be reached may have a wrong address.
        try:
            self.outage_retry.attempt(self._prepare, retry_on=StoreLocked)
        except BaseException:
            self.close()
            raise

    def write(self, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **names: P.kwargs) -> T:
        """Calls ``work`` in a writing transaction, and with the other arguments; returns its result.

        It is repeated while the store is away (X-S4, X-S9). ``work`` may be called several times, so it must change nothing but the transaction. If the connection
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
                result = work(transaction, *args, **names)
                number = self._dialect.find_transaction_number(transaction)
                if number is not None:
                    unknown = (number, result)
            return result

        return self.outage_retry.attempt(attempt)

    def read(self, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **names: P.kwargs) -> T:
        """Calls ``work`` in a reading transaction, repeated as in ``write``; returns its result."""

        def attempt() -> T:
            with self.read_once() as transaction:
                return work(transaction, *args, **names)

        return self.outage_retry.attempt(attempt, writes=False)

    def read_pages(
        self, find: Callable[..., Sequence[R]], /, *, key: Callable[[R], object] = attrgetter("url_id"), **names: Any
    ) -> Iterator[Sequence[R]]:
        """The rows that ``find`` reads, in pages, each ``after`` the last row of the page before; ``key`` is its place."""
        after: object = 0
        while page := self.read(find, after=after, **names):
            yield page
            after = key(page[-1])

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
        """Closes all connections; a connection in use is closed when its transaction has ended."""
        self._closed = True
        self._engine.dispose()
        self._writer.dispose()

    @contextmanager
    def _connect(self, engine: Engine) -> Iterator[Connection]:
        with engine.connect() as connection:
            try:
                yield connection
            finally:
                if self._closed and not connection.closed and not connection.invalidated:
                    # Otherwise the connection would return to a pool that is already closed, and stay open.
                    connection.detach()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            kind = self._dialect.classify_error(error) if isinstance(error, DBAPIError) else StoreError
            raise kind(f"store {self.name}: {self._dialect.describe_error(cause, self._engine_url)}") from error
        except UnicodeDecodeError as error:
            # A driver raises it where its message quotes a damaged file.
            raise StoreError(f"store {self.name}: is damaged: it says something that is not UTF-8") from error

    def _was_committed(self, transaction: Transaction, number: str) -> bool:
        """Whether an earlier transaction was committed whose end is unknown."""
        status = self._dialect.find_transaction_status(transaction, number)
        if status == "in progress":
            raise StoreAway(f"store {self.name}: a transaction of a lost connection has not ended yet")
        if status not in {"committed", "aborted"}:
            raise StoreError(f"store {self.name}: does not know any more how transaction {number} ended")
        return bool(status == "committed")

    def _prepare(self) -> None:
        with self.read_once() as connection:
            revision = find_revision(connection)
        if revision is None:
            with self.write_once() as connection:
                self._dialect.lock_creation(connection)
                # Another process may have made the tables meanwhile.
                revision = find_revision(connection)
                if revision is None:
                    create_tables(connection)
                    revision = REVISION
        check_revision(revision, self.name)


#: The revision of tables and views: to be raised by whoever changes one of them.
REVISION: Final = 43
#: The table with the revision, in one row.
REVISIONS: Final = Table("revision", MetaData(), Column("number", Integer, nullable=False))
#: Where revisions before 37 have theirs.
_BEFORE: Final = Table("alembic_version", MetaData(), Column("version_num", String(32), nullable=False))


def find_revision(connection: Connection) -> int | None:
    """The revision of a database; None for an empty one."""
    tables = inspect(connection).get_table_names()
    if REVISIONS.name in tables:
        return int(connection.execute(select(REVISIONS.c.number)).scalar_one())
    if _BEFORE.name in tables:
        return int(connection.execute(select(_BEFORE.c.version_num)).scalar_one())
    return None


def check_revision(revision: int, store: str) -> None:
    """Raises OtherRevision for a store of another revision than that of this release."""
    if revision == REVISION:
        return
    if revision > REVISION:
        raise OtherRevision(
            f"store {store}: written by a newer release (revision {revision}); use that release, or another store"
        )
    raise OtherRevision(
        f"store {store}: written by an older release (revision {revision}, not {REVISION}), which cannot be taken over; "
        "set store.url to another store, and crawl anew"
    )


def create_tables(connection: Connection) -> None:
    """Makes all tables and notes their revision, within the open transaction.

    Raises the driver's error where the database has a table of the same name: another program made it.
    """
    _copy_index_conditions(connection.dialect.name)
    ALL_TABLES.create_all(connection, checkfirst=False)
    create_views(connection)
    reach("tables.mid")
    REVISIONS.create(connection, checkfirst=False)
    connection.execute(insert(REVISIONS).values(number=REVISION))


def _copy_index_conditions(dialect: str) -> None:
    """Gives partial indexes the conditions that they have in SQLite; to declare them for all would load all dialects."""
    for table in ALL_TABLES.tables.values():
        for index in table.indexes:
            condition = index.dialect_options["sqlite"]["where"]
            if condition is not None:
                index.dialect_options[dialect]["where"] = condition
