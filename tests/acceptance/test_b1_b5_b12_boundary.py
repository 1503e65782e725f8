"""B1–B5, B12: hosts, paths, ports, rules, and URLs that are none; what the server saw, what the index holds, what the rows say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.site.client import ADDRESS, SiteProcess

WWW, OTN, UK = "www.oracle.com", "otn.oracle.com", "uk.oracle.com"
#: Hosts of the manual's examples, and some that only look like them.
HOSTS: Final = (
    WWW, OTN, UK, "x.oracle.com", "oracle.com", "deep.in.uk.oracle.com", "www.oracle.com.tw", "notoracle.com",
    "uk.example.com", "www.example.com", "wwwx.example.com", "exact.test", "below.exact.test",
)  # fmt: skip
OTN_PATHS: Final = (
    "/", "/products/database/x", "/products/ias/x", "/products/ias/web_cache/x", "/products/ias", "/other",
    "/PRODUCTS/ias/x", "/products/i%61s/y",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    for host in HOSTS:
        site.set_page(host, "/", page(f"start of {host}", *(site.url(other) for other in HOSTS)))
    for path in OTN_PATHS:
        site.set_page(OTN, path, page(f"otn {path}"))
    site.set_page(WWW, "/any", page("any"))
    otn = [site.url(OTN, path) for path in OTN_PATHS]
    site.set_page(WWW, "/paths", page("paths", "/any", site.url(UK), *otn))
    return site


def project_of(folder: Path, site: SiteProcess, start: str, scope: dict[str, Any]) -> CrawlProject:
    hosts = {"include_hosts": None, **scope}
    fetch = {"retries": 0, "resolve": dict.fromkeys(HOSTS, ADDRESS)}
    return new_project(folder, site, start={"urls": [start], "sitemaps": "off"}, scope=hosts, fetch=fetch)


def refusals(project: CrawlProject) -> dict[str, str]:
    return {url: row["rule"] for url, row in project.rows().items() if row["code"] == 955}


@pytest.mark.parametrize("reverse", [False, True])
def test_hosts_when_included_and_excluded_then_on_label_boundaries_and_in_any_order(
    site: SiteProcess, tmp_path: Path, reverse: bool
) -> None:
    include = ["oracle.com", "www.*", "=exact.test", "uk.*"]
    exclude = [UK, "=deep.in.uk.oracle.com", "www.oracle.com.*"]
    lists = {"include_hosts": include[::-1] if reverse else include, "exclude_hosts": exclude[:: -1 if reverse else 1]}
    project = project_of(tmp_path, site, site.url("x.oracle.com"), lists)
    site.clear_log()

    ended = project.crawl()

    inside = {WWW, OTN, "x.oracle.com", "oracle.com", "www.example.com", "exact.test", "uk.example.com"}
    rules = ended.refused_links
    excluding = rules.pop("deep.in.uk.oracle.com")
    assert ended.exit_code == 0
    assert refusals(project) == {}
    assert {entry["host"] for entry in site.log()} == inside
    assert project.indexed() == sorted(f"{host}/" for host in inside)
    # Two rules refuse it.
    assert excluding in {f"scope.exclude_hosts: {UK}", "scope.exclude_hosts: =deep.in.uk.oracle.com"}
    assert rules == {
        UK: f"scope.exclude_hosts: {UK}",
        "www.oracle.com.tw": "scope.exclude_hosts: www.oracle.com.*",
        "notoracle.com": "scope.include_hosts: no include matches",
        "wwwx.example.com": "scope.include_hosts: no include matches",
        "below.exact.test": "scope.include_hosts: no include matches",
    }


def test_paths_when_given_for_a_host_then_the_example_of_the_manual_holds(site: SiteProcess, tmp_path: Path) -> None:
    block = {
        "host": OTN,
        "include_paths": ["/products/database/", "/products/ias/"],
        "exclude_paths": ["/products/ias/web_cache/"],
    }
    project = project_of(tmp_path, site, site.url(WWW, "/paths"), {"include_hosts": [WWW, OTN], "host": [block]})
    site.clear_log()

    ended = project.crawl()

    # Prefixes are compared as raw text, but for escapes that need not be: i%61s is ias.
    otn = {f"{OTN}/products/database/x", f"{OTN}/products/ias/x", f"{OTN}/products/i%61s/y"}
    assert set(site.requested()) == otn | {f"{WWW}/paths", f"{WWW}/any"}
    assert set(project.indexed()) == set(site.requested())
    assert ended.refused_links == {UK: "scope.include_hosts: no include matches"}
    assert refusals(project) == {
        f"{OTN}/products/ias/web_cache/x": "scope.host[0].exclude_paths: /products/ias/web_cache/",
        **dict.fromkeys(
            (f"{OTN}/", f"{OTN}/other", f"{OTN}/products/ias", f"{OTN}/PRODUCTS/ias/x"),
            "scope.host[0].include_paths: no include matches",
        ),
    }


@pytest.fixture(scope="module")
def second(site: SiteProcess) -> Iterator[SiteProcess]:
    """The same host on another port."""
    with SiteProcess() as second:
        second.set_page(WWW, "/port", page("the second port"))
        second.set_page(OTN, "/port", page("the second port of otn"))
        links = [other.url(host, "/port") for other in (site, second) for host in (WWW, OTN)]
        site.set_page(WWW, "/ports", page("ports", *links))
        for host in (WWW, OTN):
            site.set_page(host, "/port", page(f"the first port of {host}"))
        yield second


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("source", "of_host", "refused"),
    [
        ({}, {}, {}),
        ({"exclude_ports": "second"}, {}, {WWW: "scope.exclude_ports", OTN: "scope.exclude_ports"}),
        ({"include_ports": "first"}, {}, {WWW: "scope.include_ports", OTN: "scope.include_ports"}),
        ({}, {"include_ports": "first"}, {OTN: "scope.host[0].include_ports"}),
        ({}, {"exclude_ports": "second"}, {OTN: "scope.host[0].exclude_ports"}),
        # Lists of includes add up.
        ({"include_ports": "first"}, {"include_ports": "second"}, {WWW: "scope.include_ports"}),
    ],
)
def test_ports_when_listed_for_the_source_or_a_host_then_only_these(
    site: SiteProcess,
    second: SiteProcess,
    tmp_path: Path,
    source: dict[str, str],
    of_host: dict[str, str],
    refused: dict[str, str],
) -> None:
    ports = {"first": site.port, "second": second.port}
    scope = {"include_hosts": [WWW, OTN], **{key: [ports[name]] for key, name in source.items()}}
    if of_host:
        scope["host"] = [{"host": OTN, **{key: [ports[name]] for key, name in of_host.items()}}]
    project = project_of(tmp_path, site, site.url(WWW, "/ports"), scope)
    for one in (site, second):
        one.clear_log()

    ended = project.crawl()

    said = {row["host"]: row["rule"].partition(": ")[0] for row in ended.status["refused_links"]}
    asked = {entry["host"] for entry in second.log() if entry["path"] == "/port"}
    assert said == {f"{host}:{second.port}": rule for host, rule in refused.items()}
    assert asked == {WWW, OTN} - refused.keys()
    assert {f"{WWW}/port", f"{OTN}/port"} <= set(site.requested())


def test_url_rules_when_written_as_globs_or_expressions_then_only_declared_ones_are_expressions(
    site: SiteProcess, tmp_path: Path
) -> None:
    paths = (
        "/ok/a.html", "/ok/A.PDF", "/ok/x.y/z", "/ok/xqy/z", "/ok/print.html", "/OK/Print.html", "/ok/%70rivate/q",
        "/ok/n12/", "/ok/n1/", "/no/a.html",
    )  # fmt: skip
    site.set_page(WWW, "/rules", page("rules", *paths))
    for path in paths:
        site.set_page(WWW, path, page(f"rules {path}"))
    scope = {
        "include_urls": ["*/ok/*", "*/rules"],
        # A dot is a dot in a glob, and what looks like an expression is none.
        "exclude_urls": ["*/x.y/*", "*.pdf", "*print*", "*/private/*", r"re:/n\d{2,}/$", "*/n[1]/"],
    }
    project = project_of(tmp_path, site, site.url(WWW, "/rules"), scope)
    site.clear_log()

    project.crawl()

    inside = ["/ok/a.html", "/ok/n1/", "/ok/xqy/z", "/rules"]
    assert sorted(site.requested()) == [WWW + path for path in inside]
    assert project.indexed() == [WWW + path for path in inside]
    assert refusals(project) == {
        f"{WWW}/ok/A.PDF": "scope.exclude_urls: *.pdf",
        f"{WWW}/ok/x.y/z": "scope.exclude_urls: */x.y/*",
        f"{WWW}/ok/print.html": "scope.exclude_urls: *print*",
        f"{WWW}/OK/Print.html": "scope.exclude_urls: *print*",
        f"{WWW}/ok/%70rivate/q": "scope.exclude_urls: */private/*",
        f"{WWW}/ok/n12/": r"scope.exclude_urls: re:/n\d{2,}/$",
        f"{WWW}/no/a.html": "scope.include_urls: no include matches",
    }


def test_scope_when_all_is_allowed_then_excludes_alone_bound_it(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(
        tmp_path, site, site.url("notoracle.com"), {"allow_all": True, "exclude_hosts": ["oracle.com"]}
    )
    site.clear_log()

    project.crawl()

    inside = {host for host in HOSTS if host != "oracle.com" and not host.endswith(".oracle.com")}
    assert {entry["host"] for entry in site.log()} == inside
    assert project.indexed() == sorted(f"{host}/" for host in inside)


LONG = "urls.acme.test"
LONGEST, OVERLONG, START = f"/{'a' * 200}", f"/{'b' * 400}", f"/{'s' * 400}"
MALFORMED = ["http://[bad/", "http://a b/", "http://1.2.3.4.5.6.7.8.9/", "http://x:99999/", f"http://{'e' * 70_000}/"]
OTHER_SCHEMES = ["mailto:a@b.test", "javascript:void(0)", "file:///etc/passwd", "ftp://a.test/x"]


def test_b12_urls_when_malformed_or_overlong_then_rejected_with_1004_and_everything_else_is_crawled(
    site: SiteProcess, tmp_path: Path
) -> None:
    site.set_page(LONG, "/", page("start", "/good.html", LONGEST, OVERLONG, *MALFORMED, *OTHER_SCHEMES, "/a\\b"))
    site.set_page(LONG, "/moved.html", "", status=301, headers={"Location": OVERLONG})
    site.set_page(LONG, "/good.html", page("good", "/moved.html", OVERLONG))
    site.set_page(LONG, LONGEST, page("longest"))
    start = {"urls": [site.url(LONG), site.url(LONG, START)], "sitemaps": "off"}
    scope = {"include_hosts": [LONG], "max_url_length": 256}
    project = new_project(tmp_path, site, start=start, scope=scope, fetch={"retries": 0})
    site.clear_log()
    ended = project.crawl()
    requested = {path.removeprefix(LONG) for path in site.requested()}

    rows = {url.removeprefix(LONG): (row["code"], row["rule"]) for url, row in project.rows().items()}
    refused = (1004, "scope.max_url_length: max_url_length = 256")
    lines = project.log().splitlines()
    named = next(line for line in lines if "1004: links of " in line)
    assert ended.exit_code == 0
    assert requested == {"/", "/good.html", "/moved.html", LONGEST, "/a/b"}
    assert {path: said for path, said in rows.items() if said[0] == 1004} == {OVERLONG: refused, START: refused}
    assert rows["/moved.html"] == (954, refused[1])
    assert sorted(project.indexed()) == [f"{LONG}/", f"{LONG}{LONGEST}", f"{LONG}/good.html"]
    assert all(repr(text[:200]) in named for text in MALFORMED)
    assert not any(text in named for text in OTHER_SCHEMES)
    assert sum("1004: refused, " in line and "bbbb" in line for line in lines) == 1
    assert sum("start URL outside the boundary" in line for line in lines) == 1
