"""Whatever happens to our clock, store, index, disk or process: each document is found by its phrase (D8, L3, X-S4, X-S5)."""

from __future__ import annotations

import re
import signal
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tests import backends, live_pages
from tests.acceptance.support_project import new_project
from tests.certificates import DAY, write_certificate
from tests.crawl_forks import CLOCK, Forks, started
from tests.live_pages import HOST, LivePages
from tests.site.client import SiteProcess, configure
from tests.small_disk import may_mount, small_disk
from tests.solr_relay import Break, SolrRelay
from tests.solr_server import RunningSolr, free_port
from tests.store_outages import locked
from tests.stored_rows import age_leases, is_being_written
from tests.tls_relay import TlsRelay

pytestmark = pytest.mark.extended

TO_THE_LAST: Final = ("-s", "SEARCHCRAWL_MIN_FREE_MB=0")
PATIENT: Final = ("-s", "SEARCHCRAWL_STORE_PATIENCE_SECONDS=90", "-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=240")
HURRIED: Final = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=2")
WAITING: Final = "fetching pauses, waiting up to"
#: More than all of a project takes.
ROOM: Final = 60_000

of_files = pytest.mark.usefixtures("files_alone")


@pytest.fixture
def files_alone() -> None:
    """For tests of disks and locks."""
    if backends.current.postgres is not None or backends.current.solr is not None:
        pytest.skip("the store or the index is no file")


@pytest.fixture(scope="module", params=live_pages.SIZES, ids=str)
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePages]:
    with live_pages.crawled_once(tmp_path_factory.mktemp("crawled") / "project", request.param) as live:
        yield live


@pytest.fixture
def live(crawled: LivePages, tmp_path: Path) -> LivePages:
    return crawled.copy(tmp_path / "project")


def is_as_in_good_times(live: LivePages) -> bool:
    """After one run more all documents are found in their present text; nothing is left to be done."""
    live.heal()
    after = live.crawl()
    assert (after.exit_code, after.errors, live.wrong()) == (0, "", [])
    assert (after.status["quarantined"], after.status["waiting"], live.differences()) == (0, 0, "")
    return live.found_by_command(live.size - 1)


def obey_status(live: LivePages) -> None:
    """Runs the commands that the warnings of ``status`` name."""
    warnings: list[dict[str, Any]] = live.crawl().status["warnings"]
    named = [
        match[1]
        for one in warnings
        for match in re.finditer(r"searchcrawl ((?:resend|verify) [a-z -]+)", one["message"])
    ]
    assert named, warnings
    for words in named:
        live.command(*words.split())


def slowed(live: LivePages) -> None:
    live.site.set_behaviour(HOST, delay_seconds=0.05, known=True)
    live.site.clear_log()


@pytest.mark.few(1)
@pytest.mark.parametrize("days", [(-1, -1, 0), (1, 0), (1, -1, 1), (0, 400, 0)])
def test_documents_when_the_clock_is_wrong_then_all_are_found(live: LivePages, days: tuple[int, ...]) -> None:
    for number in days:
        ended = live.crawl(**{CLOCK: str(number * 86_400)})
        assert (ended.exit_code, live.wrong(), live.differences()) == (0, [], "")

    assert is_as_in_good_times(live)


@pytest.mark.few(1)
@pytest.mark.parametrize("expired", [DAY * 3, DAY * 400])
def test_documents_when_the_certificate_expired_then_all_are_found(tmp_path: Path, expired: Any) -> None:
    good, old = (write_certificate(tmp_path, host=HOST, age=age) for age in (DAY * 0, expired))
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(good.read_bytes() + old.read_bytes())
    with SiteProcess() as site, TlsRelay(site.port, good) as relay:
        plain = live_pages.source(site)
        # The one that there is lists pages without TLS.
        start = {"urls": [f"https://{HOST}:{relay.port}/"], "sitemaps": "off"}
        told = {**plain, "start": start, "fetch": {**plain["fetch"], "ca_file": str(trusted)}}
        live = LivePages(new_project(tmp_path / "project", site, **told), 60)
        live.fill()
        first = live.crawl()
        before = live.wrong()
        relay.use(old)
        during = live.crawl()
        while_expired = (live.wrong(), live.differences(), {*live.project.codes().values()})
        relay.use(good)

        assert (first.exit_code, before, during.exit_code, while_expired) == (0, [], 8, ([], "", {962}))
        assert is_as_in_good_times(live)


def test_documents_when_the_index_was_emptied_then_the_command_of_status_brings_them_back(live: LivePages) -> None:
    backends.current.lose_index(live.project.folder)
    obey_status(live)

    assert is_as_in_good_times(live)


def test_documents_when_an_older_index_was_put_back_then_the_command_of_status_brings_them_back(
    live: LivePages, tmp_path: Path
) -> None:
    saved = backends.current.copy(live.project.folder, tmp_path / "saved")
    live.change(range(1, live.size, 2))
    live.crawl()
    backends.current.put_back("index", saved, live.project.folder)
    obey_status(live)

    assert is_as_in_good_times(live)


@pytest.mark.parametrize("changed", [range(1), range(0, 100, 2)], ids=len)
def test_documents_when_a_store_of_last_week_was_put_back_then_nothing_leaves_and_both_come_together(
    live: LivePages, tmp_path: Path, changed: range
) -> None:
    saved = backends.current.copy(live.project.folder, tmp_path / "saved")
    live.change(changed)
    assert live.crawl().exit_code == 0
    backends.current.put_back("store", saved, live.project.folder)
    week = {CLOCK: str(7 * 86_400)}
    first = live.crawl(**week)
    present = live.wrong()
    second = live.crawl(**week)

    assert (first.counts["deleted"], present) == (0, [])
    assert (second.exit_code, live.wrong(), live.differences()) == (0, [], "")
    assert is_as_in_good_times(live)


