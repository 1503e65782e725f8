"""Stores as earlier releases left them: the real tables of an old revision, with the rows of a real store in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from sqlalchemy import Connection, MetaData, Table, func, inspect, make_url, select, text

from searchcrawl.store.engine.dialect import load_dialect
from searchcrawl.store.engine.migration import configure_alembic


@contextmanager
def opened(url: str, root: Path) -> Iterator[Connection]:
    """A transaction in a store as it is: nothing is migrated."""
    parsed = make_url(url)
    engine = load_dialect(parsed).build_engine(parsed, root)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def make_tables(connection: Connection, revision: str) -> None:
    """Makes the tables of a revision in an empty database."""
    settings = configure_alembic()
    settings.attributes["connection"] = connection
    command.upgrade(settings, revision)


def copy_to_older(newer: str, older: str, root: Path, revision: str) -> None:
    """Makes ``older``, which is empty, a store of a revision with the rows of ``newer``, as far as it has columns."""
    with opened(newer, root) as source, opened(older, root) as target:
        make_tables(target, revision)
        tables = MetaData()
        tables.reflect(target)
        present = MetaData()
        present.reflect(source)
        for table in tables.sorted_tables:
            if table.name != "alembic_version":
                _copy(source, target, present.tables[table.name], table)


def _copy(source: Connection, target: Connection, newer: Table, older: Table) -> None:
    # What no later revision has stays as new rows have it.
    rows = source.execute(select(*(newer.c[column.name] for column in older.c if column.name in newer.c))).mappings()
    values = [dict(row) for row in rows]
    if values:
        target.execute(older.insert(), values)
    if target.dialect.name == "postgresql" and "id" in older.c:
        last = target.execute(select(func.max(older.c.id))).scalar() or 1
        target.execute(
            text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"), {"name": older.name, "last": last}
        )


def revision_of(url: str, root: Path) -> str | None:
    """The revision of a store; None for an empty one."""
    with opened(url, root) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return found


def tables_of(url: str, root: Path) -> dict[str, set[str]]:
    """Columns and indexes by table, as the database has them."""
    with opened(url, root) as connection:
        found = inspect(connection)
        return {
            name: {column["name"] for column in found.get_columns(name)}
            | {str(index["name"]) for index in found.get_indexes(name)}
            for name in found.get_table_names()
        }
