"""What ``sources check`` asks the database of a source: whether it lets in, and has what the source file names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from searchcrawl.codes import Code
from searchcrawl.kinds.table.config import TableTable
from searchcrawl.kinds.table.connecting import SQL_ERROR, DatabaseError, TableDatabase
from searchcrawl.kinds.table.statements import Columns, load_columns, select_without_key
from searchcrawl.listing.model import Finding
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

_BEGIN: Final = "table."


def find_wrong(source: Source, project: Project) -> Iterator[Finding]:
    """What is wrong with the table or query of a source; a database that is away is a doubt alone."""
    rows: TableTable = source.own
    try:
        database = TableDatabase(rows.url or "", project.root, statement_seconds=rows.statement_seconds)
    except DatabaseError as error:
        yield Finding("table.url", str(error))
        return
    with closing(database):
        try:
            yield from _ask(database, source)
        except DatabaseError as error:
            yield _describe(error, rows)


def _ask(database: TableDatabase, source: Source) -> Iterator[Finding]:
    rows: TableTable = source.own
    with database.connect() as connection:
        columns = load_columns(connection, rows)
        yield from _ask_attributes(columns, source)
        with closing(connection.execute(select_without_key(rows, columns))) as found:
            if found.first() is not None:
                yield Finding("table.key", "is null in a row: no such row can be told from others")


def _ask_attributes(columns: Columns, source: Source) -> Iterator[Finding]:
    """The columns of ``[attributes]``, which several sources may share: one that is not there has no values."""
    there = {name.lower() for name in columns.names}
    for origin, _ in source.attributes.mapped:
        if origin.kind == source.kind.values and origin.name not in there:
            key = f"attributes.{origin.kind}:{origin.name}"
            yield Finding(key, f"there is no column {origin.name} ({columns.describe()})", is_error=False)


def _describe(error: DatabaseError, rows: TableTable) -> Finding:
    text = str(error)
    if error.code == Code.LOGIN_FAILED:
        return Finding("table.url", f"the database lets nobody in with these credentials: {text}")
    if error.code != SQL_ERROR:
        return Finding("table.url", f"the database could not be asked: {text}", is_error=False)
    key, colon, message = text.partition(": ")
    if colon and key.startswith(_BEGIN):
        return Finding(key, message)
    return Finding("table.table" if rows.query is None else "table.query", f"the database refuses it: {text}")
