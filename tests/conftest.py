"""What all tests share: how a missing part of the machine is reported, and one real Solr and PostgreSQL for all."""

from __future__ import annotations

import copy
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

from searchcrawl.sources import secrets
from searchcrawl.store.engine.database import Database
from searchcrawl.store.engine.postgresql_dialect import PostgresqlDialect
from searchcrawl.store.engine.sqlite_dialect import SqliteDialect
from tests import backends, known_statements, postgres_server
from tests.postgres_server import RunningPostgres, start_postgres
from tests.scripted_solr import ScriptedSolr
from tests.solr_server import QUICK_START, PartMissing, RunningSolr, start_solr

if TYPE_CHECKING:
    from tests.mariadb_server import RunningMariadb
    from tests.sftp_server import RunningSftp

_TESTS: Final = Path(__file__).parent
_ACCEPTANCE: Final = _TESTS / "acceptance"
_FILE: Final = "var/store.db"
_FILE_URL: Final = f"sqlite:///{_FILE}"
_LONGEST: Final = ("test_kill.py", "test_whole_lives.py")
_LONGEST_FIRST: Final = ("acceptance", "integration")


class PairModule(pytest.Module):
    """The tests of a file that are marked ``matrix``, once more, with another store and index."""

    pair: str

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """The first case of each of those tests, with module fixtures of their own; the soak runs all cases."""
        items = [item for item in super().collect() if next(item.iter_markers("matrix"), None)]
        first = {getattr(item, "originalname", item.name): item for item in reversed(items)}
        for item in first.values():
            item.add_marker(pytest.mark.extended)
        return [item for item in items if item in first.values()]


def pytest_configure(config: pytest.Config) -> None:
    """Names the marks of tests that run with more than the default store and index."""
    known_statements.share(SqliteDialect, PostgresqlDialect)
    config.addinivalue_line("markers", "matrix: `make extended` runs its first case with PostgreSQL and Solr too")
    config.addinivalue_line(
        "markers", "few(n): `make test` runs so many of its cases, spread over all; the soak the others"
    )
    config.addinivalue_line("markers", "other_backends: not run with an SQLite file and the embedded index")


@pytest.hookimpl(trylast=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PairModule | None:
    """Acceptance tests a second time, where the environment names another pair for those of the matrix."""
    pair = os.environ.get(backends.MATRIX)
    if not pair or file_path.parent != _ACCEPTANCE or not file_path.match("test_*.py"):
        return None
    name = f"{file_path.name}[{pair}]"
    module: PairModule = PairModule.from_parent(parent, path=file_path, name=name, nodeid=f"{parent.nodeid}/{name}")
    module.pair = pair
    return module


def _environment(item: pytest.Item | pytest.Collector) -> Mapping[str, str]:
    """What names the store and the index of a test."""
    module = item.getparent(PairModule)
    return os.environ if module is None else backends.of_pair(module.pair)


def _place(file: Path) -> tuple[int, bool]:
    folder = file.relative_to(_TESTS).parts[0]
    place = _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)
    return place, file.name not in _LONGEST


