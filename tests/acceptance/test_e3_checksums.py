"""Checksums outlive the records they were made from: nothing is sent twice because the cache is gone (E3)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "checksums.acme.test"
NAMES: Final = ("alpha", "beta", "gamma")
COUNT: Final = len(NAMES) + 1


def crawled(site: SiteProcess, folder: Path, **tables: Any) -> CrawlProject:
    """A source after its first run; one page is always sent whole."""
    pages(site, HOST, **{name: page(f"page {name}") for name in NAMES})
    site.set_page(HOST, "/beta.html", honours_conditions=False)
    project = new_project(folder, site, **source(site, HOST), **tables)
    assert project.crawl().counts["indexed"] == COUNT
    return project


def test_e3_rerun_when_the_cache_keeps_nothing_then_0_updates(site: SiteProcess, tmp_path: Path) -> None:
    project = crawled(site, tmp_path, project={"cache": {"preserve": False}})
    versions = project.versions()

    ended = project.crawl()

    assert (ended.exit_code, ended.counts["indexed"], ended.counts["changed"]) == (0, 0, 0)
    assert (ended.counts["not_modified"], ended.counts["unchanged"]) == (COUNT - 1, 1)
    assert project.versions() == versions


def test_e3_rerun_when_the_cache_was_deleted_then_0_updates(site: SiteProcess, tmp_path: Path) -> None:
    project = crawled(site, tmp_path)
    versions = project.versions()
    shutil.rmtree(tmp_path / "var" / "cache")

    ended = project.crawl()

    assert (ended.exit_code, ended.counts["indexed"], ended.counts["changed"]) == (0, 0, 0)
    assert project.versions() == versions
