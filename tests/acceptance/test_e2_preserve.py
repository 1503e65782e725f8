"""``cache.preserve = false`` gives records up once the index has them, and not before (E2)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, configure
from tests.solr_server import free_port

HOST: Final = "preserve.acme.test"
NAMES: Final = ("alpha", "beta", "gamma")
COUNT: Final = len(NAMES) + 1
FORGETFUL: Final = {"preserve": False}
HURRY: Final = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1")


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, **{name: page(f"page {name}") for name in NAMES})
    return site


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path, site, **source(site, HOST))


def records(project: CrawlProject) -> int:
    """How many documents the cache has."""
    return int(project.ask("cache", "count", "demo")["records"])


def bytes_cached(project: CrawlProject) -> int:
    return sum(path.stat().st_size for path in (project.folder / "var" / "cache").rglob("*.gz"))


def test_e2_crawl_when_nothing_is_preserved_and_the_index_is_down_then_all_is_kept_until_the_next_run_pushes_it(
    project: CrawlProject,
) -> None:
    down = {"type": "solr", "url": f"http://127.0.0.1:{free_port()}/solr/pages"}
    configure(project.folder, cache=FORGETFUL, index=down)

    away = project.crawl(*HURRY)
    kept = records(project)
    configure(project.folder, cache=FORGETFUL)
    project.site.clear_log()
    back = project.crawl()

    assert (away.exit_code, away.status["waiting"], kept) == (6, COUNT, COUNT)
    assert (back.exit_code, back.status["waiting"], back.counts["indexed"]) == (0, 0, COUNT)
    assert {entry["status"] for entry in project.site.log(robots=False)} == {304}
    assert len(project.indexed()) == COUNT
    assert (records(project), bytes_cached(project)) == (0, 0)


def test_e2_flush_when_nothing_is_preserved_then_what_it_pushed_is_given_up(project: CrawlProject) -> None:
    down = {"type": "solr", "url": f"http://127.0.0.1:{free_port()}/solr/pages"}
    configure(project.folder, cache=FORGETFUL, index=down)
    project.crawl(*HURRY)
    configure(project.folder, cache=FORGETFUL)

    flushed = project.ask("flush", "demo")

    assert flushed == {"source": "demo", "documents": COUNT, "removed": 0, "failed": 0, "to_fetch": 0}
    assert len(project.indexed()) == COUNT
    assert (records(project), bytes_cached(project)) == (0, 0)


def test_e2_resend_when_nothing_was_preserved_then_says_how_many_have_to_be_fetched(project: CrawlProject) -> None:
    configure(project.folder, cache=FORGETFUL)
    project.crawl()

    again = project.ask("resend", "demo", code=1)

    assert again == {"source": "demo", "documents": 0, "removed": 0, "failed": 0, "to_fetch": COUNT}
