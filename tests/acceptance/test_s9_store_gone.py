"""A PostgreSQL that goes away in the middle of a crawl, of a transaction, of a commit (X-S9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests import kill_site
from tests.acceptance.support_outages import BACK, PATIENT, WAITING, as_undisturbed, in_its_middle, log, output, quiet
from tests.crawl_forks import Forks, started
from tests.kill_rounds import Kind, initial
from tests.postgres_server import PASSWORD, USER, RunningPostgres, start_postgres
from tests.site.client import SiteProcess
from tests.store_outages import CuttableProxy
from tests.stored_rows import execute

pytestmark = pytest.mark.extended

HURRIED: Final = ("-s", "SEARCHCRAWL_STORE_PATIENCE_SECONDS=3")
#: Connections of crawls alone.
_OTHERS: Final = "pid <> pg_backend_pid() AND application_name = 'searchcrawl'"


@pytest.fixture(scope="module")
def kind(site: SiteProcess, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    """The undisturbed crawl, in the store of the session's choice: stores do not differ."""
    kill_site.fill(site)
    kind = initial(forks, site, tmp_path_factory.mktemp("gone"))
    kind.reference()
    return kind


@pytest.fixture
def proxy(postgres: RunningPostgres) -> Iterator[CuttableProxy]:
    with CuttableProxy(postgres.folder / ".s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def project(
    kind: Kind, proxy: CuttableProxy, postgres: RunningPostgres, request: pytest.FixtureRequest
) -> Iterator[Path]:
    name = request.node.name.partition("[")[0].removeprefix("test_s9_store_when_")[:40]
    folder = kind.folder / f"{name}-{proxy.port}"
    database = f"gone_{proxy.port}"
    postgres.create_database(database)
    store = f"postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}/{database}"
    kind.site.clear_log()
    kill_site.project(folder, kind.site, "demo", settings={"store": {"url": store}})
    kill_site.call_agent(folder, folder.name)
    yield folder
    postgres.drop_database(database)


def assert_undisturbed(kind: Kind, folder: Path) -> None:
    assert as_undisturbed(kind, folder) == []
    assert kill_site.requests(kind.site)[folder.name] == kind.asked
    assert PASSWORD not in log(folder) + output(folder)
    assert "Traceback" not in log(folder) + output(folder)


def test_s9_store_when_gone_for_a_while_then_fetching_pauses_and_nothing_is_lost(
    kind: Kind, forks: Forks, project: Path, proxy: CuttableProxy
) -> None:
    with started(in_its_middle(forks, project, *PATIENT)) as running:
        proxy.cut()
        running.until(lambda: WAITING in log(project))
        asked = quiet(running, kind)
        running.until(lambda: quiet(running, kind) == asked)
        proxy.restore()
        code = running.wait()

    assert code == 0
    assert_undisturbed(kind, project)
    assert (log(project).count(WAITING), log(project).count(BACK)) == (1, 1)


def test_s9_store_when_connections_are_ended_by_the_server_then_nothing_is_lost(
    kind: Kind, forks: Forks, project: Path
) -> None:
    with started(in_its_middle(forks, project, *PATIENT)) as running:
        for _ in range(5):
            execute(project, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OTHERS}")
        code = running.wait()

    assert code == 0
    assert_undisturbed(kind, project)


def test_s9_store_when_its_server_is_a_standby_for_a_while_then_it_is_waited_for(kind: Kind, forks: Forks) -> None:
    folder = kind.folder / "standby"
    kind.site.clear_log()
    with start_postgres() as server:
        kill_site.project(folder, kind.site, "demo", settings={"store": {"url": server.create_database("standby")}})
        kill_site.call_agent(folder, folder.name)
        with started(in_its_middle(forks, folder, *PATIENT)) as running:
            server.stop()
            (server.folder / "data" / "standby.signal").touch()
            server.start()
            running.until(lambda: WAITING in log(folder))
            asked = quiet(running, kind)
            running.until(lambda: quiet(running, kind) == asked)
            with server.connect() as connection:
                refusals = (server.folder / "log").read_text("utf-8").count("in a read-only transaction")
                connection.execute("SELECT pg_promote()")
            code = running.wait()
        assert code == 0
        assert refusals > 0
        assert_undisturbed(kind, folder)
        # A read between stop and start of the standby may find it back.
        assert log(folder).count(BACK) == log(folder).count(WAITING)


@pytest.mark.few(1)
@pytest.mark.parametrize("delivers", [False, True])
@pytest.mark.parametrize("number", [3, 9, *(pytest.param(number, marks=pytest.mark.soak) for number in (5, 14, 20))])
def test_s9_store_when_cut_at_a_commit_then_no_transaction_is_lost_or_done_twice(
    kind: Kind, forks: Forks, project: Path, proxy: CuttableProxy, number: int, delivers: bool
) -> None:
    forks.run(project, "status")
    # The first ones only read: a store that cannot be reached at the start is not waited for.
    proxy.cut_at_commit(number, delivers=delivers)
    with started(forks.start(project, "crawl", "demo", *PATIENT)) as running:
        running.until(proxy.commit_was_cut.is_set)
        proxy.restore()
        code = running.wait()

    assert code == 0
    assert_undisturbed(kind, project)


def test_s9_store_when_gone_for_good_then_exit_7_and_the_next_run_completes(
    kind: Kind, forks: Forks, project: Path, proxy: CuttableProxy
) -> None:
    with started(in_its_middle(forks, project, *HURRIED)) as running:
        proxy.cut()
        code = running.wait()
    said = output(project).splitlines()
    proxy.restore()
    again = forks.run(project, "crawl", "demo")

    assert (code, again) == (7, 0)
    assert len(said) == 1
    assert said[0].startswith(f"searchcrawl: store postgresql+psycopg://{USER}:***@127.0.0.1:{proxy.port}/gone_")
    assert as_undisturbed(kind, project) == []
    assert PASSWORD not in log(project) + output(project)
    assert "Traceback" not in log(project) + output(project)


def test_s9_commands_when_the_store_cannot_be_reached_then_exit_7_with_one_line(
    forks: Forks, project: Path, proxy: CuttableProxy
) -> None:
    proxy.cut()
    commands = (("crawl", "demo"), ("status",), ("urls", "demo"), ("verify",), ("quarantine", "list", "demo"))
    codes = [forks.run(project, *words) for words in commands]
    said = output(project).splitlines()

    assert codes == [7] * len(commands)
    assert len(said) == len(commands)
    assert all(f"store postgresql+psycopg://{USER}:***@127.0.0.1:{proxy.port}/" in line for line in said)
