"""The migrations make the tables that the code expects; older stores become today's, newer ones are refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from searchcrawl.exceptions import StoreError, StoreNewer
from searchcrawl.store.all_tables import ALL_TABLES
from searchcrawl.store.engine.database import Database
from searchcrawl.store.engine.migration import HEAD, configure_alembic, migrate
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import DocumentState
from searchcrawl.store.urls import suspect_table
from tests.older_store import copy_to_older, opened, revision_of, tables_of
from tests.postgres_server import PASSWORD, RunningPostgres
from tests.site.client import ROOT
from tests.unit.store.support_store import SOURCE, add, claim, document, row, settle, store

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


@pytest.fixture
def other_empty_url(empty_store_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A second empty store of the same kind; only one of PostgreSQL needs a server."""
    if empty_store_url.startswith("sqlite"):
        yield "sqlite:///var/other.db"
        return
    server: RunningPostgres = request.getfixturevalue("postgres")
    name = f"other_{uuid.uuid4().hex[:12]}"
    yield server.create_database(name)
    server.drop_database(name)


@contextmanager
def migrated_from_nothing(url: str, root: Path) -> Iterator[Connection]:
    """A transaction in a store that all migrations have made, one after the other."""
    with opened(url, root) as connection:
        migrate(connection, url)
        yield connection


def shape_of(connection: Connection) -> dict[str, Any]:
    """All of the tables but the order of their columns."""
    seen = inspect(connection)
    indexes = "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    if connection.dialect.name == "postgresql":
        indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
    # The inspector does not tell which tables never give a number away twice.
    numbered = "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'"
    if connection.dialect.name == "postgresql":
        numbered = "SELECT relname FROM pg_class WHERE relkind = 'S'"
    return {
        "numbered": sorted(connection.execute(text(numbered)).scalars()),
        "indexes": sorted(connection.execute(text(indexes)).scalars()),
        "tables": {
            table: {
                "columns": {
                    column["name"]: (str(column["type"]), column["nullable"], column["default"])
                    for column in seen.get_columns(table)
                },
                "primary": seen.get_pk_constraint(table),
                "unique": seen.get_unique_constraints(table),
                "foreign": seen.get_foreign_keys(table),
            }
            for table in seen.get_table_names()
        },
    }


@pytest.fixture
def older(tmp_path: Path, empty_store_url: str) -> str:
    """The URL of a store of revision 0001: two fetched pages, one to do, one in hand; two refused since (961, 955)."""
    newer = "sqlite:///var/newer.db"
    with closing(Database(newer, tmp_path)) as database:
        with database.write_once() as transaction:
            run_table.find_or_add_source(transaction, "demo")
        ids = add(database, ["a", "b", "c", "d"])
        settle(database, ids[:2])
        store(database, ids[:2])
        assert claim(database, limit=1) == [ids[2]]
        refused = add(database, ["limited", "outside"])
        store(database, refused)
        for url_id, code in zip(refused, (961, 955), strict=True):
            settle(database, [url_id], code=code, due_ms=None)
    copy_to_older(newer, empty_store_url, tmp_path, "0001")
    return empty_store_url


def test_head_when_it_is_named_without_alembic_then_it_is_the_newest() -> None:
    scripts = ScriptDirectory.from_config(configure_alembic())
    # Two that were made at the same time have the same number: one of them would never run.
    assert len(list(scripts.walk_revisions())) == len([*Path(scripts.versions).glob("*.py")])
    assert scripts.get_current_head() == HEAD


def test_migrations_when_run_then_they_equal_the_tables_of_the_code(empty_store_url: str, tmp_path: Path) -> None:
    with migrated_from_nothing(empty_store_url, tmp_path) as transaction:
        context = MigrationContext.configure(transaction, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, ALL_TABLES)

    assert differences == []


def test_empty_store_when_opened_then_it_is_made_as_the_migrations_make_it(
    empty_store_url: str, other_empty_url: str, tmp_path: Path
) -> None:
    Database(other_empty_url, tmp_path).close()

    with migrated_from_nothing(empty_store_url, tmp_path) as transaction:
        by_migrations = shape_of(transaction)
    with opened(other_empty_url, tmp_path) as connection:
        at_once = shape_of(connection)

    assert at_once == by_migrations
    assert revision_of(other_empty_url, tmp_path) == revision_of(empty_store_url, tmp_path) == HEAD


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


