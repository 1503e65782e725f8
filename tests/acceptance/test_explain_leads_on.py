"""`explain` leads on: to the source whose page has the link, to robots.txt, to where a redirect goes, to the table that may help (L1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.site.client import SiteProcess, write_project

HOST: Final = "www.acme.test"
OTHER: Final = "shop.acme.test"
WORDS: Final = "barometer " * 30
#: URLs that redirect to what a rule refuses, or to nothing.
REFUSED_TARGETS: Final = (
    ("/302-robots", "/forbidden/a"),
    ("/301-excluded", "/excluded/a"),
    ("/302-excluded", "/excluded/b"),
    ("/301-outside", "http://outside.test/a"),
    ("/302-nothing", "/never"),
)
LINKS: Final = (
    *("/old.html", "/to-nothing.html", "/locked.html", "/empty.html", "/private/x.html", "/page.odd", "/app.html"),
    *(path for path, _ in REFUSED_TARGETS),
)


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    anchors = "".join(f"<a href='{link}'>{link}</a> " for link in (*LINKS, site.url("offsite.test", "/x.html")))
    body = f"<title>start</title><p>{WORDS}</p>{anchors}<a rel=nofollow href='/behind.html'>behind</a>"
    empty = "<title>app</title><noscript>needs JavaScript</noscript><div id=root></div><script src=a.js></script>"
    pages = {
        "/app.html": empty,
        "/": body,
        "/new.html": f"<title>new</title><p>{WORDS} new</p>",
        "/empty.html": "<div id=root></div>",
    }
    site.set_pages(HOST, pages)
    site.set_page(
        HOST,
        "/robots.txt",
        "User-agent: *\nDisallow: /private/\nDisallow: /forbidden/\n",
        content_type="text/plain",
    )
    site.set_page(HOST, "/page.odd", "odd", content_type="application/x-odd")
    for path, target in (("/old.html", "/new.html"), ("/to-nothing.html", "/nothing.html"), *REFUSED_TARGETS):
        status = 302 if path.startswith("/302") else 301
        site.set_page(HOST, path, "", status=status, headers={"Location": target})
    site.set_page(HOST, "/locked.html", "who?", status=401)
    return site


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    folder: Path = tmp_path_factory.mktemp("explain") / "project"
    scope = {"include_hosts": [f"={HOST}"], "exclude_urls": ["*/private/*", "*/excluded/*"]}
    # By its name, and by the rules against the URLs below, it would come first.
    write_project(folder, site, "aaa", start={"urls": [site.url(OTHER)]}, scope={"include_hosts": [f"={OTHER}"]})
    made = new_project(folder, site, start={"urls": [site.url(HOST)]}, scope=scope)
    assert made.crawl().exit_code == 0
    return made


def ask(project: CrawlProject, path: str, host: str = HOST, *options: str) -> dict[str, Any]:
    return project.ask("explain", *options, project.site.url(host, path))


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
    ("path", "table"),
    [
        ("/locked.html", "[login]"),
        ("/empty.html", "[render]"),
        ("/page.odd", "[converters]"),
        ("/app.html", "[render]"),
    ],
)
def test_explain_when_a_table_may_help_then_it_leads_there(project: CrawlProject, path: str, table: str) -> None:
    found = ask(project, path)
    shown = project.command("explain", project.site.url(HOST, path)).stdout

    assert table in found["decided_by"]["hint"]
    assert found["decided_by"]["hint"] in shown


def test_explain_when_nothing_may_help_then_no_hint(project: CrawlProject) -> None:
    assert "hint" not in ask(project, "/")["decided_by"]


@pytest.mark.parametrize(("path", "target"), REFUSED_TARGETS)
def test_explain_when_it_redirects_to_what_is_not_fetched_then_each_of_both_names_the_other(
    project: CrawlProject, path: str, target: str
) -> None:
    at = target if target.startswith("http:") else project.site.url(HOST, target)

    leading = ask(project, path)
    led = project.ask("explain", at)

    redirect = next(step for step in leading["steps"] if step["step"] == "redirect")
    assert redirect["detail"].endswith(f" \N{RIGHTWARDS ARROW} {at}")
    assert redirect["outcome"] == ("followed" if path == "/302-nothing" else "refused")
    said = next(step["detail"] for step in led["steps"] if step["step"] == "redirect")
    assert said.startswith(f"{project.site.url(HOST, path)} redirects to it")
    assert led["source"] == "demo"


def test_explain_when_a_followed_redirect_brought_the_page_then_it_names_where_it_came_from(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "led.acme.test"
    site.set_page(host, "/", "", status=302, headers={"Location": "/home.html"})
    site.set_page(host, "/home.html", f"<title>home</title><p>{WORDS}")
    made = new_project(tmp_path, site, start={"urls": [site.url(host)]}, scope={"include_hosts": [f"={host}"]})
    made.crawl()

    steps = ask(made, "", host)["steps"]

    assert next(step["detail"] for step in steps if step["step"] == "redirect").endswith(site.url(host, "/home.html"))


def test_explain_when_robots_cannot_be_read_then_no_rule_is_blamed_and_nothing_is_to_be_disobeyed(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "broken.acme.test"
    site.set_page(host, "/robots.txt", "", status=503)
    gone = "http://127.0.0.1:9/"
    tables = {"start": {"urls": [site.url(host), gone]}, "scope": {"include_hosts": [f"={host}", "127.0.0.1"]}}
    made = new_project(tmp_path, site, **tables, fetch={"retries": 0, "private_networks": ["127.0.0.0/8"]})
    unseen = "robots.txt answered 503; tried again in the next run"

    ended = made.command("crawl", "demo")
    found, away = ask(made, "", host), made.ask("explain", gone)
    shown = made.command("explain", made.site.url(host)).stdout

    assert ended.returncode == 8
    for text in (ended.stderr, made.command("urls", "demo").stdout, shown):
        assert unseen in text
        assert "robots.unavailable" not in text
        assert "robots.obey" not in text
    assert found["verdict"] == f"not in the index: 951, {unseen}"
    assert "proposal" not in found["decided_by"]
    assert next(s["detail"] for s in away["steps"] if s["step"] == "robots") == f"{gone}robots.txt could not be read"


def test_explain_when_a_url_was_submitted_then_says_so_before_the_next_run_visits_it(
    project: CrawlProject, site: SiteProcess
) -> None:
    url = site.url(HOST, "/by-hand.html")
    assert project.command("submit", url, "--source", "demo").returncode == 0

    assert ask(project, "/by-hand.html")["verdict"].endswith("submitted by hand; the next run visits it")
    project.crawl()

    found = next(step["detail"] for step in ask(project, "/by-hand.html")["steps"] if step["step"] == "found")
    assert found.startswith("by no page that is still known, or submitted by hand, at depth 1")


def test_explain_when_the_address_may_not_be_reached_then_it_says_so_before_the_first_crawl_as_after_it(
    site: SiteProcess, tmp_path: Path
) -> None:
    tables = {"start": {"urls": ["http://127.0.0.1:9/"]}, "scope": {"include_hosts": ["127.0.0.1"]}}
    made = new_project(tmp_path, site, **tables, fetch={"private_networks": []})

    before = made.ask("explain", "http://127.0.0.1:9/x")
    made.crawl()
    after = made.ask("explain", "http://127.0.0.1:9/")

    assert before["verdict"] == "not in the index: never seen, and its address may not be reached (907)"
    assert before["decided_by"]["key"] == "fetch.private_networks"
    answer = next(step["detail"] for step in after["steps"] if step["step"] == "answer")
    assert "address refused: 127.0.0.1 may not be reached (127.0.0.0/8 loopback; fetch.private_networks)" in answer
