"""``find_opening`` of a spider: what is not to be requested yet waits, and keeps its row, its document and its code (K4)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST: Final = "opening.acme.test"
MINE: Final = """
import datetime
import pathlib

from searchcrawl.plugins import NotYet
from searchcrawl.spiders.web_spider import WebSpider

CLOSED = pathlib.Path(__file__).with_name("closed")


class Days(WebSpider):
    def find_opening(self, url):
        if "/archive/" in url and CLOSED.exists():
            said = eval(CLOSED.read_text())
            never = datetime.datetime.max.replace(tzinfo=datetime.UTC)
            return never if said is None else datetime.datetime.now(datetime.UTC) + datetime.timedelta(**said)
        return None


class Checked:
    # What is in the folder "checked" was checked, with this text.
    def process(self, document):
        known = pathlib.Path(__file__).with_name("checked") / document.url.rpartition("/")[2]
        if "/archive/" in document.url and not (known.exists() and known.read_text() in document.text):
            raise NotYet("nobody has looked at it")
        return document


class Closing(WebSpider):
    asked = 0

    def find_opening(self, url):
        if not url.endswith("/one.html"):
            return None
        self.asked += 1
        return None if self.asked == 1 else datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)


class Wrong(WebSpider):
    def find_opening(self, url):
        return datetime.datetime.now() if "/archive/" in url else None