def _leave_to_soak(items: Iterable[pytest.Item]) -> None:
    """Marks the cases that ``few`` leaves to the soak; with another pair of store and index it leaves none."""
    cases: dict[tuple[pytest.Item | pytest.Collector | None, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and backends.asks_for_default(os.environ):
            cases.setdefault((item.parent, getattr(item, "originalname", item.name)), []).append(item)
    for of_test in cases.values():
        mark = of_test[0].get_closest_marker("few")
        others = max(1, mark.args[0] - 1) if mark else 1
        # The first, the last, and some between them: of two parameters each has more than one value.
        kept = {round(index * (len(of_test) - 1) / others) for index in range(mark.args[0] if mark else 0)}
        for index, item in enumerate(of_test):
            if index not in kept:
                item.add_marker(pytest.mark.soak)


# Before those that are not asked for are left out.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what says nothing new of the default store and index; puts long files first, for several processes."""
    _leave_to_soak(items)
    items.sort(key=lambda item: _place(item.path))
    left_out = {
        item
        for item in items
        if item.get_closest_marker("other_backends") and backends.asks_for_default(_environment(item))
    }
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def ci() -> bool:
    """Whether the tests run under CI, where nothing may be missing."""
    return os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def part_missing(ci: bool) -> Callable[[str], NoReturn]:
    """Ends a test whose system part is missing: a failure under CI, a skip with its reason elsewhere."""

    def report(reason: str) -> NoReturn:
        if ci:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return report


@pytest.fixture(scope="session")
def solr_server(
    tmp_path_factory: pytest.TempPathFactory, part_missing: Callable[[str], NoReturn]
) -> Iterator[RunningSolr]:
    """A real Solr; a test that kills it starts it again."""
    try:
        solr = start_solr(tmp_path_factory.mktemp("solr"), jvm_options=QUICK_START)
    except PartMissing as error:
        part_missing(str(error))
    with solr:
        yield solr


@pytest.fixture
def solr_core(solr_server: RunningSolr) -> Iterator[str]:
    """The URL of an empty core (what ``index.url`` names)."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield solr_server.create_core(name)
    solr_server.delete_core(name)


@pytest.fixture(scope="session")
def postgres(part_missing: Callable[[str], NoReturn]) -> Iterator[RunningPostgres]:
    """A real PostgreSQL; a test that ends it starts it again."""
    try:
        server = start_postgres()
    except postgres_server.PartMissing as error:
        part_missing(str(error))
    with server:
        yield server


@pytest.fixture(scope="session")
def mariadb(part_missing: Callable[[str], NoReturn]) -> Iterator[RunningMariadb]:
    """A real MariaDB; a test that ends it starts it again."""
    # Few tests need its driver.
    from tests import mariadb_server

    try:
        server = mariadb_server.start_mariadb()
    except mariadb_server.PartMissing as error:
        part_missing(str(error))
    with server:
        yield server


@pytest.fixture(scope="session")
def sftp(part_missing: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSftp]:
    """A real sshd that serves files; a test that ends it starts it again."""
    from tests import sftp_server

    try:
        server = sftp_server.start_sftp(tmp_path_factory.mktemp("sftp"))
    except sftp_server.PartMissing as error:
        part_missing(str(error))
    with server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: RunningPostgres) -> str:
    """The name of a database with empty tables, to be copied."""
    Database(postgres.create_database("migrated"), Path()).close()
    return "migrated"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with empty tables, to be copied."""
    folder = tmp_path_factory.mktemp("migrated")
    Database(_FILE_URL, folder).close()
    return folder / _FILE


@pytest.fixture(scope="session")
def used_databases() -> list[str]:
    """Databases with empty tables that tests had, for the next ones."""
    return []


@pytest.fixture
def empty_postgres_url(postgres: RunningPostgres) -> Iterator[str]:
    """A database without any tables."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_store_url(request: pytest.FixtureRequest) -> str:
    """A store of each kind that has no tables yet; an SQLite file is relative to the folder that is given with it."""
    if request.param == "sqlite":
        return _FILE_URL
    url: str = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(
    request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path, used_databases: list[str]
) -> Iterator[str]:
    """A store of each kind, as ``empty_store_url``; it has its tables already: a file, in the folder of the test."""
    if request.param == "sqlite":
        (tmp_path / _FILE).parent.mkdir(exist_ok=True)
        shutil.copy(migrated_file, tmp_path / _FILE)
        yield _FILE_URL
        return
    server: RunningPostgres = request.getfixturevalue("postgres")
    if not used_databases:
        used_databases.append(f"test_{uuid.uuid4().hex[:12]}")
        server.create_database(used_databases[0], template=request.getfixturevalue("migrated"))
    name = used_databases.pop()
    yield server.url(name)
    server.empty_database(name)
    used_databases.append(name)


@pytest.fixture(scope="module", autouse=True)
def backends_in_use(request: pytest.FixtureRequest) -> Iterator[None]:
    """Projects use the store and the index that the environment or the module names; see ``tests.backends``."""
    with backends.in_use(
        lambda: request.getfixturevalue("postgres"),
        lambda: request.getfixturevalue("solr_server"),
        _environment(request.node),
    ):
        yield


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test hides is hidden in that test alone: a process hides its secrets from all that it writes."""
    monkeypatch.setattr(secrets, "_HIDDEN_VALUES", copy.deepcopy(secrets._HIDDEN_VALUES))


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """What a command that runs in the process of a test sets for its files holds in that test alone."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture
def scripted_solr() -> Iterator[ScriptedSolr]:
    """A server that answers as a test tells it."""
    with ScriptedSolr() as server:
        yield server
