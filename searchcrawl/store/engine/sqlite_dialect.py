"""SQLite as the store: a file with one writer at a time, and readers beside it."""

from __future__ import annotations

import errno
import json
import os
import random
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    Select,
    bindparam,
    create_engine,
    event,
    func,
    select,
    true,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from searchcrawl import clock
from searchcrawl.durable import make_folder
from searchcrawl.exceptions import StoreAway, StoreError, StoreLocked
from searchcrawl.store.engine.dialect import Dialect
from searchcrawl.store.statements import unindexed

#: How long a connection waits for a lock; ``OutageRetry`` tries again after that.
_BUSY_TIMEOUT_SECONDS: Final = 5
#: The pause between two tries to have a log, each of which is quick.
_LOG_PAUSE_SECONDS: Final = 0.02
#: The most memory that the pages of the file take in the connection that writes, and in each of those that read.
_WRITER_KIB: Final = 32_000
_READER_KIB: Final = 8_000
#: SQLITE_BUSY, SQLITE_LOCKED and SQLITE_PROTOCOL (a race for the log's locks); extended codes are in the higher bytes.
_LOCKED: Final = frozenset({5, 6, 15})
#: SQLite opens a file by making another beside it; on a full disk it calls that an I/O error.
_NO_ROOM_FOR_SHARED_MEMORY: Final = "SQLITE_IOERR_SHMSIZE"
#: What SQLite says of its files, whatever the reason is.
_OF_FILES: Final = ("SQLITE_IOERR_", "SQLITE_CANTOPEN", "SQLITE_READONLY")


class SqliteDialect(Dialect):
    """An SQLite file, through the driver of Python."""

    insert = staticmethod(insert)

    def build_engine(self, url: URL, root: Path) -> Engine:
        """Makes the folder of the file as well. A connection with the option ``immediate`` begins with the write lock."""
        if url.database and url.database != ":memory:":
            path = root / url.database
            try:
                make_folder(path.parent)
            except OSError as error:
                raise StoreError(f"store {url.render_as_string()}: {error}") from error
            url = url.set(database=str(path))
        # The one that was used last, whose cache is warm; the others hold little.
        return _build_engine(url, cache_kib=_READER_KIB, pool_size=8, pool_use_lifo=True)

    def build_reader_and_writer(self, engine: Engine) -> tuple[Engine, Engine]:
        # What another connection writes empties the cache of a connection: all that is written goes through one of its own.
        writer = _build_engine(engine.url, cache_kib=_WRITER_KIB, pool_size=1, max_overflow=0)
        return engine, writer.execution_options(**engine.get_execution_options(), immediate=True)

    def find_folder(self, url: URL) -> Path | None:
        return Path(url.database).parent if url.database and url.database != ":memory:" else None

    def lock_creation(self, transaction: Connection) -> None:
        """Does nothing: a writing transaction has the file's write lock."""

    def read_clock_ms(self, transaction: Connection) -> int:
        return clock.now_ms()

    def find_transaction_number(self, transaction: Connection) -> str | None:
        return None

    def classify_error(self, error: DBAPIError) -> type[StoreError]:
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code is not None:
            return StoreLocked if code & 0xFF in _LOCKED else StoreError
        return StoreAway if error.connection_invalidated else StoreError

    def describe_error(self, cause: BaseException, url: URL | None) -> str:
        name = getattr(cause, "sqlite_errorname", "")
        if name == _NO_ROOM_FOR_SHARED_MEMORY:
            return f"no space left on its disk ({cause})"
        # Without its name a quota looks like a broken disk.
        reasons = [name] if name.startswith("SQLITE_IOERR_") else []
        if name.startswith(_OF_FILES) and url is not None and url.database:
            reasons += _find_refusal(Path(url.database))
        return f"{cause} ({': '.join(reasons)})" if reasons else str(cause)

    def is_among(self, column: Column[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """Passes numbers as one parameter: hundreds of them take SQLAlchemy longer than SQLite takes to find their rows."""
        if not isinstance(column.type, Integer):
            return super().is_among(column, values)
        each = func.json_each(bindparam(None, self.pack_numbers(values))).table_valued("value", name="each")
        return column.in_(select(each.c.value))

    def pick_of_each(self, wanted: str, pick: Callable[[ColumnElement[int]], Select[int]]) -> Select[int]:
        # It has no LATERAL; a subquery for one value may refer to the row outside.
        each = func.json_each(bindparam(wanted)).table_valued("value", name="each")
        picked = pick(each.c.value).correlate(each).subquery("picked")
        ids = select(func.json_group_array(picked.c[0])).scalar_subquery()
        many = select(ids.label("ids")).select_from(each).cte("many")
        one = func.json_each(many.c.ids).table_valued("value", name="one")
        return select(one.c.value).select_from(many).join(one, true())

    def pack_numbers(self, numbers: Sequence[int]) -> str:
        return json.dumps([*numbers])

    def contains_bytes(self, column: Column[bytes], part: bytes) -> ColumnElement[bool]:
        return func.instr(column, part) > 0

    def collate_by_code_points(self, column: Column[str]) -> ColumnElement[str]:
        return column.collate("BINARY")


DIALECT: Final = SqliteDialect()


@compiles(unindexed, "sqlite")
def _compile_without_index(element: unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"


def _find_refusal(path: Path) -> list[str]:
    """Why the files of a database cannot be made or written: a read-only disk, one with room for bytes alone, a user.

    They are not opened: to close one would free the locks that other connections of this process have on it.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            files = [path, *(path.with_name(f"{path.name}-{kind}") for kind in ("wal", "shm"))]
            refused = [each for each in files if each.exists() and not os.access(each, os.R_OK | os.W_OK)]
    except OSError as error:
        return [error.strerror or str(error)]
    return [f"{refused[0].name}: {os.strerror(errno.EACCES)}"] if refused else []


def _build_engine(url: URL, *, cache_kib: int, **pool: Any) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "isolation_level": None, "check_same_thread": False},
        # Error messages must not quote the text of pages.
        hide_parameters=True,
        **pool,
    )
    event.listen(engine, "connect", partial(_configure, cache_kib=cache_kib))
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: Any, _record: object, *, cache_kib: int) -> None:
    cursor = connection.cursor()
    _keep_log(cursor)
    # FULL: a commit is on the disk before anything follows from it, such as a request, a delivery or a deleted file.
    cursor.execute("PRAGMA synchronous = FULL")
    # At 32 MB of log instead of 4: pages that many groups change are copied once, which halves the bytes written.
    cursor.execute("PRAGMA wal_autocheckpoint = 8000")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute(f"PRAGMA cache_size = -{cache_kib}")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.close()


def _keep_log(cursor: Any) -> None:
    """Has the file keep a log (WAL), in which readers and a writer do not wait for each other.

    Where another process is about to do the same with a new file, SQLite refuses at once, whatever the time-out is.
    """
    give_up = clock.monotonic() + _BUSY_TIMEOUT_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _LOCKED or clock.monotonic() >= give_up:
                raise
            # Random, so that processes that refused each other do not meet again.
            threading.Event().wait(random.uniform(0.5, 1.0) * _LOG_PAUSE_SECONDS)  # noqa: S311  # no secret
        else:
            return


def _begin(connection: Connection) -> None:
    # The driver's implicit transactions start too late to be safe.
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
