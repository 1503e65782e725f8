"""A cache that is full gives up its oldest indexed records; one that somebody deleted begins anew (E1, E2)."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "full.acme.test"
PAGES: Final = 24


@pytest.mark.parametrize("threshold_mb", [0.05, 0.2])
def test_crawl_when_the_cache_is_full_of_indexed_documents_then_it_goes_on(
    site: SiteProcess, tmp_path: Path, threshold_mb: float
) -> None:
    # What hardly shrinks when it is compressed: about 20 KB in the cache for each page.
    for number in range(PAGES):
        text = random.Random(number).randbytes(8_000).hex()
        # Each page leads to the next, so that rows are claimed one by one.
        site.set_page(HOST, f"/{number or ''}", page(f"page {number}", f"/{(number + 1) % PAGES or ''}", text=text))
    cache = {"threshold_mb": threshold_mb, "max_gb": 0.0002}
    project = new_project(tmp_path, site, **source(site, HOST), project={"cache": cache})

    ended = project.crawl()

    assert ended.exit_code == 0
    assert len(project.indexed()) == PAGES
    # No more than the limit, and what came in since the last delivery.
    size = sum(path.stat().st_size for path in (tmp_path / "var" / "cache").rglob("*.gz"))
    assert size < 2 * cache["max_gb"] * 1024**3


def test_crawl_when_the_cache_was_deleted_then_the_next_run_goes_on_without_it(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, "gone.acme.test", same=page("same"), other=page("before"))
    project = new_project(tmp_path, site, **source(site, "gone.acme.test"))
    project.crawl()
    shutil.rmtree(tmp_path / "var" / "cache")
    site.set_page("gone.acme.test", "/other.html", page("after"))

    ended = project.crawl()

    assert ended.exit_code == 0
    assert "a new segment" in project.log()
    assert project.found("after") == ["gone.acme.test/other.html"]
    assert project.indexed() == ["gone.acme.test/", "gone.acme.test/other.html", "gone.acme.test/same.html"]
