"""``fetch.processes``: a run of several processes ends as one of a single process does, also where some of them die.

A host sees the same: its delay, one robots.txt a run, and no request twice. What goes wrong in one process is known,
counted and ended as in a run of a single one.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from searchcrawl.codes import Code
from searchcrawl.selftest.final_state import FinalState
from tests.acceptance.support_members import HOSTS, TOLERANCE_SECONDS, fill, make
from tests.acceptance.support_project import new_project, use_settings_module
from tests.acceptance.support_stories import page, pages
from tests.acceptance.test_stalls import HANGS, PIPELINE
from tests.crawl_forks import Forks, Running, started
from tests.final_state import read_state
from tests.site.behaviour import is_probe
from tests.site.client import SiteProcess
from tests.stored_rows import query
from tests.workers import list_workers

pytestmark = pytest.mark.extended

ROUNDS: Final = 20
SHORT_RUNS: Final = 300
#: One of the processes waits in it for good.
HOLDS_ONE: Final = """
import time
from pathlib import Path

class Pipeline:
    def open_spider(self):
        try:
            Path("held").touch(exist_ok=False)
        except FileExistsError:
            return
        time.sleep(3600)

    def process_item(self, item):
        return item
"""
ENDS_SLOWLY: Final = """
import asyncio
from pathlib import Path

from scrapy import signals


class Extension:
    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        if hasattr(crawler.spider, "member"):
            crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    async def spider_closed(self, spider):
        await asyncio.sleep(7)
        Path("told").touch()