def test_older_store_when_opened_then_its_rows_are_there_and_work_goes_on(older: str, tmp_path: Path) -> None:
    assert revision_of(older, tmp_path) == "0001"

    with closing(Database(older, tmp_path)) as database:
        with database.write_once() as transaction:
            recovered = suspect_table.recover(transaction, SOURCE, stalled=False).claims
        fresh = add(database, ["e"])
        claimed = claim(database)

        assert [document(database, url_id).body_digest for url_id in (1, 2)] == [b"body 1", b"body 2"]
        assert (row(database, 1).sitemap_id, document(database, 1).canonical_key) == (None, None)
        assert document(database, 1).copy_digest == document(database, 1).fields_digest
    # The document beyond a limit on traps was never visited again.
    assert (recovered, fresh, claimed) == (1, [7], [3, 4, 7, 5, 1, 2])
    assert revision_of(older, tmp_path) == HEAD


def test_older_store_when_the_process_dies_in_the_middle_of_the_migration_then_it_is_as_before(
    older: str, tmp_path: Path
) -> None:
    before = tables_of(older, tmp_path)

    died = start_opening(older, tmp_path, SEARCHCRAWL_FAILPOINT="migrate.mid")
    died.communicate(timeout=60)
    between = tables_of(older, tmp_path)
    revision = revision_of(older, tmp_path)
    again = start_opening(older, tmp_path)
    said, _ = again.communicate(timeout=60)

    assert (died.returncode, between, revision) == (-9, before, "0001")
    assert (again.returncode, said, revision_of(older, tmp_path)) == (0, "", HEAD)
    with closing(Database(older, tmp_path)) as database:
        assert document(database, 2).body_digest == b"body 2"


def test_empty_store_when_the_process_dies_in_the_middle_of_its_first_start_then_the_next_makes_it(
    empty_store_url: str, tmp_path: Path
) -> None:
    died = start_opening(empty_store_url, tmp_path, SEARCHCRAWL_FAILPOINT="migrate.mid")
    died.communicate(timeout=60)
    between = tables_of(empty_store_url, tmp_path)
    again = start_opening(empty_store_url, tmp_path)
    again.communicate(timeout=60)

    assert (died.returncode, between) == (-9, {})
    assert (again.returncode, revision_of(empty_store_url, tmp_path)) == (0, HEAD)


def test_older_store_when_processes_open_it_at_once_then_one_migrates_and_all_are_well(
    older: str, tmp_path: Path
) -> None:
    said = open_at_once(older, tmp_path, processes=4)

    assert said == "[0, 0, 0, 0]\n"
    assert revision_of(older, tmp_path) == HEAD


def test_empty_store_when_processes_open_it_at_once_then_one_makes_the_tables(
    empty_store_url: str, tmp_path: Path
) -> None:
    said = open_at_once(empty_store_url, tmp_path, processes=4)

    assert said == "[0, 0, 0, 0]\n"
    assert revision_of(empty_store_url, tmp_path) == HEAD


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

    assert revision_of(URL, tmp_path) == HEAD


def test_store_when_written_by_a_newer_release_then_refused_and_untouched(empty_store_url: str, tmp_path: Path) -> None:
    Database(empty_store_url, tmp_path).close()
    with opened(empty_store_url, tmp_path) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    before = tables_of(empty_store_url, tmp_path)

    with pytest.raises(StoreNewer, match="newer release") as caught:
        Database(empty_store_url, tmp_path)

    assert PASSWORD not in str(caught.value)
    assert revision_of(empty_store_url, tmp_path) == "9999"
    assert tables_of(empty_store_url, tmp_path) == before


def test_store_when_the_file_is_no_database_then_a_store_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var/store.db").write_bytes(b"this is no database" * 100)

    with pytest.raises(StoreError, match=r"var/store\.db"):
        Database(URL, tmp_path)


def test_write_when_the_block_raises_then_nothing_is_written(empty_store_url: str, tmp_path: Path) -> None:
    with closing(Database(empty_store_url, tmp_path)) as database:
        with pytest.raises(StoreError):
            _write_twice(database)
        with database.read_once() as transaction:
            names = run_table.find_source_names(transaction)

    assert names == {}


