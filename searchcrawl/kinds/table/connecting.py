"""Connections to the database of a source that only read, each statement with a limit of time.

PostgreSQL, MariaDB, MySQL and SQLite are told that a transaction writes nothing, by several means each; of other databases
a user is expected who may only read. All are asked to write dates, times, JSON and the like as texts, in UTC.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.sources.secrets import hide, hide_password, redact
from searchcrawl.terminal import to_one_line

#: How long a connection may take to be made.
_CONNECT_SECONDS: Final = 10
#: So much later than the server the driver gives up.
_GRACE_SECONDS: Final = 2
#: So many parts of rows a statement may bring before MariaDB and MySQL end it by themselves.
_MOST_PARTS: Final = 60
#: As many as MySQL counts.
_MOST_MILLISECONDS: Final = (1 << 32) - 1
#: How many connections are kept; readers of more threads wait.
_CONNECTIONS: Final = 4
#: So many steps of SQLite's machine are done between two looks at the clock: a few milliseconds.
_STEPS: Final = 100_000
#: Of a statement that the database refuses, for whatever reason.
SQL_ERROR: Final = 500
_MOST_CHARACTERS: Final = 400
#: The errors of MariaDB and MySQL: no access, a lock that was waited for, a statement that took too long.
#: … a right lacks that only this statement needs.
_FORBIDDEN: Final = frozenset({1142, 1227})
_DENIED: Final = frozenset({1044, 1045, 1698})
_LATE: Final = frozenset({1205, 1969, 3024})
_AWAY: Final = frozenset({2002, 2003, 2006, 2013, 2055})


class DatabaseError(Exception):
    """The database did not answer; ``code`` is how the table of codes calls that, the text has no password in it."""

    def __init__(self, code: int, message: str, *, is_forbidden: bool = False) -> None:
        self.code = code
        self.is_forbidden = is_forbidden
        super().__init__(message)

    @property
    def is_passing(self) -> bool:
        """Whether the same may work later: the server was away, or somebody held a lock."""
        return self.code not in {SQL_ERROR, Code.LOGIN_FAILED}


class Driver(NamedTuple):
    """What is said to one kind of database, with the seconds that a statement may take.

    ``build`` gives the URL and the arguments of connections, ``prepare`` is called with each new one and its record. ``begin`` begins a
    transaction where the driver does not. ``oldest`` asks for the age of the oldest open transaction in seconds.
    """

    build: Callable[[URL, Path, float], tuple[URL, dict[str, Any]]]
    prepare: Callable[[Any, Any, float], None]
    begin: str = ""
    oldest: str = ""


class TableDatabase:
    """The database at ``url``, an SQLite file relative to ``root``; any thread may use it. Nothing is connected at first.

    Raises DatabaseError where its driver is missing. A statement may take ``statement_seconds``; one that brings many rows
    (``begin_rows``) may take so long for each part of them.
    """

    def __init__(self, url: str, root: Path, *, statement_seconds: float) -> None:
        hide_password(url)
        parsed = make_url(url)
        if parsed.password:
            hide(str(parsed.password))
        self._seconds = statement_seconds
        self.kind = parsed.get_backend_name()
        self._driver = _DRIVERS.get(self.kind, _OTHER)
        engine_url, arguments = self._driver.build(parsed, root, statement_seconds)
        try:
            self._engine = create_engine(
                engine_url,
                connect_args=arguments,
                pool_size=_CONNECTIONS,
                max_overflow=0,
                pool_pre_ping=True,
                # Error messages must not quote rows.
                hide_parameters=True,
            )
        except (ImportError, NoSuchModuleError, ArgumentError) as error:
            raise DatabaseError(SQL_ERROR, describe_missing(parsed, error)) from error
        event.listen(self._engine, "connect", self._prepare)

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def connect(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """A transaction that writes nothing, in which results come in parts; with ``snapshot`` it sees one state of the database.

        Raises DatabaseError for every error of the database in it.
        """
        options: dict[str, Any] = {"stream_results": True, "max_row_buffer": 1000}
        if self.kind == "postgresql":
            options |= {
                "isolation_level": "REPEATABLE READ" if snapshot else "READ COMMITTED",
                "postgresql_readonly": True,
            }
        with translate_errors(), self._open(options) as connection, connection.begin():
            self.begin_step(connection)
            if self._driver.begin:
                connection.exec_driver_sql(self._driver.begin)
            yield connection

    def find_open_seconds(self) -> float:
        """How long the oldest transaction of others is open, as far as the user of the source may see that."""
        if not self._driver.oldest:
            return 0.0
        try:
            with self.connect() as connection:
                found = connection.exec_driver_sql(self._driver.oldest).scalar_one()
        except DatabaseError as error:
            if error.is_forbidden:
                return 0.0
            raise
        return max(0.0, float(found or 0))

    def begin_rows(self, connection: Connection) -> None:
        """Has the next statement bring many rows: MariaDB and MySQL count the time of all of them as its own.

        They are given that of very many parts; the connection ends where none comes for as long as one may take.
        """
        if self.kind in {"mysql", "mariadb"}:
            most = _MOST_PARTS * self._seconds
            connection.exec_driver_sql(
                f"SET SESSION {_limit(most, is_mariadb=getattr(connection.dialect, 'is_mariadb', False))}"
            )

    def begin_step(self, connection: Connection) -> None:
        """Gives the next part of a result its own time; only SQLite has nobody else to count it."""
        if (deadline := connection.info.get(_DEADLINE)) is not None:
            deadline[0] = clock.monotonic() + self._seconds

    @contextmanager
    def _open(self, options: dict[str, Any]) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            try:
                yield connection.execution_options(**options)
            except BaseException:
                # What is left of a result would be read by whoever closes it.
                with contextlib.suppress(SQLAlchemyError):
                    connection.invalidate()
                raise

    def _prepare(self, connection: Any, record: Any) -> None:
        self._driver.prepare(connection, record, self._seconds)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raises DatabaseError for each error of a driver."""
    try:
        yield
    except SQLAlchemyError as error:
        number = _find_number(error)
        raise DatabaseError(_classify(error), _describe(error), is_forbidden=number in _FORBIDDEN) from error
    except (UnicodeError, OverflowError) as error:
        # Of a driver that has no value of Python for what a row has.
        raise DatabaseError(SQL_ERROR, f"a value cannot be read ({type(error).__name__})") from error


