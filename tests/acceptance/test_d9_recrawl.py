"""An operator has known URLs visited again, without validators, by name, those that failed, or all (D9)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.support_project import COMMANDS, CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

HOST = "again.acme.test"
DAYS = {"lifecycle": {"recrawl_every_hours": 100}}
RULES = {"exclude_urls": ["*/no.html"]}


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrawlProject]:
    """Three pages that were crawled, one that failed, one that a rule refuses; nothing is due for days."""
    with SiteProcess() as site:
        made = new_project(tmp_path_factory.mktemp("again"), site)
        pages(site, HOST, a=page("alpha"), b=page("beta"), c=page("gamma"), no=page("refused"))
        site.set_behaviour(HOST, "/c.html", status=500)
        made.edit(**source(site, HOST, scope=RULES), **DAYS)
        assert made.crawl().exit_code == 0
        site.clear_behaviours()
        yield made


def recrawl(project: CrawlProject, *options: str) -> dict[str, Any]:
    return project.ask("recrawl", "demo", *options)


def reason(project: CrawlProject) -> str | None:
    said: str | None = project.ask("status", "demo")["force_recrawl"]
    return said


def answered(project: CrawlProject) -> dict[str, int]:
    """The status of each page of the last run, by path."""
    paths = {"/", "/a.html", "/b.html", "/c.html", "/no.html"}
    return {entry["path"]: entry["status"] for entry in project.site.log() if entry["path"] in paths}


def test_recrawl_when_all_are_meant_then_all_are_fetched_whole_once_and_nothing_is_sent(project: CrawlProject) -> None:
    said = recrawl(project, "--all")
    before = reason(project)
    first = run(project)
    answers = answered(project)
    second = run(project)

    assert said == {"source": "demo", "documents": 0, "removed": 0, "failed": 0, "to_fetch": 4}
    assert (before, reason(project)) == ("asked for: all URLs", None)
    assert answers == {"/": 200, "/a.html": 200, "/b.html": 200, "/c.html": 200}
    assert (first.counts["unchanged"], first.counts["indexed"], first.counts["new"]) == (3, 1, 1)
    assert second.counts["fetched"] == 0


def test_recrawl_when_one_url_is_meant_then_it_alone_if_it_is_known_and_allowed(project: CrawlProject) -> None:
    url = project.site.url(HOST, "/a.html")

    # Unknown, and refused.
    for path in ("/nowhere.html", "/no.html"):
        refused = project.command("recrawl", "demo", "--url", project.site.url(HOST, path))
        assert (refused.returncode, path in refused.stderr, reason(project)) == (2, True, None)
    said = recrawl(project, "--url", url.removeprefix("http://"))
    before = reason(project)
    run(project)

    assert (said["to_fetch"], before) == (1, f"asked for: {url}")
    assert (answered(project), reason(project)) == ({"/a.html": 200}, None)


def test_recrawl_when_failed_ones_are_meant_then_they_alone(project: CrawlProject) -> None:
    said = recrawl(project, "--failed")
    run(project)

    assert (said["to_fetch"], answered(project)) == (1, {"/c.html": 200})
    assert recrawl(project, "--failed")["to_fetch"] == 0
    assert reason(project) is None


def test_recrawl_when_the_run_does_not_end_then_the_reason_stays_and_the_rest_is_visited(project: CrawlProject) -> None:
    recrawl(project, "--all")
    recrawl(project, "--url", project.site.url(HOST, "/a.html"))
    assert run(project, "-a", "limit=1").ended.exit_code == 3
    between = reason(project)
    seen = set(answered(project))
    assert project.crawl(SEARCHCRAWL_FAILPOINT="row.updated").exit_code == -signal.SIGKILL
    killed = reason(project)
    last = run(project)

    assert between == killed == f"asked for: all URLs; asked for: {project.site.url(HOST, '/a.html')}"
    assert last.ended.exit_code == 0
    assert set(answered(project).values()) == {200}
    assert seen | set(answered(project)) == {"/", "/a.html", "/b.html", "/c.html"}
    assert reason(project) is None


def test_recrawl_when_killed_then_a_second_call_marks_the_rest(project: CrawlProject) -> None:
    ended = COMMANDS.run(project.folder, "recrawl", "demo", SEARCHCRAWL_FAILPOINT="recrawl.marked")

    assert (ended.returncode, reason(project)) == (-signal.SIGKILL, None)
    assert recrawl(project)["to_fetch"] == 4
    run(project)
    assert set(answered(project).values()) == {200}
    assert reason(project) is None


@pytest.mark.parametrize(
    ("edits", "why"), [(False, "asked for: all URLs"), (True, "changed: keep.min_bytes")], ids=["recrawl", "edit"]
)
def test_recrawl_and_edit_when_the_site_is_down_then_the_reason_stays_and_the_next_run_visits_all(
    project: CrawlProject, edits: bool, why: str
) -> None:
    if edits:
        project.edit(**source(project.site, HOST, scope=RULES), **DAYS, keep={"min_bytes": 1})
    else:
        recrawl(project, "--all")
    project.site.down()
    failed = run(project)
    between = reason(project)
    project.site.up()
    after = run(project)

    assert (failed.ended.exit_code, between) == (8, why)
    assert after.ended.exit_code == 0
    assert answered(project) == {"/": 200, "/a.html": 200, "/b.html": 200, "/c.html": 200}
    assert reason(project) is None
