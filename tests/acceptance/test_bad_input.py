"""Hostile pages, servers that are not there, broken configuration: a code or an exit code each, and no more (X-R1-R16)."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.site import hostile
from tests.site.client import ADDRESS, SiteProcess

MANY_LINKS: Final = 100_000
#: The code of each hostile page (C7); the same text under two charsets that don't exist is a copy.
CODES: Final = {
    "good": 200,
    "gzip-truncated": 958,
    "gzip-crc": 958,
    "gzip-garbage": 958,
    "gzip-bomb": 960,
    "charset-unknown": 909,
    "charset-rot13": 200,
    "charset-lie": 200,
    "nested": 200,
    "huge": 200,
    "lines": 200,
    "links": 200,
    "binary": 1009,
    "nul": 200,
    "redirect-blank": 1003,
    "redirect-nowhere": 1003,
    "redirect-bad": 1003,
    "redirect-file": 1003,
    "not-modified": 304,
    "odd-status": 799,
    "cut": 958,
    "cut-chunked": 958,
    "cut-by-reset": 958,
    "reset": 905,
    "hang": 902,
    "drip": 902,
    "slow-headers": 902,
    "endless-headers": 1006,
    "endless-body": 960,
    "two-lengths": 1006,
    "not-http": 1006,
}


class Crawled(NamedTuple):
    """A project after its run over the hostile host, and what the probe measured."""

    project: CrawlProject
    ended: Ended
    probe: dict[str, Any]


@pytest.fixture(scope="module")
def crawled(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    _warm_up(site)
    folder = tmp_path_factory.mktemp("bad")
    starts = [
        site.url(hostile.HOST),
        site.url(hostile.HOST, "/redirect-private.html"),
        site.url("docs.acme.test", "/chain/1.html"),
        "http://refused.acme.test:1/",
        "http://no-such-name.invalid/",
        f"http://127.0.0.2:{site.port}/",
    ]
    project = new_project(
        folder,
        site,
        start={"urls": starts},
        scope={"include_hosts": ["acme.test", "no-such-name.invalid", "127.0.0.2"], "depth": 1},
        fetch={"retries": 0, "timeout_seconds": 10, "host_concurrency": 8},
    )
    return Crawled(project, *project.crawl_measured())


def _warm_up(site: SiteProcess) -> None:
    """Has the site make its biggest pages before anybody waits for them."""
    connection = http.client.HTTPConnection(ADDRESS, site.port, timeout=60)
    connection.request("GET", "/good.html", headers={"Host": hostile.HOST})
    connection.getresponse().read()
    connection.close()


def test_codes_when_compared_with_the_site_then_each_hostile_page_has_one() -> None:
    assert CODES.keys() == set(hostile.ALL)


def test_hostile_pages_when_crawled_then_each_has_the_code_of_its_fault(crawled: Crawled) -> None:
    codes = crawled.project.codes()

    assert {name: codes[f"{hostile.HOST}/{name}.html"] for name in CODES} == CODES


def test_hosts_when_they_cannot_be_reached_then_each_row_says_why(crawled: Crawled) -> None:
    rows = crawled.project.rows()

    codes = {"no-such-name.invalid/": 907, "refused.acme.test/": 906, "127.0.0.2/": 907}
    assert {url: rows[url]["code"] for url in codes} == codes
    assert rows[f"{hostile.HOST}/redirect-private.html"]["code"] == 907
    assert "fetch.private_networks" in rows["127.0.0.2/"]["error"]


def test_failures_when_written_down_then_each_is_one_line_that_ends_in_the_url(crawled: Crawled) -> None:
    failed = [row for row in crawled.project.rows().values() if row["error"]]

    assert len(failed) >= 20
    assert [row["url"] for row in failed if len(row["error"].splitlines()) != 1] == []
    named = [row for row in failed if "redirect-private" not in row["url"]]
    assert [row["error"] for row in named if not row["error"].endswith(row["url"])] == []


def test_run_when_pages_are_hostile_then_it_finishes_and_other_documents_are_unaffected(crawled: Crawled) -> None:
    status, indexed = crawled.ended.status, set(crawled.project.indexed())

    assert (crawled.ended.exit_code, status["run"]["end_reason"]) == (0, "finished")
    good = {f"{hostile.HOST}/{name}.html" for name, code in CODES.items() if code == 200}
    assert good | {f"{hostile.HOST}/", "docs.acme.test/chain/1.html", "docs.acme.test/chain/2.html"} == indexed
    assert {row["fetch_state"] for row in crawled.project.rows().values()} == {2}


def test_nested_page_when_two_hundred_thousand_deep_then_its_text_is_there(crawled: Crawled) -> None:
    assert f"{hostile.HOST}/nested.html" in crawled.project.found("deepout")


def test_links_when_a_page_has_a_hundred_thousand_then_all_are_admitted(crawled: Crawled) -> None:
    many = [row for url, row in crawled.project.rows().items() if "/many/" in url]

    assert len(many) == MANY_LINKS
    assert {(row["code"], row["rule"]) for row in many} == {(955, "scope.depth: depth = 1")}


def test_reactor_when_pages_are_hostile_then_it_never_stands_still_for_a_second(crawled: Crawled) -> None:
    assert crawled.probe["longest_stall_seconds"] < 1


def test_memory_when_pages_are_hostile_then_it_is_bounded(crawled: Crawled) -> None:
    assert crawled.probe["peak_megabytes"] < 700


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"scope": {"depth": -1}}, "sources/demo.toml: scope.depth: must not be negative (got -1)"),
        ({"scope": {"depht": 1}}, "sources/demo.toml: scope.depht: unknown key (did you mean depth?)"),
        (
            {"scope": {"include_hosts": None}},
            "sources/demo.toml: scope.include_hosts: nothing is included: name hosts or URLs, or set scope.allow_all = true",
        ),
        ({"start": {"urls": 7}}, "sources/demo.toml: start.urls: must be a list (got 7)"),
        ({"agent": {"url": "x"}}, "sources/demo.toml: agent: not available yet"),
        (
            {"login": {"type": "basic", "username": "me"}},
            'sources/demo.toml: login.password: is required with type = "basic"',
        ),
        (
            {"project": {"index": {"type": "sorl"}}},
            'searchcrawl.toml: index.type: must be "local" or "solr" (got "sorl")',
        ),
        ({"project": {"contact": None}}, "searchcrawl.toml: contact: is required"),
        ({"start": {"urls": None}}, "sources/demo.toml: start.urls: is required, or start.files"),
        (
            {"project": {"defaults": {"fetch": {"headers": {"X-Key": {"env": "NOT_SET_ANYWHERE"}}}}}},
            "searchcrawl.toml: defaults.fetch.headers.X-Key: the environment variable NOT_SET_ANYWHERE is not set",
        ),
        (
            {"project": {"parameters": {"shared": {}}}, "parameters": "sharde"},
            'sources/demo.toml: parameters: no such set in searchcrawl.toml (did you mean shared?) (got "sharde")',
        ),
        (
            {"attributes": {"drop": ["Title"]}},
            "sources/demo.toml: attributes.drop: title is an attribute of every document and cannot be removed",
        ),
        (
            {"rewrite": [{"plugin": "nothing:Here"}]},
            "sources/demo.toml: rewrite[0].plugin: cannot be imported: ModuleNotFoundError: No module named 'nothing' (got \"nothing:Here\")",
        ),
    ],
)
def test_crawl_when_configuration_is_wrong_then_exit_4_one_line_and_no_request(
    site: SiteProcess, tmp_path: Path, overrides: dict[str, Any], line: str
) -> None:
    project = new_project(tmp_path, site, **overrides)
    before = len(site.log())

    ended = project.crawl()

    assert (ended.exit_code, ended.status) == (4, {})
    assert ended.errors == line + "\n"
    assert len(site.log()) == before
    assert not (tmp_path / "var" / "searchcrawl.db").exists()


def test_crawl_when_the_source_is_unknown_then_exit_2_and_no_request(site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(tmp_path, site, name="other")
    before = len(site.log())

    ended = project.command("crawl", "demo")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == "searchcrawl: unknown source: demo"
    assert len(site.log()) == before