def describe_missing(url: URL, error: Exception) -> str:
    """Why a database of this kind cannot be asked: its driver is missing, with what brings it."""
    extra = {"postgresql+psycopg": "postgresql", "mysql+pymysql": "mysql", "mariadb+pymysql": "mysql"}.get(
        url.drivername
    )
    hint = f"pip install 'searchcrawl[{extra}]'" if extra else "install the package of the driver"
    return f"the driver of {url.drivername} is missing: {hint} ({to_one_line(redact(str(error)))})"


def _classify(error: SQLAlchemyError) -> int:
    cause = getattr(error, "orig", None)
    state = str(getattr(cause, "sqlstate", None) or "")
    number = _find_number(error)
    name = getattr(cause, "sqlite_errorname", "")
    text = str(cause).lower()
    if state.startswith("28") or number in _DENIED or "authentication failed" in text:
        return Code.LOGIN_FAILED
    if state in {"57014", "55P03"} or number in _LATE or name in {"SQLITE_INTERRUPT", "SQLITE_BUSY", "SQLITE_LOCKED"}:
        return Code.TIMEOUT
    if "(timed out)" in text:
        # PyMySQL, of a server that sends no more.
        return Code.TIMEOUT
    is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if (
        is_lost
        or name.startswith(("SQLITE_CANTOPEN", "SQLITE_IOERR"))
        or state[:2] in {"08", "57"}
        or state == "53300"
        or number in _AWAY
    ):
        return Code.IO_ERROR
    if (
        not state
        and type(cause).__module__.startswith("psycopg")
        and type(cause).__name__ in {"OperationalError", "ConnectionTimeout"}
    ):
        # There is no answer with a state: of what a server says to nobody that it knows only the text is there.
        if "does not exist" in text:
            return Code.LOGIN_FAILED if 'role "' in text else SQL_ERROR
        return Code.IO_ERROR
    return SQL_ERROR


def _find_number(error: SQLAlchemyError) -> int:
    """The number that MariaDB and MySQL give an error."""
    arguments: tuple[Any, ...] = getattr(getattr(error, "orig", None), "args", ())
    return arguments[0] if arguments and isinstance(arguments[0], int) else 0


def _describe(error: SQLAlchemyError) -> str:
    """What the database says, on one line: no statement, no row, no password."""
    cause = getattr(error, "orig", None) or error
    text = getattr(getattr(cause, "diag", None), "message_primary", None)
    if not text:
        arguments: tuple[Any, ...] = getattr(cause, "args", ())
        # MariaDB and MySQL: a number and a text.
        text = arguments[1] if len(arguments) == 2 and isinstance(arguments[1], str) else str(cause)
    return to_one_line(redact(" ".join(str(text).split())))[:_MOST_CHARACTERS]


def _build_postgresql(url: URL, root: Path, seconds: float) -> tuple[URL, dict[str, Any]]:
    if url.get_driver_name() != "psycopg":
        return url, {}
    given = {"connect_timeout": _CONNECT_SECONDS, "application_name": "searchcrawl", "tcp_user_timeout": 30_000}
    return url, {name: value for name, value in given.items() if name not in url.query}


def _prepare_postgresql(connection: Any, record: Any, seconds: float) -> None:
    milliseconds = max(1, round(seconds * 1000))
    cursor = connection.cursor()
    for setting in (
        "default_transaction_read_only = on",
        f"statement_timeout = {milliseconds}",
        f"lock_timeout = {milliseconds}",
        f"idle_in_transaction_session_timeout = {10 * milliseconds}",
        "TimeZone = 'UTC'",
        "DateStyle = 'ISO'",
        "IntervalStyle = 'iso_8601'",
        "bytea_output = 'hex'",
        "jit = off",
    ):
        cursor.execute(f"SET SESSION {setting}")
    cursor.close()
    connection.commit()
    if type(connection).__module__.partition(".")[0] == "psycopg":
        _write_as_text(connection)