def _write_twice(database: Database) -> None:
    with database.write_once() as transaction:
        for _ in range(2):
            transaction.execute(text("INSERT INTO sources (name) VALUES ('demo')"))


def test_older_store_when_pages_came_by_redirects_then_their_documents_say_so(
    empty_store_url: str, tmp_path: Path
) -> None:
    newer, hops = "sqlite:///var/newer.db", '[{"url":"http://a.test:80/b","code":302}]'
    with closing(Database(newer, tmp_path)) as database:
        with database.write_once() as transaction:
            run_table.find_or_add_source(transaction, "demo")
        ids = add(database, ["direct", "redirected", "copy", "failed"])
        store(database, ids)
        for url_id, code, redirects in zip(ids, (200, 200, 909, 503), (None, hops, hops, hops), strict=True):
            settle(database, [url_id], code=code, redirects=redirects)
    copy_to_older(newer, empty_store_url, tmp_path, "0015")

    with closing(Database(empty_store_url, tmp_path)) as database:
        # To which URL is not known; and what a failed visit was led to says nothing of the document.
        assert [document(database, url_id).answered_key for url_id in ids] == [None, 0, 0, None]


def test_older_store_when_near_copies_were_taken_out_then_unknown_digests_are_made_again_and_all_documents_stay(
    empty_store_url: str, tmp_path: Path
) -> None:
    newer = "sqlite:///var/newer.db"
    with closing(Database(newer, tmp_path)) as database:
        with database.write_once() as transaction:
            run_table.find_or_add_source(transaction, "demo")
            run_table.find_or_add_source(transaction, "other")
        ids = survivor, copy, plain, other = add(database, ["survivor", "copy", "plain", "other"])
        settle(database, ids)
        store(database, [survivor], body=b"one", fields_digest=b"one")
        # What stands for it may be another text, or its own without menus.
        store(database, [copy], body=b"one", fields_digest=b"two", code=909)
        store(database, [plain], body=b"three", fields_digest=b"three")
        store(database, [other], body=b"four", fields_digest=b"four and menus")
        with database.write_once() as transaction:
            transaction.execute(text(f"UPDATE documents SET duplicate_of = {survivor} WHERE url_id = {copy}"))
            transaction.execute(text(f"UPDATE documents SET near_signature = '1' WHERE url_id <> {other}"))
            # Of which near copies were never taken out.
            transaction.execute(text(f"UPDATE documents SET source_id = 2 WHERE url_id = {other}"))
    copy_to_older(newer, empty_store_url, tmp_path, "0020")

    with closing(Database(empty_store_url, tmp_path)) as database:
        found = [document(database, url_id) for url_id in ids]

    assert [each.copy_digest for each in found] == [b"one", None, b"three", b"four"]
    assert [each.body_digest for each in found] == [b"one", None, b"three", b"four"]
    assert [each.etag for each in found] == ['"1"', None, '"1"', '"1"']
    assert [(each.code, each.duplicate_of) for each in found[:2]] == [(200, None), (909, survivor)]
    assert {(each.state, each.segment, each.near_digest) for each in found} == {(int(DocumentState.CACHED), 1, None)}


def test_older_store_when_pages_were_refused_as_those_of_a_trap_then_they_are_visited(
    empty_store_url: str, tmp_path: Path
) -> None:
    newer = "sqlite:///var/newer.db"
    with closing(Database(newer, tmp_path)) as database:
        with database.write_once() as transaction:
            run_table.find_or_add_source(transaction, "demo")
        ids = add(database, ["trap", "limit", "fine"])
        rules = ("scope.trap_after: http://a.test/**", "scope.max_path_segments: 16", None)
        for url_id, code, rule in zip(ids, (961, 961, 200), rules, strict=True):
            settle(database, [url_id], code=code, rule=rule)
        with database.write_once() as transaction:
            transaction.execute(text("UPDATE urls SET due_ms = NULL"))
    copy_to_older(newer, empty_store_url, tmp_path, "0031")

    with closing(Database(empty_store_url, tmp_path)) as database, database.read_once() as transaction:
        due = transaction.execute(text("SELECT due_ms FROM urls ORDER BY id")).scalars().all()

    assert due == [0, None, None]
