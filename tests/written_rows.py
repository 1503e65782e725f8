"""Counts the rows that are written to a store, by triggers of its database: past the code under test."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from tests.stored_rows import execute, is_file, query

_TABLES: Final = {
    True: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    False: "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
}
_WRITES: Final = ("INSERT", "UPDATE", "DELETE")
_NOTE: Final = (
    "CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO written VALUES (TG_TABLE_NAME); RETURN NULL; END $$"
)


def watch_writes(folder: Path) -> None:
    """From now on each row that is written to the store of a project is counted, whoever writes it."""
    tables = [name for (name,) in query(folder, _TABLES[is_file(folder)])]
    execute(folder, "CREATE TABLE written (name TEXT NOT NULL)")
    if not is_file(folder):
        execute(folder, _NOTE)
    for table in tables:
        for write in _WRITES:
            name = f"{write}_{table}".lower()
            does = (
                f"BEGIN INSERT INTO written VALUES ('{table}'); END"
                if is_file(folder)
                else "EXECUTE FUNCTION note_write()"
            )
            execute(folder, f"CREATE TRIGGER {name} AFTER {write} ON {table} FOR EACH ROW {does}")


def count_writes(folder: Path) -> Counter[str]:
    """How many rows of each table were written since."""
    return Counter(name for (name,) in query(folder, "SELECT name FROM written"))
