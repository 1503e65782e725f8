"""A run ends when nothing is left to do, when its time is over, or at a limit, and says which (B11)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST: Final = "ends.acme.test"
PAGES: Final = 40


def crawled(project: CrawlProject, *options: str, **fetch: Any) -> tuple[int, str, str]:
    """One run: its exit code, why it ended, and its kind."""
    project.edit(**source(project.site, HOST, **fetch))
    ended = project.crawl(*options)
    return ended.exit_code, ended.status["run"]["end_reason"], ended.status["run"]["kind"]


def test_b11_runs_when_they_end_then_each_says_why_and_the_next_goes_on(tmp_path: Path) -> None:
    with SiteProcess() as site:
        links = [f"/{number}.html" for number in range(PAGES)]
        site.set_page(HOST, "/", page("start", *links))
        for link in links:
            site.set_page(HOST, link, page(link))
        project = new_project(tmp_path, site)

        # It is over before all is open.
        hurried = crawled(project, delay_seconds=0.5, max_minutes=0.0001)
        # Twenty seconds of delay, and three of them to spend.
        timed = crawled(project, delay_seconds=0.5, max_minutes=0.05)
        limited = crawled(project, "-a", "limit=5")
        finished = crawled(project)
        again = crawled(project)
        asked = Counter(site.requested())

    assert [hurried, timed, limited, finished, again] == [
        (3, "max_minutes", "initial"),
        (3, "max_minutes", "initial"),
        (3, "limit", "initial"),
        (0, "finished", "initial"),
        (0, "finished", "maintenance"),
    ]
    # The first four are one pass over the site, the last one is another.
    assert {*asked.values()} == {2}
    assert len(asked) == PAGES + 1
    assert len(project.indexed()) == PAGES + 1


def test_b11_run_when_its_start_urls_were_edited_and_fail_then_these_are_named(tmp_path: Path) -> None:
    with SiteProcess() as site:
        site.set_page(HOST, "/", page("start"))
        site.set_page(HOST, "/dead.html", "", status=500)
        project = new_project(tmp_path, site, **source(site, HOST))
        before = project.crawl()
        project.edit(**source(site, HOST, "/dead.html"))
        ended = project.crawl()

    assert (before.exit_code, ended.exit_code) == (0, 8)
    assert f"start URL: failed     500  {site.url(HOST, '/dead.html')}" in ended.errors
    assert ended.errors.count("start URL:") == 1
