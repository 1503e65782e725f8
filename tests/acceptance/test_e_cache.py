"""A full cache is pushed to the index beside the crawl (E1); records are given up once it has them (E2), checksums never (E3);
the index is made whole again from the cache alone (E7).
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests import backends
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, configure

HOST: Final = "cache.acme.test"
PRESERVED: Final = "preserve.acme.test"
CHECKED: Final = "checksums.acme.test"
FULL: Final = "full.acme.test"
NAMES: Final = ("alpha", "beta", "gamma")
COUNT: Final = len(NAMES) + 1
FORGETFUL: Final = {"preserve": False}
HURRY: Final = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1")
AGAIN: Final = "again.acme.test"
AGAIN_NAMES: Final = tuple(f"p{number}" for number in range(8))
AGAIN_COUNT: Final = len(AGAIN_NAMES) + 1
NOTHING: Final = {"source": "demo", "documents": 0, "removed": 0, "failed": 0, "to_fetch": 0}
PAGE_BYTES: Final = 100_000
#: With the start page a little over 3.5 MB, of 1,048,576 bytes each.
PAGES: Final = 37
#: Of a chain.
CHAIN: Final = 24


def test_e1_crawl_when_the_limit_is_1_mb_and_pages_have_3_5_mb_then_the_cache_is_flushed_four_times(
    site: SiteProcess, tmp_path: Path
) -> None:
    texts = {f"p{number}": random.Random(number).randbytes(PAGE_BYTES // 2).hex() for number in range(PAGES)}
    pages(site, HOST, **{name: page(name, text=text) for name, text in texts.items()})
    project = new_project(tmp_path, site, **source(site, HOST), project={"cache": {"threshold_mb": 1}})

    ended = project.crawl()

    # How many documents went with each delivery.
    sent = Counter(row["batch"] for row in project.lines("urls", project.name))
    assert (ended.exit_code, ended.counts["indexed"]) == (0, PAGES + 1)
    # Eleven pages fill it, and the small start page lies in it besides.
    assert sorted(sent.values()) == [4, 11, 11, 12]
    assert sorted(Counter(project.versions().values()).values()) == sorted(sent.values())


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, PRESERVED, **{name: page(f"page {name}") for name in NAMES})
    pages(site, AGAIN, **{name: page(f"page {name}", text=f"{name} " * 500) for name in AGAIN_NAMES})
    return site


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path, site, **source(site, PRESERVED))


def records(project: CrawlProject) -> int:
    """How many documents the cache has."""
    return int(project.ask("cache", "count", "demo")["records"])


def bytes_cached(project: CrawlProject) -> int:
    return sum(path.stat().st_size for path in (project.folder / "var" / "cache").rglob("*.gz"))


def test_e2_crawl_when_nothing_is_preserved_and_the_index_is_down_then_all_is_kept_until_the_next_run_pushes_it(
    project: CrawlProject,
) -> None:
    down = absent_index()
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


def test_e2_flush_when_the_index_is_back_then_what_waits_goes_in_without_a_run_and_is_given_up(
    project: CrawlProject,
) -> None:
    down = absent_index()
    configure(project.folder, cache=FORGETFUL, index=down)
    project.crawl(*HURRY)
    away = project.command("flush")
    project.site.clear_log()
    configure(project.folder, cache=FORGETFUL)

    flushed = project.command("flush")

    assert (away.returncode, away.stdout, "Connection refused" in away.stderr) == (6, "", True)
    assert (flushed.returncode, flushed.stdout, flushed.stderr) == (0, f"demo: {COUNT} documents sent\n", "")
    assert (len(project.indexed()), project.site.log()) == (COUNT, [])
    assert (records(project), bytes_cached(project)) == (0, 0)


def crawl_checked(site: SiteProcess, folder: Path, **tables: Any) -> CrawlProject:
    """A source after its first run; one page is always sent whole."""
    pages(site, CHECKED, **{name: page(f"page {name}") for name in NAMES})
    site.set_page(CHECKED, "/beta.html", honours_conditions=False)
    project = new_project(folder, site, **source(site, CHECKED), **tables)
    assert project.crawl().counts["indexed"] == COUNT
    return project


def test_e3_rerun_when_the_cache_keeps_nothing_then_0_updates_and_resend_says_how_many_have_to_be_fetched(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = crawl_checked(site, tmp_path, project={"cache": FORGETFUL})
    versions = project.versions()

    ended = project.crawl()
    again = project.ask("resend", "demo", code=1)

    assert (ended.exit_code, ended.counts["indexed"], ended.counts["changed"]) == (0, 0, 0)
    assert (ended.counts["not_modified"], ended.counts["unchanged"]) == (COUNT - 1, 1)
    assert again == {**NOTHING, "to_fetch": COUNT}
    assert project.versions() == versions


def test_e3_rerun_when_the_cache_was_deleted_then_it_goes_on_without_it_and_only_what_changed_is_sent(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = crawl_checked(site, tmp_path)
    versions, changed = project.versions(), f"{CHECKED}/gamma.html"
    shutil.rmtree(tmp_path / "var" / "cache")
    site.set_page(CHECKED, "/gamma.html", page("after"))

    ended = project.crawl()

    assert (ended.exit_code, ended.counts["indexed"], ended.counts["changed"]) == (0, 1, 1)
    assert "a new segment" in project.log()
    assert project.found("after") == [changed]
    assert project.versions() == {**versions, changed: project.versions()[changed]}


@pytest.mark.parametrize("threshold_mb", [0.05, 0.2])
def test_crawl_when_the_cache_is_full_of_indexed_documents_then_it_goes_on(
    site: SiteProcess, tmp_path: Path, threshold_mb: float
) -> None:
    # What hardly shrinks when it is compressed: about 20 KB in the cache for each page.
    for number in range(CHAIN):
        text = random.Random(number).randbytes(8_000).hex()
        # Each page leads to the next, so that rows are claimed one by one.
        site.set_page(FULL, f"/{number or ''}", page(f"page {number}", f"/{(number + 1) % CHAIN or ''}", text=text))
    cache = {"threshold_mb": threshold_mb, "max_gb": 0.0002}
    project = new_project(tmp_path, site, **source(site, FULL), project={"cache": cache})

    ended = project.crawl()

    assert ended.exit_code == 0
    assert len(project.indexed()) == CHAIN
    # No more than the limit, and what came in since the last delivery.
    size = sum(path.stat().st_size for path in (tmp_path / "var" / "cache").rglob("*.gz"))
    assert size < 2 * cache["max_gb"] * 1024**3


@pytest.fixture
def crawled(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    """A source that was crawled into several batches: a page has about 2 KB."""
    project = new_project(tmp_path, site, **source(site, AGAIN), project={"cache": {"threshold_mb": 0.005}})
    assert project.crawl().exit_code == 0
    return project


@pytest.mark.matrix
def test_e7_resend_when_the_index_is_gone_then_the_same_count_is_in_without_a_request_and_a_crawl_sends_nothing(
    crawled: CrawlProject,
) -> None:
    before = crawled.indexed()
    backends.current.lose_index(crawled.folder)
    crawled.site.clear_log()

    done = crawled.ask("resend", "demo")
    requested, versions, verified = crawled.site.log(), crawled.versions(), is_verified(crawled)
    ended = crawled.crawl()

    assert done == {**NOTHING, "documents": AGAIN_COUNT}
    assert (requested, sorted(versions), verified) == ([], before, True)
    assert len(set(versions.values())) > 1
    assert (ended.exit_code, ended.counts["indexed"], crawled.versions()) == (0, 0, versions)


def test_flush_when_a_source_file_is_broken_then_the_others_are_flushed(project: CrawlProject) -> None:
    (project.folder / "sources" / "broken.toml").write_text('type = "web"\nnonsense = 1\n', "utf-8")

    ended = project.command("flush", "--json")

    assert ended.returncode == 4
    assert "sources/broken.toml: nonsense" in ended.stderr
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [NOTHING]