@of_files
@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.soak)])
def test_documents_when_the_store_is_locked_then_the_run_waits_for_it(
    live: LivePages, forks: Forks, seconds: int
) -> None:
    live.change(range(0, live.size, 3))
    slowed(live)
    with started(forks.start(live.project.folder, "crawl", "demo", *PATIENT)) as running:
        running.until(lambda: len(live.site.log()) >= live.size // 4)
        with locked(live.project.folder):
            running.until(lambda: WAITING in live.project.log())
            time.sleep(seconds)
        code = running.wait()

    assert (code, live.wrong(), live.differences()) == (0, [], "")
    assert is_as_in_good_times(live)


@pytest.fixture(scope="module")
def mounting(part_missing: Callable[[str], NoReturn]) -> None:
    if not may_mount():
        part_missing("only root of this machine, with unshare and nsenter of util-linux, may mount small disks")


@of_files
@pytest.mark.few(1)
@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize(
    ("where", "free"), [("var/cache", 12), ("var/store", 40), ("var/index", 40), ("var/log", 0), ("var", 60)]
)
def test_documents_when_a_disk_is_full_then_all_are_found(
    live: LivePages, tmp_path: Path, where: str, free: int
) -> None:
    folder = live.project.folder
    (folder / "var" / "store").mkdir()
    for file in (folder / "var").glob("searchcrawl.db*"):
        file.rename(folder / "var" / "store" / file.name)
    configure(folder, store={"url": "sqlite:///var/store/searchcrawl.db"})
    live.change(range(0, live.size, 2))
    with small_disk(folder / where, ROOM) as disk:
        disk.fill()
        disk.leave(free)
        codes = [disk.searchcrawl(folder, "crawl", "demo", *TO_THE_LAST).returncode for _ in range(2)]
        full = live.inside(disk.copy(folder, tmp_path / "full"))
        disk.grow(ROOM)
        last = disk.searchcrawl(folder, "crawl", "demo", *TO_THE_LAST).returncode
        found = live.inside(disk.copy(folder, tmp_path / "found"))

    assert set(codes) <= ({7} if where != "var/log" else {0, 7})
    assert full.wrong(on_the_way=True) == []
    assert (last, found.wrong(), found.differences()) == (0, [], "")
    assert is_as_in_good_times(found)


@pytest.mark.parametrize("times", [4, pytest.param(20, marks=pytest.mark.soak)])
def test_documents_when_two_runs_start_in_the_same_second_then_one_goes_on_and_all_are_found(
    live: LivePages, forks: Forks, times: int
) -> None:
    live.change(range(0, live.size, 3))
    live.site.set_behaviour(HOST, path="/", delay_seconds=0.5)
    codes = []
    for _ in range(times):
        both = [forks.start(live.project.folder, "crawl", "demo") for _ in range(2)]
        codes.append(sorted(running.wait() for running in both))

    assert codes == [[0, 5]] * times
    assert (live.wrong(), live.differences()) == ([], "")
    assert is_as_in_good_times(live)


def test_documents_when_a_frozen_holder_wakes_up_then_it_changes_nothing(live: LivePages, forks: Forks) -> None:
    folder = live.project.folder
    live.change(range(0, live.size, 3))
    slowed(live)
    with started(forks.start(folder, "crawl", "demo")) as running:
        running.until(lambda: len(live.site.log()) >= live.size // 4)
        running.freeze(lambda: not is_being_written(folder))
        early = live.crawl().exit_code
        age_leases(folder, seconds=31)
        late = live.crawl().exit_code
        taken_over = live.wrong()
        running.signal(signal.SIGCONT)
        frozen = running.wait()

    assert (early, late, taken_over, frozen) == (5, 0, [], 7)
    assert (live.wrong(), live.differences()) == ([], "")
    assert is_as_in_good_times(live)


@pytest.fixture
def core(live: LivePages) -> str:
    """Where the project has its index, in Solr."""
    index = tomllib.loads((live.project.folder / "searchcrawl.toml").read_text("utf-8")).get("index", {})
    if index.get("type") != "solr":
        pytest.skip("the index of these projects is no Solr")
    return str(index["url"])


@contextmanager
def index_at(live: LivePages, core: str, url: str) -> Iterator[None]:
    """The project has its index elsewhere for a while."""
    path = live.project.folder / "searchcrawl.toml"
    told = path.read_text("utf-8")
    path.write_text(told.replace(core, url), "utf-8")
    yield
    path.write_text(told, "utf-8")


@pytest.mark.solr
@pytest.mark.other_backends
def test_documents_when_solr_is_down_all_along_then_all_are_there_once_it_is_back(live: LivePages, core: str) -> None:
    live.change(range(0, live.size, 3))
    with index_at(live, core, f"http://127.0.0.1:{free_port()}/solr/away"):
        codes = [live.crawl(*HURRIED).exit_code for _ in range(3)]

    assert (codes, live.wrong(on_the_way=True)) == ([6] * 3, [])
    assert is_as_in_good_times(live)


@pytest.mark.solr
@pytest.mark.other_backends
@pytest.mark.parametrize("at", Break)
def test_documents_when_solr_breaks_off_in_a_batch_then_all_are_found(
    live: LivePages, core: str, solr_server: RunningSolr, at: Break
) -> None:
    live.change(range(0, live.size, 3))
    with SolrRelay(solr_server, core.rpartition("/")[2], at) as relay, index_at(live, core, relay.url):
        code = live.crawl(*PATIENT).exit_code

    assert (relay.broken, code) == (True, 0)
    assert (live.wrong(), live.differences()) == ([], "")
    assert is_as_in_good_times(live)
