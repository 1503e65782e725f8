"""Spiders that users write in Python live beside the sources, with Scrapy's own scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.site.client import ADDRESS, SiteProcess

SPIDER: Final = """
import scrapy

class Own(scrapy.Spider):
    name = "own"

    async def start(self):
        for _ in range(2):
            yield scrapy.Request(self.address, errback=self.failed)

    def failed(self, failure):
        self.logger.info("refused: %r", failure.value)
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        project = new_project(tmp_path, site)
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "__init__.py").write_text("", "utf-8")
        (tmp_path / "own" / "spider.py").write_text(SPIDER, "utf-8")
        (tmp_path / "house.py").write_text("from searchcrawl.settings import *\nSPIDER_MODULES = ['own']\n", "utf-8")
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = house\n", "utf-8")
        yield project


def test_list_when_there_is_a_python_spider_then_it_stands_beside_the_sources(project: CrawlProject) -> None:
    assert project.command("list").stdout == "demo\nown\n"


def test_settings_module_when_it_names_spiders_then_sources_are_crawled_as_before(project: CrawlProject) -> None:
    assert project.crawl("-a", "limit=1").exit_code == 3


def test_crawl_when_a_python_spider_runs_then_scrapy_schedules_filters_and_logs_and_the_guard_stands(
    project: CrawlProject,
) -> None:
    address = f"http://{ADDRESS}:{project.site.port}/"
    spider = SPIDER.replace("self.address", json.dumps(address))
    (project.folder / "own" / "spider.py").write_text(spider, "utf-8")

    ended = project.command("crawl", "own", "-L", "INFO", "-s", "RETRY_TIMES=1")

    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("refused: CannotResolveHostError") == 1
    assert "'dupefilter/filtered': 1" in ended.stderr
    # No source says that private networks may be reached.
    assert project.site.log() == []


def test_crawl_when_the_log_level_is_unknown_then_exit_2_and_one_reason(project: CrawlProject) -> None:
    ended = project.command("crawl", "own", "-L", "LOUD")

    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith(
        "the log level must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL (got LOUD)"
    )