#: Types of PostgreSQL whose values Python may not have, or has with fewer digits.
_AS_TEXT: Final = (
    "date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb", "uuid", "inet", "cidr", "hstore",
    "daterange", "int4range", "int8range", "numrange", "tsrange", "tstzrange",
)  # fmt: skip


def _write_as_text(connection: Any) -> None:
    from psycopg.types.string import TextLoader  # noqa: PLC0415  # the driver is an extra

    for name in _AS_TEXT:
        if connection.adapters.types.get(name) is not None:
            connection.adapters.register_loader(name, TextLoader)


def _build_mysql(url: URL, root: Path, seconds: float) -> tuple[URL, dict[str, Any]]:
    if url.get_driver_name() != "pymysql":
        return url, {}
    from pymysql.constants import FIELD_TYPE  # noqa: PLC0415  # the driver is an extra
    from pymysql.converters import conversions  # noqa: PLC0415

    as_text = {
        FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE, FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP, FIELD_TYPE.TIME, FIELD_TYPE.YEAR
    }  # fmt: skip
    arguments = {
        "connect_timeout": _CONNECT_SECONDS,
        # The server is asked to end a little sooner.
        "read_timeout": seconds + _GRACE_SECONDS,
        "write_timeout": seconds + _GRACE_SECONDS,
        "charset": "utf8mb4",
        "conv": {kind: convert for kind, convert in conversions.items() if kind not in as_text},
    }
    return url, {name: value for name, value in arguments.items() if name not in url.query}


def _prepare_mysql(connection: Any, record: Any, seconds: float) -> None:
    whole = max(1, round(seconds))
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(f"SET SESSION lock_wait_timeout = {whole}, innodb_lock_wait_timeout = {whole}")
        cursor.execute("SET SESSION time_zone = '+00:00', net_write_timeout = 600")
        cursor.execute("SELECT VERSION()")
        is_mariadb = "mariadb" in str(cursor.fetchone()[0]).lower()
        cursor.execute(f"SET SESSION {_limit(seconds, is_mariadb=is_mariadb)}")
    connection.commit()


def _limit(seconds: float, *, is_mariadb: bool) -> str:
    """The variable of a session that limits its statements."""
    milliseconds = min(round(seconds * 1000), _MOST_MILLISECONDS)
    return f"max_statement_time = {seconds}" if is_mariadb else f"max_execution_time = {milliseconds}"


_DEADLINE: Final = "searchcrawl_deadline"
#: What a path keeps as it is in a URI of SQLite.
_OF_PATHS: Final = "/ +~!$&'()*,;:=@[]"


def _build_sqlite(url: URL, root: Path, seconds: float) -> tuple[URL, dict[str, Any]]:
    path = root / (url.database or "")
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        # SQLite says why it cannot be opened.
        is_file = True
    if not is_file:
        # Of a pipe it would wait for somebody who writes.
        raise DatabaseError(SQL_ERROR, f"{url.database} is no regular file")
    uri = URL.create("sqlite", database=f"file:{quote(str(path), safe=_OF_PATHS)}", query={"mode": "ro", "uri": "true"})
    return uri, {"timeout": seconds, "isolation_level": None, "check_same_thread": False}


def _prepare_sqlite(connection: Any, record: Any, seconds: float) -> None:
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA query_only = ON")
    deadline = record.info[_DEADLINE] = [clock.monotonic() + seconds]
    connection.set_progress_handler(lambda: clock.monotonic() > deadline[0], _STEPS)


def _build_other(url: URL, root: Path, seconds: float) -> tuple[URL, dict[str, Any]]:
    return url, {}


def _prepare_other(connection: Any, record: Any, seconds: float) -> None:
    """Says nothing: what such a database understands is not known."""


#: A transaction that was prepared for a commit of several databases began before that.
_OLDEST_OF_POSTGRESQL: Final = """
    SELECT extract(epoch FROM clock_timestamp() - min(began)) FROM (
        SELECT xact_start AS began FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()
    ) open_transactions
"""
_OLDEST_OF_MYSQL: Final = """
    SELECT TIMESTAMPDIFF(MICROSECOND, MIN(trx_started), NOW(6)) / 1000000 FROM information_schema.innodb_trx
    WHERE trx_mysql_thread_id <> CONNECTION_ID()
"""
_MYSQL: Final = Driver(
    _build_mysql, _prepare_mysql, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", _OLDEST_OF_MYSQL
)
_OTHER: Final = Driver(_build_other, _prepare_other)
_DRIVERS: Final = {
    "postgresql": Driver(_build_postgresql, _prepare_postgresql, oldest=_OLDEST_OF_POSTGRESQL),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite": Driver(_build_sqlite, _prepare_sqlite, "BEGIN"),
    "oracle": Driver(_build_other, _prepare_other, "SET TRANSACTION READ ONLY"),
}
