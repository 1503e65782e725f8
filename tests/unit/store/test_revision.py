"""An empty store gets its tables, whoever opens it; one of another revision is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, make_url, text

from searchcrawl.exceptions import OtherRevision, StoreError
from searchcrawl.store.engine.database import REVISION, Database, find_revision
from searchcrawl.store.engine.dialect import load_dialect
from searchcrawl.store.run_schema import ALL_TABLES
from searchcrawl.store.runs import run_table
from tests.postgres_server import PASSWORD
from tests.site.client import ROOT
from tests.unit.store.support_store import SOURCE

URL = "sqlite:///var/store.db"
#: Opens a store as a process of its own.
_OPEN = """
import sys
from pathlib import Path
from searchcrawl.store.engine.database import Database
Database(sys.argv[1], Path(sys.argv[2])).close()
"""
#: The same for so many processes at the same moment: their codes.
_OPEN_AT_ONCE = """
import os, sys, traceback
from pathlib import Path
from searchcrawl.store.engine.database import Database
def fork():
    pid = os.fork()
    if pid == 0:
        try:
            Database(sys.argv[1], Path(sys.argv[2])).close()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid
pids = [fork() for _ in range(int(sys.argv[3]))]
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""


@contextmanager
def opened(url: str, root: Path) -> Iterator[Connection]:
    """A transaction in a database as it is."""
    parsed = make_url(url)
    engine = load_dialect(parsed).build_engine(parsed, root)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def revision_of(url: str, root: Path) -> int | None:
    """The revision of a store; None for an empty one."""
    with opened(url, root) as connection:
        return find_revision(connection)


def tables_of(url: str, root: Path) -> dict[str, set[str]]:
    """Columns and indexes by table, as the database has them."""
    with opened(url, root) as connection:
        found = inspect(connection)
        return {
            name: {column["name"] for column in found.get_columns(name)}
            | {str(index["name"]) for index in found.get_indexes(name)}
            for name in found.get_table_names()
        }


def open_at_once(url: str, root: Path, *, processes: int) -> str:
    """Codes of processes that open the store at the same moment, and what they said."""
    command = [sys.executable, "-c", _OPEN_AT_ONCE, url, str(root), str(processes)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    ended = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    return ended.stdout


def start_opening(url: str, root: Path, **variables: str) -> subprocess.Popen[str]:
    """A process that opens the store and ends."""
    return subprocess.Popen(
        [sys.executable, "-c", _OPEN, url, str(root)],
        env={"PYTHONPATH": str(ROOT), "PATH": "", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_store_when_it_has_tables_of_somebody_else_then_a_store_error_says_so_and_they_stay(
    empty_store_url: str, tmp_path: Path
) -> None:
    with opened(empty_store_url, tmp_path) as connection:
        connection.execute(text("CREATE TABLE urls (ours integer)"))

    with pytest.raises(StoreError, match="urls"):
        Database(empty_store_url, tmp_path)

    assert list(tables_of(empty_store_url, tmp_path)) == ["urls"]


def test_indexes_when_they_are_partial_then_both_stores_have_them_so(tmp_path: Path, empty_postgres_url: str) -> None:
    partial = {index.name for table in ALL_TABLES.tables.values() for index in table.indexes if index.dialect_kwargs}
    for url in (URL, empty_postgres_url):
        Database(url, tmp_path).close()

    with opened(URL, tmp_path) as connection:
        in_file = connection.execute(
            text("SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%WHERE%'")
        ).scalars()
        found = [set(in_file)]
    with opened(empty_postgres_url, tmp_path) as connection:
        in_server = connection.execute(text("SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%WHERE%'")).scalars()
        found.append(set(in_server))

    assert found == [partial, partial]


def test_store_when_opened_again_then_its_rows_are_still_there(empty_store_url: str, tmp_path: Path) -> None:
    with closing(Database(empty_store_url, tmp_path)) as database, database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")

    with closing(Database(empty_store_url, tmp_path)) as database, database.read_once() as transaction:
        names = run_table.find_source_names(transaction)

    assert names == {SOURCE: "demo"}


def test_empty_store_when_the_process_dies_in_the_middle_of_its_first_start_then_the_next_makes_it(
    empty_store_url: str, tmp_path: Path
) -> None:
    died = start_opening(empty_store_url, tmp_path, SEARCHCRAWL_FAILPOINT="tables.mid")
    died.communicate(timeout=60)
    between = tables_of(empty_store_url, tmp_path)
    again = start_opening(empty_store_url, tmp_path)
    again.communicate(timeout=60)

    assert (died.returncode, between) == (-9, {})
    assert (again.returncode, revision_of(empty_store_url, tmp_path)) == (0, REVISION)


def test_empty_store_when_processes_open_it_at_once_then_one_makes_the_tables(
    empty_store_url: str, tmp_path: Path
) -> None:
    said = open_at_once(empty_store_url, tmp_path, processes=4)

    assert said == "[0, 0, 0, 0]\n"
    assert revision_of(empty_store_url, tmp_path) == REVISION


@pytest.mark.parametrize("lock", ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_empty_file_when_another_process_is_about_to_make_it_a_store_then_it_is_waited_for(
    lock: str, tmp_path: Path
) -> None:
    (tmp_path / "var").mkdir()
    with closing(sqlite3.connect(tmp_path / "var/store.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute(lock)
        other.execute("SELECT * FROM sqlite_master").fetchall()
        ends = threading.Timer(0.5, other.execute, ["COMMIT"])
        ends.start()

        Database(URL, tmp_path).close()
        ends.join()

    assert revision_of(URL, tmp_path) == REVISION


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["UPDATE revision SET number = 9999"], "written by a newer release \\(revision 9999\\)"),
        (["UPDATE revision SET number = 1"], "written by an older release \\(revision 1, "),
        # Where revisions before 37 have theirs.
        (
            [
                "DROP TABLE revision",
                "CREATE TABLE alembic_version (version_num varchar(32) NOT NULL)",
                "INSERT INTO alembic_version VALUES ('0036')",
            ],
            "written by an older release \\(revision 36, .* set store.url to another store",
        ),
    ],
    ids=["newer", "older", "before-37"],
)
def test_store_when_of_another_revision_then_one_line_says_so_and_it_is_untouched(
    change: list[str], said: str, empty_store_url: str, tmp_path: Path
) -> None:
    Database(empty_store_url, tmp_path).close()
    with opened(empty_store_url, tmp_path) as connection:
        for statement in change:
            connection.execute(text(statement))
    before = tables_of(empty_store_url, tmp_path)

    with pytest.raises(OtherRevision, match=said) as caught:
        Database(empty_store_url, tmp_path)

    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert tables_of(empty_store_url, tmp_path) == before


def test_write_when_a_row_is_refused_then_nothing_is_written_and_nothing_of_it_is_shown(
    empty_store_url: str, tmp_path: Path
) -> None:
    with closing(Database(empty_store_url, tmp_path)) as database:
        with pytest.raises(StoreError, match=r"(?i)unique constraint") as caught:
            _write_twice(database, "text of a page")
        names = database.read(run_table.find_source_names)

    assert names == {}
    assert "text of a page" not in str(caught.value)


def _write_twice(database: Database, name: str) -> None:
    with database.write_once() as transaction:
        for _ in range(2):
            transaction.execute(text("INSERT INTO sources (name) VALUES (:name)"), {"name": name})
