"""A run ends when nothing is left to do, when its time is over, or at a limit, and says which (B11)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import Forks
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

HOST: Final = "ends.acme.test"
PAGES: Final = 40


def crawled(forks: Forks, project: CrawlProject, *options: str, **fetch: Any) -> tuple[int, dict[str, Any]]:
    """One run: its exit code, and its row."""
    project.edit(**source(project.site, HOST, **fetch))
    code = forks.run(project.folder, "crawl", project.name, *options)
    return code, query_columns(project.folder, "SELECT * FROM runs ORDER BY id DESC LIMIT 1")[0]


def test_b11_runs_when_they_end_then_each_says_why_and_the_next_goes_on(tmp_path: Path) -> None:
    with SiteProcess() as site, Forks(1) as forks:
        links = [f"/{number}.html" for number in range(PAGES)]
        site.set_page(HOST, "/", page("start", *links))
        for link in links:
            site.set_page(HOST, link, page(link))
        project = new_project(tmp_path, site)

        # It is over before all is open.
        hurried = crawled(forks, project, delay_seconds=0.5, max_minutes=0.0001)
        # Twenty seconds of delay, and three of them to spend.
        timed = crawled(forks, project, delay_seconds=0.5, max_minutes=0.05)
        limited = crawled(forks, project, "-a", "limit=5")
        finished = crawled(forks, project)
        again = crawled(forks, project)
        asked = Counter(site.requested())

    ends = [(code, row["end_reason"], row["kind"]) for code, row in (hurried, timed, limited, finished, again)]
    assert ends == [
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
