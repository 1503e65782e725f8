"""A2: defaults for all sources, overridden by a source; what is mandatory is in test_bad_input.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, write_project

HOST: Final = "defaults.acme.test"
ROBOTS: Final = """\
User-agent: acmebot
Disallow: /acmebot.html

User-agent: Ultra Search
Disallow: /ultra.html

User-agent: *
Disallow: /others.html
"""


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, **{name: page(name) for name in ("acmebot", "ultra", "others")})
    site.set_page(HOST, "/acmebot.html", page("acmebot", "/deep.html"))
    site.set_page(HOST, "/ultra.html", page("ultra", "/deep.html"))
    site.set_page(HOST, "/deep.html", page("deep"))
    site.set_page(HOST, "/robots.txt", ROBOTS, content_type="text/plain")
    return site


def headers_sent(site: SiteProcess, path: str) -> dict[str, str]:
    """The headers of the one request for a page, their names in lower case."""
    (entry,) = [entry for entry in site.log(host=HOST) if entry["path"] == path]
    return {name.lower(): value for name, value in entry["headers"].items()}


def test_crawl_when_the_project_has_defaults_then_a_source_takes_what_it_does_not_say(
    site: SiteProcess, tmp_path: Path
) -> None:
    defaults = {"scope": {"depth": 1}, "fetch": {"headers": {"X-From": "defaults"}}, "robots": {"crawl_delay": False}}
    project = new_project(tmp_path, site, project={"defaults": defaults}, **source(site, HOST))
    site.clear_log()

    first = project.crawl()

    assert first.exit_code == 0
    assert headers_sent(site, "/")["x-from"] == "defaults"
    assert f"{HOST}/deep.html" not in site.requested()
    assert project.indexed() == [f"{HOST}/", f"{HOST}/acmebot.html", f"{HOST}/ultra.html"]

    overriding: dict[str, Any] = source(site, HOST, headers={"X-From": "source"})
    overriding["scope"] = {**overriding["scope"], "depth": 2}
    project.edit(**overriding)
    site.clear_log()
    second = project.crawl()

    assert second.exit_code == 0
    assert headers_sent(site, "/")["x-from"] == "source"
    assert f"{HOST}/deep.html" in project.indexed()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("project", "robots", "sent", "forbidden"),
    [
        ({}, {}, "searchcrawl/", "/others.html"),
        ({"user_agent": "acmebot", "contact": "https://acme.test/bot"}, {}, "acmebot/", "/acmebot.html"),
        ({"user_agent": "acmebot"}, {"user_agent": "Ultra Search"}, "acmebot/", "/ultra.html"),
    ],
)
def test_crawl_when_an_agent_is_named_then_the_header_and_the_group_of_robots_follow(
    site: SiteProcess, tmp_path: Path, project: dict[str, Any], robots: dict[str, Any], sent: str, forbidden: str
) -> None:
    named = new_project(tmp_path, site, project=project, robots=robots, **source(site, HOST))
    site.clear_log()

    ended = named.crawl()

    assert ended.exit_code == 0
    agents = {entry["headers"].get("user-agent", "") for entry in site.log(host=HOST)}
    contact = project.get("contact", "webmaster@acme.test")
    (agent,) = agents
    assert agent.startswith(sent)
    assert agent.endswith(f"(+{contact})")
    asked = {entry["path"] for entry in site.log(host=HOST, robots=False)}
    assert asked == {"/", "/acmebot.html", "/ultra.html", "/others.html", "/deep.html"} - {forbidden}
    assert f"{HOST}{forbidden}" not in named.indexed()
    assert named.codes()[f"{HOST}{forbidden}"] == 951


def test_sources_show_when_asked_then_each_value_with_where_it_was_written(site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(
        tmp_path,
        site,
        project={"defaults": {"fetch": {"retries": 7}}, "parameters": {"slow": {"fetch": {"concurrency": 1}}}},
        parameters="slow",
    )

    values = project.ask("sources", "show", "demo")
    for_people = project.command("sources", "show", "demo")

    assert for_people.returncode == 0
    assert values["fetch.delay_seconds"] == {"value": 0.0, "origin": "sources/demo.toml"}
    assert values["fetch.concurrency"] == {"value": 1, "origin": "searchcrawl.toml [parameters.slow]"}
    assert values["fetch.retries"] == {"value": 7, "origin": "searchcrawl.toml [defaults]"}
    assert values["lifecycle.remove_on"] == {"value": [404, 410], "origin": "built-in"}
    lines = [line.split() for line in for_people.stdout.splitlines() if line.strip().startswith("fetch.concurrency")]
    assert lines == [["fetch.concurrency", "1", "searchcrawl.toml", "[parameters.slow]"]]


def test_crawl_when_the_defaults_change_then_it_counts_like_an_edited_source_where_documents_depend_on_it(
    site: SiteProcess, tmp_path: Path
) -> None:
    def with_defaults(**fetch: Any) -> CrawlProject:
        write_project(tmp_path, site, project={"defaults": {"fetch": fetch}}, **source(site, HOST))
        return CrawlProject(folder=tmp_path, site=site)

    def forced(project: CrawlProject) -> object:
        return project.ask("status", "demo")["force_recrawl"]

    project = with_defaults(concurrency=4)
    project.crawl()

    before = forced(project)
    without_effect = forced(with_defaults(concurrency=2, max_redirects=3))
    with_effect = forced(with_defaults(default_charset="utf-8"))

    assert (before, without_effect, with_effect) == (None, None, "changed: fetch.default_charset")
