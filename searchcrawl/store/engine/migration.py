"""Makes the tables of an empty database, and brings an older database to the newest revision.

Alembic is slow to import, so only an older database loads it; an empty one gets the tables as they are today.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from searchcrawl.exceptions import StoreNewer
from searchcrawl.failpoints import reach
from searchcrawl.store.all_tables import ALL_TABLES
from searchcrawl.store.views import create_views, drop_views

if TYPE_CHECKING:
    from alembic.config import Config

#: The newest revision in migrations/versions.
HEAD: Final = "0036"
_MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"
#: The table in which Alembic keeps the revision, as Alembic makes it: later releases migrate from there.
VERSIONS: Final = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def find_revision(connection: Connection) -> str | None:
    """The revision of a database; None for an empty one."""
    if not inspect(connection).has_table(VERSIONS.name):
        return None
    revision: str | None = connection.execute(select(VERSIONS.c.version_num)).scalar()
    return revision


def create_tables(connection: Connection) -> None:
    """Makes all tables and notes their revision, within the open transaction.

    Raises the driver's error where the database has a table of the same name: another program made it.
    """
    _copy_index_conditions(connection.dialect.name)
    ALL_TABLES.create_all(connection, checkfirst=False)
    create_views(connection)
    reach("migrate.mid")
    VERSIONS.create(connection, checkfirst=False)
    connection.execute(insert(VERSIONS).values(version_num=HEAD))


def migrate(connection: Connection, url: str) -> None:
    """Migrates within the open transaction; raises StoreNewer for a revision that this release does not know."""
    from alembic import command  # noqa: PLC0415  # slow to import, and seldom needed
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # the same

    settings = configure_alembic()
    known = {script.revision for script in ScriptDirectory.from_config(settings).walk_revisions()}
    current = find_revision(connection)
    if current is not None and current not in known:
        raise StoreNewer(
            f"store {url}: written by a newer release (revision {current}); use that release, or another store"
        )
    settings.attributes["connection"] = connection
    drop_views(connection)
    command.upgrade(settings, "head")
    create_views(connection)


def configure_alembic() -> Config:
    """The configuration of Alembic: where the migrations are."""
    from alembic.config import Config  # noqa: PLC0415  # slow to import, and seldom needed

    found = Config()
    found.set_main_option("script_location", str(_MIGRATIONS))
    return found


def _copy_index_conditions(dialect: str) -> None:
    """Gives partial indexes the conditions that they have in SQLite; to declare them for all would load all dialects."""
    for table in ALL_TABLES.tables.values():
        for index in table.indexes:
            condition = index.dialect_options["sqlite"]["where"]
            if condition is not None:
                index.dialect_options[dialect]["where"] = condition
