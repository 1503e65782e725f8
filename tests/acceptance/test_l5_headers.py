"""What a server may say of its pages: ETag, Retry-After, and what a 304 says beside its headers (L5).

X-Robots-Tag is tried with robots.txt too; sitemaps and canonical links in tests of their own.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.crawl_forks import RETRIES, Forks
from tests.site.client import LogEntry, SiteProcess

HOST: Final = "headers.acme.test"
BUSY: Final = "busy.acme.test"
LATER: Final = "later.acme.test"
FAILING: Final = "failing.acme.test"
PAUSE_SECONDS: Final = 2


class Seen(NamedTuple):
    """What a run left, and the requests for pages by host and path."""

    code: int
    rows: dict[str, dict[str, Any]]
    versions: dict[str, int]
    log: list[LogEntry]

    def asked(self, url: str) -> list[LogEntry]:
        return [entry for entry in self.log if entry["host"] + entry["path"] == url]


def build(site: SiteProcess) -> None:
    site.set_page(HOST, "/", page("start", "/tagged.html", "/weak.html", "/best.html", "/told.html", "/moved.html"))
    site.set_page(HOST, "/moved.html", page("moved"))
    site.set_page(HOST, "/told.html", page("told"))
    site.set_page(HOST, "/tagged.html", page("tagged"), etag='"v1"', last_modified=None)
    site.set_page(HOST, "/weak.html", page("weak"), etag='W/"v1"', last_modified=None)
    site.set_page(HOST, "/best.html", page("the best"))
    for host in (BUSY, LATER):
        site.set_page(host, "/", page(f"start of {host}"))


def crawl(forks: Forks, project: CrawlProject) -> Seen:
    project.site.clear_log()
    code = forks.run(project.folder, "crawl", project.name)
    return Seen(code, project.rows(), project.versions(), project.site.log(robots=False))


@pytest.fixture(scope="module")
def runs(site: SiteProcess, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    build(site)
    site.set_behaviour(BUSY, "/", status=503, headers={"Retry-After": str(PAUSE_SECONDS)}, times=1)
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=3), usegmt=True)
    site.set_behaviour(LATER, "/", status=429, headers={"Retry-After": moment})
    starts = [site.url(host) for host in (HOST, BUSY, LATER)]
    project = new_project(tmp_path_factory.mktemp("headers"), site, start={"urls": starts}, fetch={"retries": 2})
    first = crawl(forks, project)
    site.set_page(HOST, "/told.html", headers={"X-Robots-Tag": "noindex"})
    link = f'<{site.url(HOST, "/best.html")}>; rel="canonical"'
    site.set_page(HOST, "/moved.html", headers={"Link": link})
    second = crawl(forks, project)
    site.set_page(HOST, "/told.html", headers={})
    third = crawl(forks, project)
    site.set_page(HOST, "/moved.html", headers={})
    return [first, second, third, crawl(forks, project), crawl(forks, project)]


def test_l5_etag_when_it_holds_then_304_and_nothing_is_sent_again(runs: list[Seen]) -> None:
    first, second, *_ = runs

    tags = {"/tagged.html": '"v1"', "/weak.html": 'W/"v1"'}
    asked = {path: second.asked(HOST + path) for path in tags}
    # Of these two the headers are others, and the last lists one of them.
    others = {f"{HOST}/{name}.html" for name in ("told", "moved", "best")}
    assert {path: entry["headers"]["if-none-match"] for path, (entry,) in asked.items()} == tags
    assert asked["/tagged.html"][0]["status"] == 304
    same = [{url: version for url, version in run.versions.items() if url not in others} for run in (first, second)]
    assert same[0] == same[1]


def test_l5_x_robots_tag_when_a_304_has_it_then_the_document_leaves_and_comes_back_with_it(runs: list[Seen]) -> None:
    told = f"{HOST}/told.html"

    assert [[entry["status"] for entry in run.asked(told)] for run in runs[:3]] == [[200], [304], [304]]
    assert [run.rows[told]["code"] for run in runs[:3]] == [200, 952, 200]
    assert [told in run.versions for run in runs[:3]] == [True, False, True]


def test_l5_canonical_link_when_a_304_has_it_then_the_page_is_read_again_and_comes_back_without_it(
    runs: list[Seen],
) -> None:
    moved = f"{HOST}/moved.html"

    # A 304 need not repeat it: while a header names another page, this one is asked for whole.
    asked = [[entry["status"] for entry in run.asked(moved)] for run in runs]
    assert asked == [[200], [304, 200], [200], [200], [304]]
    assert [run.rows[moved]["code"] for run in runs] == [200, 964, 964, 200, 200]
    assert [moved in run.versions for run in runs] == [True, False, False, True, True]


def test_l5_retry_after_when_in_seconds_then_the_page_is_asked_for_again_no_sooner(runs: list[Seen]) -> None:
    first = runs[0]

    refused, answered = first.asked(f"{BUSY}/")
    assert (refused["status"], answered["status"]) == (503, 200)
    # The site notes when a request came, which is before its answer left.
    assert answered["time"] - refused["time"] >= PAUSE_SECONDS - 0.05
    assert f"{BUSY}/" in first.versions


def test_l5_retry_when_the_server_names_no_pause_then_the_crawl_waits_until_the_row_is_due(
    site: SiteProcess, tmp_path: Path
) -> None:
    site.set_page(FAILING, "/", page("start"))
    site.set_behaviour(FAILING, "/", status=500, times=1)
    project = new_project(tmp_path, site, start={"urls": [site.url(FAILING)], "sitemaps": "off"}, fetch={"retries": 1})
    ended = project.crawl(**{RETRIES: "1"})
    failed, answered = site.log(host=FAILING, robots=False)

    assert (ended.exit_code, failed["status"], answered["status"]) == (0, 500, 200)
    # A host that fails is left alone for less.
    assert answered["time"] - failed["time"] >= 1 - 0.05


def test_l5_retry_after_when_a_date_then_the_run_does_not_wait_for_it(runs: list[Seen]) -> None:
    first = runs[0]

    assert len(first.asked(f"{LATER}/")) == 1
    assert first.rows[f"{LATER}/"]["code"] == 429
