"""Brings a database to the newest revision with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from searchcrawl.exceptions import StoreNewer

_MIGRATIONS = Path(__file__).parent.parent / "migrations"


def configuration() -> Config:
    """Where the migrations are."""
    found = Config()
    found.set_main_option("script_location", str(_MIGRATIONS))
    return found


def newest() -> str | None:
    """The newest revision there is."""
    return ScriptDirectory.from_config(configuration()).get_current_head()


def migrate(connection: Connection, url: str) -> None:
    """Migrates within the open transaction; raises StoreNewer for a revision that nobody knows here."""
    settings = configuration()
    known = {script.revision for script in ScriptDirectory.from_config(settings).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise StoreNewer(
            f"store {url}: written by a newer release (revision {current}); use that release, or another store"
        )
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")
