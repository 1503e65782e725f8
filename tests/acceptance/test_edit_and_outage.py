"""An edited source file counts for each page, also for one that could not be visited in the run after the edit (D9, B6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "edited.acme.test"
NAMES: Final = ("one", "two", "three")
ONE: Final = f"{HOST}/one.html"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"page {name}", text=f"Text of {name}. " * (9 * len(name))) for name in NAMES})
        yield new_project(tmp_path, site, **source(site, HOST))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "keep", [{"exclude_urls": ["*/one.html"]}, {"min_bytes": 600}, {"exclude_names": ["one.html"]}], ids=str
)
@pytest.mark.parametrize("fault", ["down", "503", "reset", "limit"])
def test_page_when_it_failed_in_the_run_after_an_edit_then_the_edit_counts_at_its_next_visit(
    project: CrawlProject, keep: dict[str, Any], fault: str
) -> None:
    site = project.site
    run(project)
    project.edit(**source(site, HOST), keep=keep)
    if fault == "down":
        site.down()
    elif fault == "503":
        site.set_behaviour(HOST, path="/one.html", status=503)
    elif fault == "reset":
        site.set_behaviour(HOST, path="/one.html", mode="reset")
    options = ("-a", "limit=1") if fault == "limit" else ()
    failed = run(project, *options)
    site.up()
    site.clear_behaviours()
    after = run(project)

    assert ONE in failed.versions
    assert (after.codes[ONE], ONE in after.versions) == (952, False)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "edit",
    [
        {"keep": {"exclude_urls": ["*/one.html", "*/two.html"]}},
        {"keep": {"exclude_mime_types": ["text/html"]}},
        {"scope": {"include_hosts": [HOST], "exclude_urls": ["*/one.html", "*/two.html"]}},
    ],
    ids=str,
)
def test_pages_when_an_edit_was_cut_off_and_taken_back_then_are_visited_before_they_leave(
    project: CrawlProject, edit: dict[str, Any]
) -> None:
    site = project.site
    before = run(project)
    project.edit(**source(site, HOST) | edit)
    # All pages were visited, and nothing was removed yet.
    project.crawl(SEARCHCRAWL_FAILPOINT="shutdown.drain")
    project.edit(**source(site, HOST))
    cut = run(project, "-a", "limit=1")
    after = run(project)

    assert [set(each.versions) for each in (cut, after)] == [set(before.versions)] * 2
    assert after.ended.exit_code == 0
