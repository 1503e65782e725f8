"""L1, J2: ``explain`` and ``test`` as users call them: what they answer, and what the site saw of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.crawl_forks import COMMANDS
from tests.login_site import LOG_OUT, PASSWORD, USER, LoginSite
from tests.site.client import SiteProcess, source_toml, write_project
from tests.site.pdf import make_pdf
from tests.stored_rows import query

HOST: Final = "www.acme.test"
DOCS: Final = "docs.acme.test"
SHAPE: Final = ["url", "source", "in_index", "verdict", "decided_by", "also", "steps", "others"]


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    paths = ("/good.html", "/manual.pdf", "/tmp/secret.html", "/x.zip", "/hop", "/noindex.html", "/gone.html")
    outside = (site.url("offsite.test", "/a.html"), site.url(DOCS, "/d.html"))
    site.set_page(HOST, "/", page("start", *paths, *outside))
    head = '<meta name="description" content="what it is"><meta name="robots" content="noindex">'
    site.set_page(HOST, "/good.html", page("good", "/more.html", "/x.zip", text="barometer and rain"))
    site.set_page(HOST, "/noindex.html", page("hidden", "/more.html", text="not for all", head=head))
    site.set_page(HOST, "/noindex.html", headers={"X-Robots-Tag": "nofollow"})
    site.set_page(HOST, "/manual.pdf", make_pdf("quicksilver"), content_type="application/pdf")
    site.set_page(HOST, "/hop", "", status=302, headers={"Location": "/landing.html"})
    site.set_page(HOST, "/landing.html", page("landing", "/more.html", "/x.zip", text="barometer and wind"))
    site.set_page(HOST, "/robots.txt", "User-agent: *\nDisallow: /tmp/\n", content_type="text/plain")
    site.set_page(DOCS, "/d.html", page("docs", text="in the docs"))
    return site


def tables(site: SiteProcess) -> dict[str, Any]:
    return {
        "start": {"urls": [site.url(HOST)], "sitemaps": "off"},
        "scope": {"include_hosts": [HOST], "exclude_urls": ["*.zip"]},
        "fetch": {"retries": 0},
    }


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    """Two sources; only the first has been crawled."""
    project = new_project(tmp_path_factory.mktemp("asked"), site, **tables(site))
    other = source_toml(
        site, **{**tables(site), "start": {"urls": [site.url(DOCS, "/d.html")]}, "scope": {"include_hosts": [DOCS]}}
    )
    (project.folder / "sources" / "docs.toml").write_text(other, "utf-8")
    assert project.crawl().exit_code == 0
    return project


def stored(folder: Path) -> list[list[tuple[Any, ...]]]:
    """All that the store holds of URLs, hosts, documents, runs and robots files, and the files of the project."""
    wanted = ("urls", "hosts", "documents", "runs", "robots_copies", "leases", "sources")
    rows = [sorted(query(folder, f"SELECT * FROM {table}"), key=repr) for table in wanted]
    files = sorted(
        (str(path), path.stat().st_size) for path in folder.rglob("*") if path.suffix in {".gz", ".log", ".toml"}
    )
    return [*rows, files]


def test_explain_when_asked_without_live_then_shape_and_no_request(site: SiteProcess, project: CrawlProject) -> None:
    site.clear_log()

    told = project.ask("explain", f"{HOST}:{site.port}/x.zip#part")

    assert list(told) == SHAPE
    assert (told["url"], told["source"], told["in_index"]) == (site.url(HOST, "/x.zip"), "demo", False)
    assert told["verdict"] == "not in the index: 955, outside the boundary"
    place = {"file": "sources/demo.toml", "key": "scope.exclude_urls"}
    proposal = {"action": "remove", "value": "*.zip", **place}
    rule = {"step": "boundary", "rule": "*.zip", "proposal": proposal, **place}
    assert (told["decided_by"], told["also"], told["others"]) == (rule, [], [])
    assert all(list(step) == ["step", "outcome", "detail", "rule"] for step in told["steps"])
    assert site.log() == []


def test_explain_when_shown_to_people_then_the_verdict_comes_first_and_the_include_can_be_copied(
    site: SiteProcess, project: CrawlProject
) -> None:
    shown = project.command("explain", site.url("offsite.test", "/a.html")).stdout.splitlines()

    assert shown[:4] == [
        site.url("offsite.test", "/a.html"),
        "not in the index: 955, outside the boundary",
        "  decided by  boundary: scope.include_hosts: no include matches (sources/demo.toml)",
        '  to admit it add "offsite.test" to scope.include_hosts in sources/demo.toml',
    ]
    assert any(line.startswith("  found        unknown ") and "refused_links" in line for line in shown)
    refused = project.command("explain", site.url(HOST, "/x.zip")).stdout.splitlines()
    assert any(line.startswith("  found        seen ") and f"on {site.url(HOST)}" in line for line in refused)


def test_explain_when_several_sources_know_or_would_take_it_then_the_deciding_one_first(
    site: SiteProcess, project: CrawlProject
) -> None:
    indexed = project.ask("explain", site.url(HOST, "/good.html"))
    taken = project.ask("explain", site.url(DOCS, "/d.html"))
    refused = project.ask("explain", site.url(DOCS, "/d.html"), "--source", "demo")

    assert (indexed["source"], indexed["in_index"], indexed["verdict"]) == ("demo", True, "in the index")
    assert indexed["decided_by"]["rule"] == HOST
    # The crawled source refuses it, and keeps no row of links to other hosts; the other would take it.
    assert (taken["source"], taken["others"]) == ("docs", [])
    assert taken["verdict"] == "not in the index: the next run asks for it, as a start URL"
    assert (refused["source"], refused["others"]) == ("demo", [])
    assert refused["verdict"] == "not in the index: 955, outside the boundary"


def test_explain_when_a_url_was_never_seen_then_what_would_become_of_it(
    site: SiteProcess, project: CrawlProject
) -> None:
    def verdict(path: str) -> tuple[str, str, str | None]:
        told = project.ask("explain", site.url(HOST, path), "--source", "demo")
        return told["verdict"], told["decided_by"]["rule"], told["decided_by"]["file"]

    never = "not in the index: never seen"
    assert verdict("/nowhere.html") == (
        f"{never}: no page that was read has a link to it that may be followed, and no sitemap is read",
        "no link to it was followed",
        None,
    )  # fmt: skip
    assert verdict("/tmp/other.html") == (
        f"{never}, and it would be refused (951, robots.txt forbids it)",
        "Disallow: /tmp/",
        site.url(HOST, "/robots.txt"),
    )
    assert verdict("/other.zip")[1:] == ("*.zip", "sources/demo.toml")


def test_explain_when_live_then_the_site_is_asked_once_and_nothing_is_stored(
    site: SiteProcess, project: CrawlProject
) -> None:
    before = stored(project.folder)
    site.clear_log()

    same = project.ask("explain", site.url(HOST, "/good.html"), "--live")
    asked = site.requested()
    refused = project.ask("explain", site.url(HOST, "/tmp/secret.html"), "--live")

    assert (same["steps"][-1]["step"], same["steps"][-1]["outcome"]) == ("live", "read")
    assert same["steps"][-1]["detail"].startswith("now 200 OK; text/html")
    assert same["steps"][-1]["detail"].endswith("as it is known")
    assert asked == [f"{HOST}/good.html"]
    assert (refused["steps"][-1]["outcome"], refused["steps"][-1]["rule"]) == ("refused", "Disallow: /tmp/")
    assert site.requested() == asked
    assert stored(project.folder) == before


def test_test_when_a_page_is_fetched_then_fields_text_and_links_with_verdicts_and_nothing_is_stored(
    site: SiteProcess, project: CrawlProject
) -> None:
    before = stored(project.folder)
    site.clear_log()

    view = project.ask("test", f"{HOST}:{site.port}/hop", "--source", "demo")

    assert (view["url"], view["code"]) == (site.url(HOST, "/hop"), 200)
    assert view["redirects"] == [{"url": site.url(HOST, "/hop"), "code": 302}]
    assert (view["fields"]["title"], view["fields"]["mimetype"]) == ("landing", "text/html")
    assert view["fields"]["content_length"] > 0
    assert view["text"].startswith("barometer and wind")
    assert view["links"] == [
        {"url": site.url(HOST, "/more.html"), "allowed": True, "rule": f"scope.include_hosts: {HOST}"},
        {"url": site.url(HOST, "/x.zip"), "allowed": False, "rule": "scope.exclude_urls: *.zip"},
    ]
    assert site.requested() == [f"{HOST}/hop", f"{HOST}/landing.html"]
    assert stored(project.folder) == before


@pytest.mark.parametrize(
    ("path", "code", "rule", "text"),
    [
        ("/manual.pdf", 200, None, "quicksilver"),
        ("/noindex.html", 952, "keep.meta_robots: meta robots noindex", "not for all"),
        ("/tmp/secret.html", 951, "Disallow: /tmp/", ""),
        ("/gone.html", 404, None, ""),
        ("/x.zip", 955, "scope.exclude_urls: *.zip", ""),
    ],
)
def test_test_when_a_page_is_of_any_kind_then_its_code_rule_and_text(
    site: SiteProcess, project: CrawlProject, path: str, code: int, rule: str | None, text: str
) -> None:
    view = project.ask("test", site.url(HOST, path), "--source", "demo")

    assert (view["code"], view["rule"]) == (code, rule)
    assert view["text"].startswith(text)
    assert bool(view["fields"]) == (code == 200)


def test_test_when_a_header_says_nofollow_then_it_is_named_at_each_link(
    site: SiteProcess, project: CrawlProject
) -> None:
    view = project.ask("test", site.url(HOST, "/noindex.html"), "--source", "demo")

    assert view["links"] == [
        {"url": site.url(HOST, "/more.html"), "allowed": False, "rule": "keep.meta_robots: X-Robots-Tag nofollow"}
    ]


def test_test_when_shown_to_people_then_code_fields_text_and_links(site: SiteProcess, project: CrawlProject) -> None:
    shown = project.command("test", site.url(HOST, "/good.html"), "--source", "demo").stdout

    assert shown.startswith(f"{site.url(HOST, '/good.html')}\n200 OK\n")
    assert "\n  title           good\n" in shown
    assert f"\n  refused: {site.url(HOST, '/x.zip')}  (scope.exclude_urls: *.zip)\n" in shown


def test_test_when_the_source_logs_in_then_the_page_behind_the_login_is_shown(tmp_path: Path) -> None:
    with LoginSite() as site:
        login = {"type": "form", "url": site.url("/login", "form"), "username": USER, "password": PASSWORD}
        write_project(
            tmp_path,
            site.port,
            start={"urls": [site.url(host="form")]},
            scope={"include_hosts": ["form.acme.test"]},
            login={**login, "check": LOG_OUT},
        )
        done = COMMANDS.run(tmp_path, "test", site.url("/one.html", "form"), "--source", "demo", "--json")

        view = json.loads(done.stdout)
        assert (view["code"], bool(view["fields"]), site.state.logins) == (200, True, 1)
        assert PASSWORD not in done.stdout + done.stderr


OWN: Final = """
from scrapy.exceptions import DropItem

