"""Makes the tables of an empty database as they are today; without Alembic, which is slow to import."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert

from searchcrawl.failpoints import passing
from searchcrawl.store.schema import metadata

#: As Alembic makes it: later releases migrate from the revision that it names.
VERSIONS: Final = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def create(connection: Connection, revision: str) -> None:
    """Makes all tables, and names their revision, within the open transaction.

    Raises what the driver raises where a table of the same name is there: it is somebody else's.
    """
    if connection.dialect.name != "sqlite":
        _take_over_conditions(connection.dialect.name)
    metadata.create_all(connection, checkfirst=False)
    passing("migrate.mid")
    VERSIONS.create(connection, checkfirst=False)
    connection.execute(insert(VERSIONS).values(version_num=revision))


def _take_over_conditions(dialect: str) -> None:
    """Gives partial indexes the conditions that they have in SQLite; to declare both would load both dialects."""
    for table in metadata.tables.values():
        for index in table.indexes:
            condition = index.dialect_options["sqlite"]["where"]
            if condition is not None:
                index.dialect_options[dialect]["where"] = condition
