"""``fetch.processes``: what goes wrong in one process of a run is known, counted and ended as in a run of a single one."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_members import HOSTS, TOLERANCE_SECONDS, fill, make
from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages
from tests.crawl_forks import Forks, started
from tests.site.client import SiteProcess
from tests.stored_rows import query
from tests.workers import list_workers

pytestmark = pytest.mark.extended

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


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    fill(site)
    return site


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
    assert project.codes()[f"{host}/index.html"] in {None, 200}
