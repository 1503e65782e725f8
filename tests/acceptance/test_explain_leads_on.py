"""`explain` leads on: to the source whose page has the link, to robots.txt, to where a redirect goes, to the table that may help (L1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.site.client import SiteProcess, write_project

HOST: Final = "www.acme.test"
OTHER: Final = "shop.acme.test"
WORDS: Final = "barometer " * 30
LINKS: Final = ("/old.html", "/to-nothing.html", "/locked.html", "/empty.html", "/private/x.html", "/page.odd")


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        anchors = "".join(f"<a href='{link}'>{link}</a> " for link in (*LINKS, site.url("offsite.test", "/x.html")))
        body = f"<title>start</title><p>{WORDS}</p>{anchors}<a rel=nofollow href='/behind.html'>behind</a>"
        pages = {"/": body, "/new.html": f"<title>new</title><p>{WORDS} new</p>", "/empty.html": "<div id=root></div>"}
        site.set_pages(HOST, pages)
        site.set_page(HOST, "/robots.txt", "User-agent: *\nDisallow: /private/\n", content_type="text/plain")
        site.set_page(HOST, "/page.odd", "odd", content_type="application/x-odd")
        for path, target in (("/old.html", "/new.html"), ("/to-nothing.html", "/nothing.html")):
            site.set_page(HOST, path, "", status=301, headers={"Location": target})
        site.set_page(HOST, "/locked.html", "who?", status=401)
        yield site


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    folder: Path = tmp_path_factory.mktemp("explain") / "project"
    scope = {"include_hosts": [f"={HOST}"], "exclude_urls": ["*/private/*"]}
    # By its name, and by the rules against the URLs below, it would come first.
    write_project(folder, site, "aaa", start={"urls": [site.url(OTHER)]}, scope={"include_hosts": [f"={OTHER}"]})
    made = new_project(folder, site, start={"urls": [site.url(HOST)]}, scope=scope)
    assert made.crawl().exit_code == 0
    return made


def ask(project: CrawlProject, path: str, host: str = HOST, *options: str) -> dict[str, Any]:
    done = project.command("explain", "--json", *options, project.site.url(host, path))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_explain_when_the_url_is_unknown_then_the_source_answers_whose_page_links_to_it(project: CrawlProject) -> None:
    outside, nofollow = ask(project, "/x.html", "offsite.test"), ask(project, "/behind.html")
    nowhere = ask(project, "/x.html", "elsewhere.test")

    assert (outside["source"], nofollow["source"], nowhere["source"]) == ("demo", "demo", "aaa")
    assert next(s["detail"] for s in outside["steps"] if s["step"] == "found").endswith("to its host 1 link so far")


def test_explain_when_a_rule_and_robots_forbid_it_then_both_are_named(project: CrawlProject) -> None:
    found = ask(project, "/private/x.html")

    assert found["decided_by"]["key"] == "scope.exclude_urls"
    assert [(each["key"], each["rule"]) for each in found["also"]] == [("robots.txt", "Disallow: /private/")]


def test_explain_when_it_redirects_then_says_whether_the_target_is_in_the_index(project: CrawlProject) -> None:
    good, bad = ask(project, "/old.html"), ask(project, "/to-nothing.html")

    assert good["verdict"].endswith("/new.html, which is in the index")
    assert bad["verdict"].endswith("/nothing.html, which is not in the index (404 Not Found)")


@pytest.mark.parametrize(
    ("path", "table"), [("/locked.html", "[login]"), ("/empty.html", "[render]"), ("/page.odd", "[converters]")]
)
def test_explain_when_a_table_may_help_then_it_leads_there(project: CrawlProject, path: str, table: str) -> None:
    found = ask(project, path)
    shown = project.command("explain", project.site.url(HOST, path)).stdout

    assert table in found["decided_by"]["hint"]
    assert found["decided_by"]["hint"] in shown


def test_explain_when_nothing_may_help_then_no_hint(project: CrawlProject) -> None:
    assert "hint" not in ask(project, "/")["decided_by"]
