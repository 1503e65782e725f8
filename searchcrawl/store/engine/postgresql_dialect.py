"""PostgreSQL as the store, through psycopg; loaded only where it is used.

Writing transactions are READ COMMITTED: ``lease.check`` locks the lease row of the source first, and each
statement after it sees all that earlier holders of that lock committed. REPEATABLE READ would see the
state from before the wait, and fail. Reading transactions are REPEATABLE READ and read only: all their statements
see one state of the store, without locks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    ExceptionContext,
    Integer,
    Select,
    bindparam,
    create_engine,
    event,
    func,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, OperationalError

from searchcrawl.exceptions import ConfigurationError, StoreAway, StoreError, StoreLocked
from searchcrawl.store.engine.dialect import Dialect

_OLDEST: Final = 15
#: A frozen process loses its transaction and locks before the others stop waiting for them.
#: A commit is on the disk before anything follows from it, also where the server or the database says otherwise.
_SETTINGS: Final = "-c idle_in_transaction_session_timeout=30s -c lock_timeout=60s -c jit=off -c synchronous_commit=on"
#: Values of libpq: a server that does not answer any more is noticed in half a minute.
_DEFAULTS: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "fallback_application_name": "searchcrawl",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
#: The key of the lock: two processes must not make the tables of one database at once. Any number that no other program uses.
_CREATING: Final = 7_231_960_451_882_003
#: lock_not_available, deadlock_detected, serialization_failure
_LOCKED: Final = frozenset({"55P03", "40P01", "40001"})
#: too_many_connections, operator intervention (the server is told to stop, or starts), idle transactions ended
_REFUSED: Final = frozenset({"53300", "57P01", "57P02", "57P03", "57P05", "25P03"})
#: Connection exceptions.
_CONNECTION_CLASS: Final = "08"
#: read_only_sql_transaction: the server became a standby, or its provider lets nobody write while its disk is full.
_READ_ONLY: Final = "25006"
_UNIQUE_VIOLATION: Final = "23505"
#: What the detail of such an error says of the column that numbers rows.
_NUMBER: Final = "(id)="
#: Rows of ours never have a number twice: others were put back without the sequence, as by a standby of logical replication.
_BEHIND: Final = (
    "; the sequence of its numbers is behind its rows: "
    "SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
)


class PostgresqlDialect(Dialect):
    """A PostgreSQL database."""

    insert = staticmethod(insert)

    def build_engine(self, url: URL, root: Path) -> Engine:
        """Values in the query of the URL override ours.

        Connecting raises StoreError for a server older than PostgreSQL 15 and for a database that is not in UTF-8.
        """
        arguments = {name: value for name, value in _DEFAULTS.items() if name not in url.query}
        given = url.query.get("options", "")
        arguments["options"] = f"{_SETTINGS} {given if isinstance(given, str) else ' '.join(given)}".rstrip()
        try:
            from psycopg import RawCursor  # noqa: PLC0415  # the driver is an extra

            engine = create_engine(
                url,
                # With the server's own placeholders the driver need not parse each statement: that took 40 ms for 300 rows.
                paramstyle="numeric_dollar",
                connect_args={**arguments, "cursor_factory": RawCursor},
                isolation_level="READ COMMITTED",
                pool_size=8,
                # So no transaction fails because of a connection from before a restart of the server.
                pool_pre_ping=True,
                use_native_hstore=False,
                # Error messages must not quote the text of pages.
                hide_parameters=True,
            )
        except ImportError as error:
            raise ConfigurationError(
                "searchcrawl.toml",
                "store.url",
                f"PostgreSQL needs the driver psycopg: pip install 'searchcrawl[postgresql]' ({error}) "
                f"(got {url.render_as_string()})",
            ) from error
        # First of all: SQLAlchemy's own first question fails in a database without an encoding.
        event.listen(engine, "connect", _configure, insert=True)
        event.listen(engine, "handle_error", _leave_read_only_server)
        event.listen(engine, "checkin", _leave_it_to_the_server)
        return engine

    def build_reader_and_writer(self, engine: Engine) -> tuple[Engine, Engine]:
        reading: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        return engine.execution_options(**reading), engine

    def find_folder(self, url: URL) -> Path | None:
        return None

    def lock_creation(self, transaction: Connection) -> None:
        transaction.execute(text("SET LOCAL lock_timeout = 0"))
        transaction.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATING})

    def read_clock_ms(self, transaction: Connection) -> int:
        """The server's clock now, and not as the transaction began: it may have waited for a lock."""
        query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        return int(transaction.exec_driver_sql(query).scalar_one())

    def find_transaction_number(self, transaction: Connection) -> str | None:
        return str(transaction.exec_driver_sql("SELECT pg_current_xact_id()::text").scalar_one())

    def find_transaction_status(self, transaction: Connection, number: str) -> str | None:
        query = text("SELECT pg_xact_status(CAST(:number AS xid8))")
        return transaction.execute(query, {"number": number}).scalar()

    def classify_error(self, error: DBAPIError) -> type[StoreError]:
        state = getattr(error.orig, "sqlstate", None)
        if state in _LOCKED:
            return StoreLocked
        if state in _REFUSED or (state or "").startswith(_CONNECTION_CLASS) or error.connection_invalidated:
            return StoreAway
        # A connection that could not be made, or was cut: there is no answer with a state.
        return StoreAway if state is None and isinstance(error, OperationalError) else StoreError

    def describe_error(self, cause: BaseException, url: URL | None) -> str:
        # Further lines of a message can quote rows.
        diagnosis = getattr(cause, "diag", None)
        # The library says on lines of its own why there is no connection.
        text = " ".join(str(getattr(diagnosis, "message_primary", None) or cause).split())
        is_twice = getattr(cause, "sqlstate", None) == _UNIQUE_VIOLATION
        if is_twice and diagnosis is not None and _NUMBER in (diagnosis.message_detail or ""):
            text += _BEHIND.format(table=diagnosis.table_name)
        return text

    def is_among(self, column: Column[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """Passes the values as one array and joins it.

        A list of parameters would be compared one by one with each row, for as long as a new table has no statistics
        that lead to its index.
        """
        array = bindparam(None, list(values), type_=ARRAY(column.type))
        return column.in_(select(func.unnest(array)))

    def pick_of_each(self, wanted: str, pick: Callable[[ColumnElement[int]], Select[int]]) -> Select[int]:
        each = func.unnest(bindparam(wanted, type_=ARRAY(Integer))).table_valued("value", name="each").render_derived()
        picked = pick(each.c.value).lateral("picked")
        return select(picked.c[0]).select_from(each).join(picked, true())

    def pack_numbers(self, numbers: Sequence[int]) -> list[int]:
        return [*numbers]

    def contains_bytes(self, column: Column[bytes], part: bytes) -> ColumnElement[bool]:
        # Without the name of its schema this is a keyword of SQL, with the arguments turned round.
        return func.pg_catalog.position(column, part) > 0

    def collate_by_code_points(self, column: Column[str]) -> ColumnElement[str]:
        return column.collate("C")


DIALECT: Final = PostgresqlDialect()


def _configure(connection: Any, _record: object) -> None:
    info = connection.info
    if info.server_version < _OLDEST * 10_000:
        raise StoreError(f"store: PostgreSQL {info.server_version // 10_000} is too old; {_OLDEST} or newer is needed")
    encoding = info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"store: database {info.dbname} has the encoding {encoding}; UTF8 is needed (createdb -E UTF8 -T template0)"
        )
    connection.adapters.register_dumper(str, _text_dumper())


def _leave_read_only_server(context: ExceptionContext) -> None:
    """Has all connections made anew: those to a former primary would never write again."""
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True


def _leave_it_to_the_server(connection: Any, _record: object) -> None:
    """Has a connection that has read begin as the server says; SQLAlchemy would have it ask to write, which a standby refuses."""
    if connection is not None and not connection.closed:
        connection.read_only = None


def _text_dumper() -> type:
    """Replaces NUL, which PostgreSQL refuses, and surrogates, which are no UTF-8: no page may stop a crawl."""
    from psycopg.adapt import Dumper  # noqa: PLC0415  # the driver is an extra

    class TextDumper(Dumper):
        def dump(self, obj: str) -> bytes:
            return obj.replace("\0", "\ufffd").encode("utf-8", "replace")

    return TextDumper
