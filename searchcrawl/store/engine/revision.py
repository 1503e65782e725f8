"""Makes the tables of an empty database, and refuses a database whose tables are of another revision."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, insert, inspect, select

from searchcrawl.exceptions import OtherRevision
from searchcrawl.failpoints import reach
from searchcrawl.store.all_tables import ALL_TABLES
from searchcrawl.store.views import create_views

#: The revision of tables and views: to be raised by whoever changes one of them.
REVISION: Final = 39
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
