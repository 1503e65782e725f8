"""Which errors of a store are waited out, and that what is repeated is done once (X-S4, X-S5, X-S9)."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, text, update

from searchcrawl.exceptions import StoreAway, StoreError, StoreLocked
from searchcrawl.store.engine import sqlite_dialect
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.schema import sources
from tests.postgres_server import PASSWORD, USER, RunningPostgres
from tests.solr_server import free_port
from tests.store_outages import CuttableProxy

FILE = "sqlite:///store.db"


@pytest.fixture
def proxy(postgres: RunningPostgres) -> Iterator[CuttableProxy]:
    with CuttableProxy(postgres.folder / ".s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def behind_proxy(empty_postgres_url: str, proxy: CuttableProxy, tmp_path: Path) -> Iterator[Database]:
    """A store that can be cut off."""
    name = empty_postgres_url.partition("@/")[2].partition("?")[0]
    url = f"postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}/{name}"
    with closing(Database(url, tmp_path, patience_seconds=60)) as database:
        yield database


def renamed(transaction: Transaction) -> int:
    """Changes a row in a way that shows how often it was done."""
    longer = update(sources).values(name=sources.c.name + "+")
    return transaction.execute(longer).rowcount


def name_of_source(database: Database) -> str:
    return str(database.read(lambda transaction: transaction.execute(select(sources.c.name)).scalar()))


def test_write_when_another_process_holds_the_file_then_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_dialect, "_BUSY_TIMEOUT_SECONDS", 0)
    with closing(Database(FILE, tmp_path)) as database, closing(sqlite3.connect(tmp_path / "store.db")) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreLocked, match=r"store\.db: database is locked"), database.write_once():
            pass
        assert database.read(lambda transaction: transaction.execute(text("SELECT 1")).scalar()) == 1


def test_open_when_nobody_listens_then_one_line_says_so_at_once_and_without_the_password(tmp_path: Path) -> None:
    nowhere = f"postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{free_port()}/store"

    with pytest.raises(StoreAway, match=rf"store postgresql\+psycopg://{USER}:\*\*\*@127") as away:
        Database(nowhere, tmp_path, patience_seconds=600)

    assert "Connection refused Is the server running" in str(away.value)
    assert "\n" not in str(away.value)
    assert PASSWORD not in str(away.value)


def test_open_when_the_file_is_no_database_then_it_is_named_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database" * 1000)

    with pytest.raises(StoreError, match=r"store\.db.*not a database") as caught:
        Database(FILE, tmp_path, patience_seconds=600)

    assert not isinstance(caught.value, StoreAway)


def test_transact_when_a_table_is_missing_then_it_is_not_waited_for(store_url: str, tmp_path: Path) -> None:
    with (
        closing(Database(store_url, tmp_path, patience_seconds=600)) as database,
        pytest.raises(StoreError) as caught,
    ):
        database.write(lambda transaction: transaction.execute(text("SELECT * FROM nothing")))

    assert not isinstance(caught.value, StoreAway)


def test_transact_when_it_has_to_be_repeated_then_nothing_of_the_first_try_is_left(
    store_url: str, tmp_path: Path
) -> None:
    tries = 0

    def work(transaction: Transaction) -> int:
        nonlocal tries
        tries += 1
        renamed(transaction)
        if tries < 3:
            raise StoreAway("gone")
        return tries

    with closing(Database(store_url, tmp_path, patience_seconds=60)) as database:
        database.write(lambda transaction: transaction.execute(sources.insert().values(name="demo")))

        assert database.write(work) == 3
        assert name_of_source(database) == "demo+"


@pytest.mark.parametrize("delivers", [True, False])
def test_transact_when_nobody_knows_whether_it_was_committed_then_it_is_done_once(
    behind_proxy: Database, proxy: CuttableProxy, delivers: bool
) -> None:
    behind_proxy.write(lambda transaction: transaction.execute(sources.insert().values(name="demo")))

    proxy.cut_at_commit(1, delivers=delivers)
    back = threading.Thread(target=lambda: (proxy.commit_was_cut.wait(30), proxy.restore()))
    back.start()
    changed = behind_proxy.write(renamed)
    back.join()

    assert proxy.commit_was_cut.is_set()
    assert changed == 1
    assert name_of_source(behind_proxy) == "demo+"


def test_transact_when_the_server_ends_the_connection_then_it_is_repeated(
    behind_proxy: Database, postgres: RunningPostgres
) -> None:
    behind_proxy.write(lambda transaction: transaction.execute(sources.insert().values(name="demo")))
    ended = 0

    def work(transaction: Transaction) -> int:
        nonlocal ended
        changed = renamed(transaction)
        if ended < 2:
            ended += 1
            number = transaction.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with postgres.connect() as other:
                other.execute("SELECT pg_terminate_backend(%s)", [number])
            transaction.execute(text("SELECT 1"))
        return changed

    assert behind_proxy.write(work) == 1
    assert name_of_source(behind_proxy) == "demo+"


def test_transact_when_the_server_lets_nobody_write_for_a_while_then_it_is_repeated_on_a_new_connection(
    empty_postgres_url: str, postgres: RunningPostgres, tmp_path: Path
) -> None:
    name = empty_postgres_url.partition("@/")[2].partition("?")[0]
    with closing(Database(empty_postgres_url, tmp_path, patience_seconds=60)) as database, postgres.connect() as other:
        database.write(lambda transaction: transaction.execute(sources.insert().values(name="demo")))
        other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

        back = threading.Timer(1, other.execute, [f"ALTER DATABASE {name} RESET default_transaction_read_only"])
        back.start()
        changed = database.write(renamed)
        back.join()

        assert changed == 1
        assert name_of_source(database) == "demo+"


def test_transact_when_the_server_lets_nobody_write_for_long_then_away(empty_postgres_url: str, tmp_path: Path) -> None:
    with closing(Database(empty_postgres_url, tmp_path)):
        """Makes the tables."""
    read_only = f"{empty_postgres_url}&options=-c%20default_transaction_read_only%3Don"

    with (
        closing(Database(read_only, tmp_path)) as database,
        pytest.raises(StoreAway, match="in a read-only transaction"),
    ):
        database.write(renamed)


def test_transact_when_a_row_stays_locked_then_locked(empty_postgres_url: str, tmp_path: Path) -> None:
    url = f"{empty_postgres_url}&options=-c%20lock_timeout%3D50ms"
    with closing(Database(url, tmp_path)) as database, closing(Database(url, tmp_path)) as other:
        database.write(lambda transaction: transaction.execute(sources.insert().values(name="demo")))

        with other.write_once() as transaction:
            renamed(transaction)
            with pytest.raises(StoreLocked):
                database.write(renamed)