"""
KILLED: Final = -signal.SIGKILL


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    fill(site)
    return site


@pytest.fixture(scope="module")
def undisturbed(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> FinalState:
    """What a crawl of a single process comes to."""
    project = make(tmp_path_factory.mktemp("members") / "alone", site, processes=1)
    assert project.crawl().exit_code == 0
    return read_state(project.folder, "demo")


@pytest.mark.matrix
@pytest.mark.parametrize("processes", [2, 4])
def test_crawl_when_it_has_several_processes_then_it_ends_as_one_does_and_asks_for_nothing_twice(
    tmp_path: Path, site: SiteProcess, undisturbed: FinalState, processes: int
) -> None:
    project = make(tmp_path / "project", site, processes=processes)
    site.clear_log()

    first = project.crawl()
    asked = Counter((each["host"], each["path"]) for each in site.log() if not is_probe(each["path"]))
    again = project.crawl()

    assert (first.exit_code, again.exit_code) == (0, 0), project.log()[-3000:]
    assert read_state(project.folder, "demo") == undisturbed
    # A redirect leads to the third page of each host.
    assert [place for place, count in asked.items() if count > 1 and place[1] != "/page3.html"] == []
    assert (again.counts["indexed"], again.counts["new"], again.counts["changed"]) == (0, 0, 0)


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("victim", ["member", "run"])
def test_crawl_when_processes_of_it_are_killed_at_any_moment_then_it_ends_as_if_undisturbed(
    tmp_path: Path, site: SiteProcess, undisturbed: FinalState, victim: str, number: int
) -> None:
    project = make(tmp_path / "project", site, processes=3)
    chance = random.Random(f"{victim} {number}")
    mine: set[int] = set()
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
        running.until(lambda: len(list_workers(running.pid)) == 2)
        for _ in range(1 if victim == "run" else 3):
            mine |= set(list_workers(running.pid))
            time.sleep(chance.uniform(0, 1.5))
            _kill(running, victim, chance)
        code = running.wait()

    ended = project.crawl()

    assert code in ({KILLED, 0} if victim == "run" else {0}), project.log()[-3000:]
    assert ended.exit_code == 0
    assert read_state(project.folder, "demo") == undisturbed
    assert not _wait_until_gone(mine)


def _kill(running: Running, victim: str, chance: random.Random) -> None:
    if victim == "run":
        running.signal(signal.SIGKILL)
        return
    try:
        members = list_workers(running.pid)
        os.kill(chance.choice(members), signal.SIGKILL)
    except (OSError, IndexError):
        # The crawl, or one of them, was over.
        return


def _wait_until_gone(processes: set[int]) -> set[int]:
    deadline = time.monotonic() + 20
    while (left := {each for each in processes if Path(f"/proc/{each}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def test_crawl_when_hosts_have_a_delay_then_no_two_processes_ask_one_against_it(
    tmp_path: Path, site: SiteProcess
) -> None:
    delay = 0.15
    project = make(tmp_path / "project", site, processes=3, delay=delay)
    site.clear_log()

    ended = project.crawl("--set", "scope.depth=1")

    log = site.log()
    assert ended.exit_code == 0
    for host in HOSTS:
        times = sorted(each["time"] for each in log if each["host"] == host)
        assert len(times) > 10
        assert min(after - before for before, after in pairwise(times)) >= delay - TOLERANCE_SECONDS
        assert len([each for each in log if (each["host"], each["path"]) == (host, "/robots.txt")]) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_crawl_when_a_signal_ends_it_then_all_processes_end_and_the_next_run_goes_on(
    tmp_path: Path, site: SiteProcess, undisturbed: FinalState, number: int
) -> None:
    project = make(tmp_path / "project", site, processes=3)
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
        running.until(lambda: len(list_workers(running.pid)) == 2 and "page" in str(project.codes()))
        mine = set(list_workers(running.pid))
        # As a terminal and a service do: to all of them.
        for process in (*mine, running.pid):
            os.kill(process, number)
        code = running.wait()

    left = _wait_until_gone(mine)
    ended = project.crawl()

    assert code in {0, 3}
    assert not left
    assert "ended by itself" not in project.log()
    assert (ended.exit_code, read_state(project.folder, "demo")) == (0, undisturbed)


@pytest.mark.few(1)
@pytest.mark.parametrize("what", [HANGS["it waits"], HANGS["it searches"]], ids=["it waits", "it searches"])
def test_page_when_it_stops_a_process_each_time_then_it_is_found_and_set_aside_and_the_run_goes_on(
    tmp_path: Path, site: SiteProcess, what: str
) -> None:
    host = "stalling.acme.test"
    names = ("bad", *(f"page{number}" for number in range(12)))
    pages(site, host, **{name: page(f"text of {name}") for name in names})
    project = new_project(
        tmp_path,
        site,
        start={"urls": [site.url(host)], "sitemaps": "off"},
        scope={"include_hosts": [f"={host}"]},
        fetch={"processes": 3, "delay_seconds": 0, "retries": 0},
        settings={"ITEM_PIPELINES": {"mine.Pipeline": 50}},
    )
    (tmp_path / "mine.py").write_text(PIPELINE.format(what=what), "utf-8")
    (tmp_path / "hostile").touch()

    codes = []
    for _ in range(4):
        ended = project.crawl("-s", "SEARCHCRAWL_STALL_SECONDS=2")
        codes.append((ended.exit_code, project.codes()[f"{host}/bad.html"]))

    others = sorted({f"{host}/", *(f"{host}/{name}.html" for name in names)} - {f"{host}/bad.html"})
    assert project.indexed() == others
    assert codes[-1] == (0, Code.SET_ASIDE), codes
    assert {code for _, code in codes} <= {Code.CONVERSION_LIMIT, Code.SET_ASIDE}
    assert "it stopped turning" in project.log()
    assert "mine.py" in project.log()


def test_crawl_when_a_process_of_it_is_stopped_then_it_is_replaced_and_the_run_ends(
    tmp_path: Path, site: SiteProcess, undisturbed: FinalState
) -> None:
    # So that it is not over before one of them is stopped.
    project = make(tmp_path / "project", site, processes=3, delay=0.1)
    with (
        Forks(1) as forks,
        started(forks.start(project.folder, "crawl", "demo", "-s", "SEARCHCRAWL_STALL_SECONDS=2")) as running,
    ):
        running.until(lambda: "page" in str(project.codes()))
        victim = list_workers(running.pid)[0]
        os.kill(victim, signal.SIGSTOP)
        code = running.wait()

    assert code == 0
    assert not _wait_until_gone({victim})
    assert "does not answer" in project.log()
    assert read_state(project.folder, "demo") == undisturbed


def test_crawl_when_a_setting_cannot_be_handed_to_processes_then_it_is_named_and_nothing_is_requested(
    tmp_path: Path, site: SiteProcess
) -> None:
    project = make(tmp_path / "project", site, processes=2)
    use_settings_module(project.folder, "MY_FUNCTION = lambda: None\n")
    site.clear_log()

    ended = project.crawl()

    assert ended.exit_code == 4
    assert "MY_FUNCTION" in ended.errors
    assert "fetch.processes" in ended.errors
    assert site.log() == []


def test_crawl_when_a_process_of_it_does_not_begin_then_the_others_crawl_and_may_take_long_to_end(
    tmp_path: Path, site: SiteProcess, undisturbed: FinalState
) -> None:
    settings = {"ITEM_PIPELINES": {"mine.Pipeline": 50}, "EXTENSIONS": {"mine.Extension": 500}}
    project = make(tmp_path / "project", site, processes=3, settings=settings)
    (project.folder / "mine.py").write_text(HOLDS_ONE + ENDS_SLOWLY, "utf-8")

    ended = project.crawl()

    assert (project.folder / "held").exists()
    assert (project.folder / "told").exists()
    assert (ended.exit_code, read_state(project.folder, "demo")) == (0, undisturbed)
    assert "ended by itself" not in project.log()


@pytest.mark.soak
def test_short_runs_when_they_have_two_processes_then_each_ends_with_all_pages(
    tmp_path: Path, site: SiteProcess
) -> None:
    found: list[tuple[int, int]] = []
    for number in range(SHORT_RUNS):
        folder = tmp_path / str(number)
        folder.mkdir()
        project = new_project(
            folder,
            site,
            start={"urls": [site.url(f"gen{number}.acme.test", f"/n/5,links=1,delay={number % 7 * 0.003:.3f}/")]},
            scope={"include_hosts": [f"=gen{number}.acme.test"]},
            fetch={"processes": 2, "delay_seconds": 0},
        )
        ended = project.crawl()
        found.append((ended.exit_code, len(project.indexed())))

    assert found == [(0, 5)] * SHORT_RUNS


TELLS: Final = """
import logging
import sys

