"""A store of an earlier release in the middle of a crawl: migrated at start, crawled on; a newer one is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.selftest.final_state import FinalState, differences, inconsistencies
from searchcrawl.store.engine.database import HEAD
from searchcrawl.store.states import FetchState
from tests import kill_site
from tests.crawl_forks import Forks
from tests.final_state import last_counts, read_state
from tests.older_store import copy_to_older, revision_of, tables_of
from tests.site.client import SiteProcess
from tests.stored_rows import execute, query, store_url

KILLED = -9
NEWER = "sqlite:///var/searchcrawl.db"
_NAMED = "SELECT fetch_state FROM urls WHERE url LIKE '%/named/%' OR url LIKE '%/copies/second.html'"


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks(1) as forks:
        yield forks


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        kill_site.fill(site)
        yield site


@pytest.fixture(scope="module")
def undisturbed(forks: Forks, site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> FinalState:
    folder = kill_site.project(tmp_path_factory.mktemp("undisturbed") / "project", site, "demo")
    assert forks.run(folder, "crawl", "demo") == 0
    return read_state(folder, "demo")


@pytest.fixture(scope="module")
def killed(forks: Forks, site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of today that was killed with documents on their way."""
    folder = tmp_path_factory.mktemp("killed")
    for attempt in range(8):
        newer = folder / f"newer{attempt}"
        kill_site.project(newer, site, "demo", settings={"store": {"url": NEWER}})
        assert forks.run(newer, "crawl", "demo", SEARCHCRAWL_FAILPOINT="batch.marked:2") == KILLED
        assert query(newer, "SELECT count(*) FROM batches WHERE state < 2") != [(0,)]
        # That release kept no canonical links: what it had seen of them before the others is not known any more.
        if len({state == FetchState.SETTLED for (state,) in query(newer, _NAMED)}) == 1:
            return newer
    raise AssertionError("each crawl was killed amid pages with canonical links")


@pytest.fixture
def older(killed: Path, tmp_path: Path, empty_store_url: str) -> Path:
    """A copy of it whose store is of revision 0001 since."""
    folder = shutil.copytree(killed, tmp_path / "older")
    # The digests of that release had no headings, and were those by which copies are found.
    execute(folder, "UPDATE documents SET fields_digest = copy_digest WHERE copy_digest IS NOT NULL")
    copy_to_older(NEWER, empty_store_url, folder, "0001")
    path = folder / "searchcrawl.toml"
    path.write_text(path.read_text("utf-8").replace(NEWER, empty_store_url), "utf-8")
    assert (store_url(folder), revision_of(empty_store_url, folder)) == (empty_store_url, "0001")
    return folder


def lasting_differences(undisturbed: FinalState, state: FinalState) -> list[str]:
    """All but what that release kept none of, until a page is read anew: links that may not be followed, texts of links, headings."""
    kept_none = "unfollowed_bytes", ": anchor ", ": checksum "
    return [each for each in differences(undisturbed, state) if not any(what in each for what in kept_none)]


def test_older_store_when_its_crawl_was_killed_then_it_is_migrated_and_ends_as_if_undisturbed(
    forks: Forks, older: Path, undisturbed: FinalState
) -> None:
    code = forks.run(older, "crawl", "demo")
    state = read_state(older, "demo")
    again = forks.run(older, "crawl", "demo")

    assert (code, again, revision_of(store_url(older), older)) == (0, 0, HEAD)
    assert lasting_differences(undisturbed, state) == []
    assert inconsistencies(state) == []
    assert last_counts(older)["indexed"] == 0


def test_older_store_when_killed_in_the_middle_of_its_migration_then_the_next_start_goes_on(
    forks: Forks, older: Path, undisturbed: FinalState
) -> None:
    url = store_url(older)
    before = tables_of(url, older)

    killed = forks.run(older, "crawl", "demo", SEARCHCRAWL_FAILPOINT="migrate.mid")
    between = (revision_of(url, older), tables_of(url, older))
    code = forks.run(older, "crawl", "demo")

    assert (killed, between) == (KILLED, ("0001", before))
    assert (code, revision_of(url, older)) == (0, HEAD)
    assert lasting_differences(undisturbed, read_state(older, "demo")) == []


def test_newer_store_when_a_command_opens_it_then_exit_7_and_it_is_untouched(forks: Forks, older: Path) -> None:
    execute(older, "UPDATE alembic_version SET version_num = '9999'")
    before = (tables_of(store_url(older), older), query(older, "SELECT * FROM urls ORDER BY id"))

    codes = [forks.run(older, *command) for command in (("crawl", "demo"), ("status",), ("urls", "demo"))]

    assert codes == [7, 7, 7]
    assert (tables_of(store_url(older), older), query(older, "SELECT * FROM urls ORDER BY id")) == before
    said = (older / "output.txt").read_text("utf-8")
    assert said.count("written by a newer release (revision 9999)") == len(codes)
    assert "s3cret" not in said
