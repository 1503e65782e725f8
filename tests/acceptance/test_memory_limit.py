"""A crawl is ended by the memory that it holds (MEMUSAGE_LIMIT_MB), not by what it has given back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "memory.acme.test"
LIMIT_MB: Final = 700
_LARGE_MB: Final = 1000
#: The class that takes memory, and then waits longer than from one look to the next.
_PIPELINES: Final = f"""
import asyncio


class GivesBack:
    async def process_item(self, item):
        taken = bytearray(b"x") * ({_LARGE_MB} << 20)
        del taken
        await asyncio.sleep(0.3)
        return item


class Keeps:
    async def process_item(self, item):
        self.taken = bytearray(b"x") * ({_LARGE_MB} << 20)
        await asyncio.sleep(0.3)
        return item
"""


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, one=page("one"), two=page("two"))
    return site


def crawled(site: SiteProcess, folder: Path, pipeline: str) -> tuple[CrawlProject, Ended]:
    settings = {
        "ITEM_PIPELINES": {f"mine.{pipeline}": 50},
        "MEMUSAGE_LIMIT_MB": LIMIT_MB,
        "MEMUSAGE_CHECK_INTERVAL_SECONDS": 0.05,
    }
    project = new_project(folder, site, settings=settings, **source(site, HOST))
    (folder / "mine.py").write_text(_PIPELINES, "utf-8")
    return project, project.crawl()


def test_crawl_when_it_gave_back_what_was_too_much_then_goes_on(site: SiteProcess, tmp_path: Path) -> None:
    project, ended = crawled(site, tmp_path, "GivesBack")

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (0, "finished")
    assert len(project.indexed()) == 3
    logged = [(int(now), int(most)) for now, most in re.findall(r"memory: (\d+) MiB, (\d+) MiB at most", project.log())]
    assert max(now for now, _ in logged) < LIMIT_MB < _LARGE_MB <= logged[-1][1]


def test_crawl_when_it_holds_too_much_then_ends(site: SiteProcess, tmp_path: Path) -> None:
    project, ended = crawled(site, tmp_path, "Keeps")

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (3, "memusage_exceeded")
    assert "Memory usage exceeded 700MiB" in project.log()
