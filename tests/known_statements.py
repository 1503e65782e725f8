"""The texts of SQL statements, worked out once for all stores of a process: each store would do it anew.

What a statement does is not changed: its text depends on the statement and the kind of database alone.
"""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import MethodType
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.ext import serializer

from searchcrawl.store.engine.dialect import Dialect
from searchcrawl.store.engine.sqlite_dialect import SqliteDialect
from searchcrawl.store.run_schema import ALL_TABLES


class _Texts:
    """What SQLAlchemy asks for the text of a statement; it belongs to one kind of database, not to one engine."""

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], Any] = {}

    def get(self, key: tuple[Any, ...]) -> Any:
        return self.found.get(key[1:])

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self.found[key[1:]] = compiled


class _Writer(serializer.Serializer):
    """Tables and columns by their names."""

    def reducer_override(self, value: object) -> Any:
        """Methods as Python does: Twisted has a way of its own for all, which fails for those of classes."""
        if isinstance(value, MethodType):
            return getattr, (value.__self__, value.__name__)
        return NotImplemented


_TEXTS: Final[dict[str, _Texts]] = {}
#: For each kind of database the statements that make its tables.
_OF_TABLES: Final[dict[str, list[str]]] = {}


def share(*dialects: type[Dialect]) -> None:
    """From now on all stores of this process share what was worked out for one of them."""
    for dialect in dialects:
        dialect.build_engine = _sharing(dialect.build_engine)  # type: ignore[method-assign]
    vars(ALL_TABLES)["create_all"] = _create_all


def dump() -> bytes:
    """The statements for SQLite that became known to this process; what cannot be written is left out."""
    written: list[bytes] = []
    for (_, names, _, several), compiled in _TEXTS["sqlite"].found.items():
        with contextlib.suppress(pickle.PicklingError):
            buffer = io.BytesIO()
            _Writer(buffer, pickle.HIGHEST_PROTOCOL).dump((compiled.statement, names, several))
            written.append(buffer.getvalue())
    return pickle.dumps(written)


def learn(dumped: bytes, folder: Path) -> None:
    """Works out what another process has dumped."""
    engine = SqliteDialect().build_engine(URL.create("sqlite", database="learned.db"), folder)
    texts = _TEXTS["sqlite"]
    # What the dialect finds out about the database is found out with the first connection.
    engine.connect().close()
    for written in pickle.loads(dumped):
        # Those of a table that is not ours are not there.
        with contextlib.suppress(KeyError):
            statement, names, several = serializer.loads(written, ALL_TABLES)
            statement._compile_w_cache(
                engine.dialect, compiled_cache=texts, column_keys=[*names], for_executemany=several
            )
    engine.dispose()


def _sharing(build: Callable[[Any, URL, Path], Engine]) -> Callable[[Any, URL, Path], Engine]:
    @wraps(build)
    def build_engine(self: Dialect, url: URL, root: Path) -> Engine:
        engine = build(self, url, root)
        return engine.execution_options(compiled_cache=_TEXTS.setdefault(engine.dialect.name, _Texts()))

    return build_engine


def _create_all(connection: Connection, *, checkfirst: bool) -> None:
    """As that of SQLAlchemy, whose texts it notes the first time."""
    kind = connection.dialect.name
    if kind in _OF_TABLES:
        for statement in _OF_TABLES[kind]:
            connection.exec_driver_sql(statement)
        return
    noted: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_others: object) -> None:
        noted.append(statement)

    event.listen(connection, "before_cursor_execute", note)
    type(ALL_TABLES).create_all(ALL_TABLES, connection, checkfirst=checkfirst)
    event.remove(connection, "before_cursor_execute", note)
    _OF_TABLES[kind] = noted