"""
OLD: Final = ("one", "two")


class Project(CrawlProject):
    """A source whose archive is closed as long as a file is there."""

    def close(self, until: str = "{'days': 2}") -> None:
        (self.folder / "closed").write_text(until, "utf-8")

    def open(self) -> None:
        (self.folder / "closed").unlink()

    def asked(self) -> list[str]:
        """The paths below ``/archive/`` that were requested since it was asked last."""
        found = [
            entry["path"] for entry in self.site.log(host=HOST, robots=False) if entry["path"].startswith("/archive/")
        ]
        self.site.clear_log()
        return sorted(found)


@pytest.fixture(autouse=True)
def filled(clean_site: SiteProcess) -> None:
    clean_site.set_page(HOST, "/", page("start", "/new.html", *(f"/archive/{name}.html" for name in OLD)))
    clean_site.set_page(HOST, "/new.html", page("new"))
    for name in OLD:
        clean_site.set_page(HOST, f"/archive/{name}.html", page(f"old {name}"))


def build(folder: Path, site: SiteProcess, **overrides: object) -> Project:
    (folder / "mine.py").write_text(MINE, "utf-8")
    made = new_project(folder, site, **source(site, HOST), spider="mine:Days", **overrides)
    return Project(folder=made.folder, site=made.site, name=made.name, options=made.options)


def states(project: Project) -> dict[str, str]:
    listed = project.command("urls", "demo", "--json")
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    return {row["url"].rpartition("/")[2]: row["state"] for row in rows}


def at(*names: str) -> list[str]:
    return sorted(f"{HOST}/{name}" for name in names)


ALL: Final = at("", "new.html", *(f"archive/{name}.html" for name in OLD))


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return build(tmp_path, site)


def test_pages_when_they_are_not_to_be_requested_yet_then_they_wait_and_are_indexed_once_they_may(
    project: CrawlProject,
) -> None:
    project.close()
    first = project.crawl()
    closed = project.asked(), project.indexed(), states(project)
    told = project.command("explain", project.site.url(HOST, "/archive/one.html")).stdout
    tried = project.command("test", project.site.url(HOST, "/archive/one.html"), "--source", "demo")
    assert project.asked() == []
    project.crawl()
    still = project.asked()
    project.close("{'seconds': -1}")
    # They are due in two days, and an order to visit them asks again.
    assert project.command("recrawl", "demo", "--all").returncode == 0
    opened = project.crawl()

    assert first.exit_code == 0
    assert closed == (
        [],
        at("", "new.html"),
        {"": "indexed", "new.html": "indexed", "one.html": "todo", "two.html": "todo"},
    )
    assert "not in the index" in told
    assert "not to be requested before" in tried.stdout + tried.stderr
    assert ": find_opening of its spider, or a plug-in that said not yet" in told
    assert still == []
    assert opened.exit_code == 0
    assert project.indexed() == ALL


def test_documents_when_they_are_not_to_be_requested_then_they_stay_as_they_are_whatever_the_site_has(
    project: CrawlProject,
) -> None:
    project.crawl()
    before = project.rows()
    project.asked()
    project.close()
    project.site.set_page(HOST, "/archive/one.html", page("changed"))
    project.site.delete_page(HOST, "/archive/two.html")
    closed = project.crawl()

    assert (closed.exit_code, project.asked(), project.indexed()) == (0, [], ALL)
    assert (closed.counts["deleted"], closed.counts["changed"]) == (0, 0)
    for name in OLD:
        assert project.rows()[f"{HOST}/archive/{name}.html"] == before[f"{HOST}/archive/{name}.html"]


def test_pages_when_they_wait_for_a_moment_then_nothing_is_asked_for_them_until_then(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/", page("start", "/moved.html", *(f"/archive/{name}.html" for name in OLD)))
    site.set_page(HOST, "/moved.html", status=302, headers={"Location": "/archive/one.html"})
    project = build(tmp_path, site)
    project.close()
    ended = project.crawl()
    first = [entry["path"] for entry in site.log(host=HOST, robots=False)]
    waiting = states(project)["moved.html"]
    site.clear_log()
    project.open()
    project.crawl()

    assert (ended.exit_code, sorted(first), waiting) == (0, ["/", "/moved.html"], "todo")
    assert [entry["path"] for entry in site.log(host=HOST, robots=False)] == ["/"]


@pytest.mark.parametrize("until", ["None", "{'days': 400}"])
def test_pages_when_they_are_closed_for_ever_then_others_are_visited_and_nothing_counts_as_a_failure(
    tmp_path: Path, site: SiteProcess, until: str
) -> None:
    project = build(tmp_path, site, lifecycle={"error_runs_before_hidden": 1})
    project.crawl()
    project.close(until)
    ends = [project.crawl() for _ in range(2)]

    assert [(end.exit_code, end.counts["fetch_failures"], end.counts["deleted"]) for end in ends] == [(0, 0, 0)] * 2
    assert project.indexed() == ALL


def test_page_when_a_try_failed_and_it_closes_then_it_is_none_of_the_run(project: CrawlProject) -> None:
    project.edit(**source(project.site, HOST, retries=2), spider="mine:Closing")
    project.site.set_behaviour(HOST, "/archive/one.html", status=503, headers={"Retry-After": "1"})
    ended = project.crawl()

    assert (ended.exit_code, ended.counts["fetched"], ended.counts["fetch_failures"]) == (0, 3, 0)
    assert project.indexed() == [url for url in ALL if not url.endswith("one.html")]


def test_page_when_it_is_allowed_again_and_waits_then_no_rule_is_named(project: CrawlProject) -> None:
    project.edit(**source(project.site, HOST), spider="mine:Days")
    shut = source(project.site, HOST)
    shut["scope"]["exclude_urls"] = ["*/archive/*"]
    project.edit(**shut, spider="mine:Days")
    project.crawl()
    refused = states(project)["one.html"]
    project.close()
    project.edit(**source(project.site, HOST), spider="mine:Days")
    project.crawl()

    assert (refused, states(project)["one.html"]) == ("rejected", "todo")
    assert project.rows()[f"{HOST}/archive/one.html"]["rule"] is None


def test_edit_when_pages_are_not_to_be_requested_then_it_holds_for_them_once_they_may(project: CrawlProject) -> None:
    project.crawl()
    project.close("{'seconds': 1}")
    project.edit(**source(project.site, HOST), spider="mine:Days", keep={"exclude_names": ["two.html"]})
    project.crawl()
    closed = project.indexed()
    project.open()
    time.sleep(1)
    project.crawl()

    assert closed == ALL
    assert project.indexed() == [url for url in ALL if not url.endswith("two.html")]


def test_page_when_the_spider_answers_something_else_then_it_alone_fails(project: CrawlProject) -> None:
    project.crawl()
    project.edit(**source(project.site, HOST), spider="mine:Wrong")
    ended = project.crawl()

    row = project.rows()[f"{HOST}/archive/one.html"]
    assert (ended.exit_code, row["code"], project.indexed()) == (0, 903, ALL)
    assert "find_opening: TypeError: returned a datetime without a time zone" in row["error"]


def test_documents_when_a_service_cannot_judge_them_yet_then_they_wait_and_those_of_before_stay(
    tmp_path: Path, site: SiteProcess
) -> None:
    project = build(tmp_path, site, document_service="mine:Checked")
    checked = tmp_path / "checked"
    checked.mkdir()
    first = project.crawl()
    waiting = project.indexed(), states(project)
    (checked / "one.html").write_text("old one", "utf-8")
    project.crawl()
    one = project.indexed()
    site.set_page(HOST, "/archive/one.html", page("changed since"))
    project.crawl()
    kept = project.found("changed"), project.indexed()
    (checked / "one.html").write_text("changed since", "utf-8")
    (checked / "two.html").write_text("old two", "utf-8")
    last = project.crawl()

    assert (first.exit_code, waiting[0]) == (0, at("", "new.html"))
    assert (waiting[1]["one.html"], waiting[1]["two.html"]) == ("todo", "todo")
    assert one == at("", "new.html", "archive/one.html")
    assert kept == ([], one)
    assert (last.exit_code, project.indexed(), project.found("changed")) == (0, ALL, at("archive/one.html"))


def test_start_page_when_it_is_not_to_be_requested_yet_then_the_run_has_not_failed(
    tmp_path: Path, site: SiteProcess
) -> None:
    site.set_page(HOST, "/robots.txt", f"Sitemap: {site.url(HOST, '/map.txt')}\n", content_type="text/plain")
    site.set_page(HOST, "/map.txt", f"{site.url(HOST, '/new.html')}\n", content_type="text/plain")
    project = build(tmp_path, site)
    project.edit(**{**source(site, HOST), "start": {"urls": [site.url(HOST, "/archive/one.html")]}}, spider="mine:Days")
    project.close()
    ended = project.crawl()

    assert (ended.exit_code, project.indexed()) == (0, at("new.html"))
