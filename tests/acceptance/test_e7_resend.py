"""The index is made whole again from the cache alone; what waits is pushed between runs (E7)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests import backends
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "again.acme.test"
NAMES: Final = tuple(f"p{number}" for number in range(8))
COUNT: Final = len(NAMES) + 1
NOTHING: Final = {"source": "demo", "documents": 0, "removed": 0, "failed": 0, "to_fetch": 0}


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, **{name: page(f"page {name}", text=f"{name} " * 500) for name in NAMES})
    return site


@pytest.fixture(scope="module")
def template(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    """A source that was crawled into a local index; to be copied."""
    crawled = made(tmp_path_factory.mktemp("template"), site)
    assert crawled.crawl().exit_code == 0
    return crawled


@pytest.fixture
def crawled(template: CrawlProject, tmp_path: Path) -> CrawlProject:
    return replace(template, folder=backends.current.copy(template.folder, tmp_path / "project"))


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    """A source that was not crawled yet."""
    return made(tmp_path, site)


def made(folder: Path, site: SiteProcess) -> CrawlProject:
    # A page has about 2 KB: several batches.
    return new_project(folder, site, **source(site, HOST), project={"cache": {"threshold_mb": 0.005}})


def verified(project: CrawlProject) -> bool:
    return bool(project.ask("verify", "demo")["ok"])


def requests(project: CrawlProject) -> int:
    return len(project.site.log())


@pytest.mark.matrix
def test_e7_resend_when_the_index_is_gone_then_the_same_count_is_in_without_a_request(
    crawled: CrawlProject,
) -> None:
    before = crawled.indexed()
    backends.current.lose_index(crawled.folder)
    crawled.site.clear_log()

    done = crawled.ask("resend", "demo")

    assert done == {**NOTHING, "documents": COUNT}
    assert requests(crawled) == 0
    assert crawled.indexed() == before
    assert len(set(crawled.versions().values())) > 1
    assert verified(crawled)


def test_e7_crawl_after_a_resend_when_nothing_changed_then_sends_nothing(crawled: CrawlProject) -> None:
    crawled.ask("resend", "demo")
    versions = crawled.versions()

    ended = crawled.crawl()

    assert (ended.exit_code, ended.counts["indexed"]) == (0, 0)
    assert crawled.versions() == versions


def test_flush_when_a_source_file_is_broken_then_the_others_are_flushed(project: CrawlProject) -> None:
    (project.folder / "sources" / "broken.toml").write_text('type = "web"\nnonsense = 1\n', "utf-8")

    ended = project.command("flush", "--json")

    assert ended.returncode == 4
    assert "sources/broken.toml: nonsense" in ended.stderr
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [NOTHING]
