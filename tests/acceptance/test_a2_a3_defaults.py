"""A2, A3: defaults for all sources and sets of parameters, which a source overrides; what must be there: test_bad_input.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, write_project

HOST: Final = "defaults.acme.test"
HOSTS: Final = {"one": "one.acme.test", "two": "two.acme.test", "three": "three.acme.test"}
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
    for host in HOSTS.values():
        site.set_page(host, "/", page(f"{host} start", "/a.html"))
        site.set_page(host, "/a.html", page(f"{host} a", "/b.html"))
        site.set_page(host, "/b.html", page(f"{host} b"))
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


def write_all(folder: Path, site: SiteProcess, *, depth: int, header: str) -> None:
    """Sources one and two with the set ``shared``, three with ``standard``."""
    sets = {
        "shared": {"scope": {"depth": depth}, "fetch": {"headers": {"X-Set": header}}},
        "standard": {"scope": {"depth": 2}, "fetch": {"headers": {"X-Set": "standard"}}},
    }
    chosen: dict[str, dict[str, Any]] = {"one": {"parameters": "shared"}, "two": {"parameters": "shared"}, "three": {}}
    for name, keys in chosen.items():
        write_project(folder, site, name, project={"parameters": sets}, **keys, **source(site, HOSTS[name]))


def crawl_all(folder: Path, site: SiteProcess) -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """What each source has in the index, and what was sent as X-Set to its host."""
    site.clear_log()
    indexed: dict[str, list[str]] = {}
    for name in HOSTS:
        project = CrawlProject(folder=folder, site=site, name=name)
        ended = project.crawl()
        assert ended.exit_code == 0, ended.errors
        indexed[name] = [url.partition("/")[2] for url in project.indexed()]
    sent = {
        name: {entry["headers"].get("x-set", "") for entry in site.log(host=host, robots=False)}
        for name, host in HOSTS.items()
    }
    return indexed, sent


def test_crawl_when_two_sources_share_a_set_and_it_is_edited_then_both_change(
    site: SiteProcess, tmp_path: Path
) -> None:
    write_all(tmp_path, site, depth=1, header="first")

    indexed, sent = crawl_all(tmp_path, site)

    assert indexed == {"one": ["", "a.html"], "two": ["", "a.html"], "three": ["", "a.html", "b.html"]}
    assert sent == {"one": {"first"}, "two": {"first"}, "three": {"standard"}}

    write_all(tmp_path, site, depth=2, header="second")
    indexed, sent = crawl_all(tmp_path, site)

    assert indexed == {name: ["", "a.html", "b.html"] for name in HOSTS}
    assert sent == {"one": {"second"}, "two": {"second"}, "three": {"standard"}}