class Dropping:
    def process_item(self, item):
        raise DropItem("not wanted")

class Keeping:
    async def process_spider_output(self, response, result):
        async for item in result:
            if item is None:
                yield item
"""


def test_test_when_components_of_the_users_own_say_no_then_it_is_said(site: SiteProcess, tmp_path: Path) -> None:
    (tmp_path / "own_parts.py").write_text(OWN, "utf-8")
    command = ("test", site.url(HOST, "/good.html"), "--source", "demo")
    own = new_project(tmp_path, site, settings={"ITEM_PIPELINES": {"own_parts.Dropping": 100}}, **tables(site))
    view = own.ask(*command)
    own.edit(settings={"SPIDER_MIDDLEWARES": {"own_parts.Keeping": 300}}, **tables(site))

    kept = own.command(*command)

    said = "settings.ITEM_PIPELINES: own_parts.Dropping: not wanted"
    assert (view["code"], view["rule"], view["fields"]) == (952, said, {})
    assert kept.returncode == 4
    assert kept.stderr.startswith("sources/demo.toml: settings: the visit came to no end")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("explain",), "searchcrawl explain: error: missing argument: searchcrawl explain URL"),
        (("explain", "mailto:a@b.test"), "searchcrawl: not an http or https URL: 'mailto:a@b.test'"),
        (("explain", "http://a.test/", "--source", "nope"), "searchcrawl: unknown source: nope"),
        (("test", "http://a.test/"), "searchcrawl test: error: missing option: --source NAME"),
        (("test", "no URL", "--source", "demo"), "searchcrawl: not a URL: 'no URL'"),
    ],
)
def test_commands_when_used_wrongly_then_exit_2_and_one_reason(
    project: CrawlProject, arguments: tuple[str, ...], line: str
) -> None:
    ended = project.command(*arguments)

    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (2, line)