class Odd(str):
    def __new__(cls, first, second):
        return super().__new__(cls, first + second)

class Pipeline:
    def __init__(self, key):
        self.key = key

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings["MINE_KEY"])

    def process_item(self, item):
        if not item.url.endswith("/page1.html"):
            return item
        logger = logging.getLogger("mine")
        logger.warning("%s is wrong", self.key)
        logger.warning("a text of %s", Odd("its own ", "class"))
        print("printed", str(self.key), "\\x1b[31mred", file=sys.stderr)
        try:
            raise KeyError(str(self.key))
        except KeyError:
            logger.exception("not found")
        raise ValueError(self.key + " is wrong")
"""
FAILS: Final = """
class Pipeline:
    def process_item(self, item):
        raise ValueError("no")
"""
ENDS: Final = """
from scrapy import signals
from scrapy.exceptions import CloseSpider


class Extension:
    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        return extension

    def spider_opened(self, spider):
        raise CloseSpider("mine")
"""


def test_crawl_when_a_process_of_it_fails_with_a_secret_then_no_row_and_no_log_tells_it(
    tmp_path: Path, site: SiteProcess
) -> None:
    settings = {"ITEM_PIPELINES": {"mine.Pipeline": 50}, "MINE_KEY": {"env": "OUR_KEY"}}
    project = make(tmp_path / "project", site, processes=2, settings=settings)
    (project.folder / "mine.py").write_text(TELLS, "utf-8")

    ended = project.crawl("--set", "scope.depth=1", OUR_KEY="c4n4ry-of-a-key")

    errors = [row[0] for row in query(project.folder, "SELECT error FROM urls WHERE error LIKE '%is wrong%'")]
    assert ended.exit_code == 0
    assert len(errors) == len(HOSTS)
    assert set(errors) == {"pipeline mine.Pipeline: ValueError: *** is wrong"}
    assert "*** is wrong" in project.log()
    assert "KeyError: '***'" in project.log()
    assert "a text of its own class" in project.log()
    assert "printed ***" in ended.errors
    assert "c4n4ry" not in project.log() + ended.errors
    assert "\x1b" not in ended.errors


def test_crawl_when_it_is_to_end_before_a_process_can_visit_then_it_ends(tmp_path: Path, site: SiteProcess) -> None:
    limited = make(tmp_path / "limited", site, processes=3).crawl("--set", "fetch.max_minutes=0.001")
    project = make(tmp_path / "closed", site, processes=3, settings={"EXTENSIONS": {"mine.Extension": 500}})
    (project.folder / "mine.py").write_text(ENDS, "utf-8")

    closed = project.crawl()

    assert (limited.exit_code, closed.exit_code) == (3, 3)


def test_crawl_when_a_plugin_fails_in_all_processes_then_its_errors_count_together(
    tmp_path: Path, site: SiteProcess
) -> None:
    settings = {"ITEM_PIPELINES": {"mine.Pipeline": 50}, "SEARCHCRAWL_PLUGIN_ERRORS": "6,0"}
    project = make(tmp_path / "project", site, processes=4, settings=settings)
    (project.folder / "mine.py").write_text(FAILS, "utf-8")

    ended = project.crawl()

    assert ended.exit_code == 3
    assert "mine.Pipeline failed at 6 documents in a row" in project.log()


def test_crawl_when_a_redirected_visit_loses_its_process_then_its_first_host_keeps_its_delay(
    tmp_path: Path, site: SiteProcess
) -> None:
    old, new, delay = "old.acme.test", "new.acme.test", 0.4
    moved = {"Location": site.url(new, "/there.html")}
    for number in range(24):
        site.set_page(old, f"/moved{number}.html", "", status=302, headers=moved)
    site.set_page(old, "/robots.txt", f"User-agent: *\nCrawl-delay: {delay}\n", content_type="text/plain")
    pages(site, new, there=page("here they all are"))
    site.set_behaviour(new, "/there.html", status=503, headers={"Retry-After": "6"}, times=1)
    project = new_project(
        tmp_path,
        site,
        start={"urls": [site.url(old, f"/moved{number}.html") for number in range(24)], "sitemaps": "off"},
        scope={"include_hosts": [f"={old}", f"={new}"]},
        fetch={"processes": 3, "delay_seconds": 0, "retries": 2},
    )
    site.clear_log()
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
        running.until(lambda: len(site.log(host=old, robots=False)) >= 8)
        for process in list_workers(running.pid):
            os.kill(process, signal.SIGKILL)
        code = running.wait()

    times = sorted(each["time"] for each in site.log(host=old))
    assert code == 0
    assert len(times) >= 24 + 2
    assert min(after - before for before, after in pairwise(times)) >= delay - TOLERANCE_SECONDS


def test_crawl_when_it_is_ended_while_a_robots_file_is_redirected_then_its_pages_are_not_failed(
    tmp_path: Path, site: SiteProcess
) -> None:
    host = "slow.acme.test"
    pages(site, host, index=page("a page"))
    site.set_page(host, "/robots.txt", "", status=301, headers={"Location": site.url(host, "/robots2.txt")})
    site.set_page(host, "/robots2.txt", "User-agent: *\n", content_type="text/plain")
    site.set_behaviour(host, "/robots.txt", delay_seconds=3)
    site.set_behaviour(host, "/robots2.txt", delay_seconds=2)
    project = new_project(
        tmp_path,
        site,
        start={"urls": [site.url(host, "/index.html")], "sitemaps": "off"},
        scope={"include_hosts": [f"={host}"]},
        fetch={"processes": 3, "delay_seconds": 0},
    )
    site.clear_log()
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", "demo")) as running:
        running.until(lambda: bool(site.log(host=host)))
        running.signal(signal.SIGTERM)
        code = running.wait()

    assert code in {0, 3}
    assert "Traceback" not in project.log()
    assert project.codes()[f"{host}/index.html"] in {0, 200}
    # Given back before it was requested, or read.
    assert {row["state"] for row in project.lines("urls", "demo")} <= {"todo", "settled"}
