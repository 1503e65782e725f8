"""Counts what a piece of work asks of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

from searchcrawl.store.documents import duplicate_key_table as keys
from searchcrawl.store.engine.database import Database

#: Rows that each question to the table of documents was answered with.
READ: list[tuple[str, int]] = []


def find_engines(database: Database) -> list[Engine]:
    """Those that have all connections of a store: where what writes has its own, two."""
    return list({each.pool: each for each in (database._writer, database._reader, database._engine)}.values())


@contextmanager
def statements(database: Database, *containing: str) -> Iterator[list[str]]:
    """The statements that were executed meanwhile, those with one of these texts; READ counts the members read."""
    found: list[str] = []
    READ.clear()
    engines = find_engines(database)
    original = keys.KeyedDocument._make

    def noted(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not containing or any(one in statement for one in containing):
            found.append(statement)

    def make(row: Any) -> Any:
        READ.append(("member", 1))
        return original(row)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", noted)
    keys.KeyedDocument._make = make  # type: ignore[method-assign]  # counts what is read
    try:
        yield found
    finally:
        keys.KeyedDocument._make = original  # type: ignore[method-assign]
        for engine in engines:
            event.remove(engine, "before_cursor_execute", noted)
