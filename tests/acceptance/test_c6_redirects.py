"""C6: each redirect by its code, inside and outside the boundary, and to what a rule excludes; N7: what is ours stays at its
origin; C4: time-outs; L7: outside the boundary no odd port of a private host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, source
from tests.hostile_server import HostileServer
from tests.site.client import LogEntry, SiteProcess
from tests.site.expected import short

IN: Final = "in.acme.test"
OUT: Final = "out.acme.test"
TEMPORARY: Final = (302, 303, 307)
PERMANENT: Final = (301, 308)
OWN: Final = {"X-Api-Key": "key-of-ours", "Authorization": "Bearer of-ours"}
ENDS: Final = {
    "loop-a": 963,
    "self": 963,
    "many-0": 963,
    "chain-0": 200,
    "blank": 1003,
    "none": 1003,
    "broken": 1003,
    "slow": 902,
    "meta-in": 953,
    "meta-out": 953,
}

BAD: Final = "bad.acme.test"
ROBOTS: Final = "robots.acme.test"
SCOPE: Final = {
    "include_hosts": [f"={IN}", f"={ROBOTS}"],
    "exclude_hosts": [BAD],
    "exclude_urls": ["*secret*"],
    "host": [
        {"host": IN, "exclude_paths": ["/private/"]},
        {"host": OUT, "exclude_paths": ["/hidden/"]},
    ],
}
#: The rule that refuses the target of each redirect.
REFUSED: Final = {
    "port-302": "scope.exclude_ports: {port}",
    "port-303": "scope.exclude_ports: {port}",
    "port-307": "scope.exclude_ports: {port}",
    "port-out": "scope.exclude_ports: {port}",
    "host": "scope.exclude_hosts: bad.acme.test",
    "path": "scope.host[0].exclude_paths: /private/",
    "path-out": "scope.host[1].exclude_paths: /hidden/",
    "pattern": "scope.exclude_urls: *secret*",
    "escaped": "scope.exclude_urls: *secret*",
    "chain": "scope.host[0].exclude_paths: /private/",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """What one crawl of all of it left: rows and index by short URL, requests as the servers saw them."""

    exit_code: int
    rows: dict[str, dict[str, Any]]
    indexed: list[str]
    log: list[LogEntry]
    #: as the server beside, and the one whose port is excluded, got them
    beside: list[str]
    excluded: list[str]
    port: int
    explained: dict[str, Any]
    counts: dict[str, int]
    states: set[str]

    def code(self, name: str) -> int:
        code: int = self.rows[f"{IN}/{name}"]["code"]
        return code

    def way(self, name: str) -> list[tuple[str, int]]:
        """The hops of a row."""
        return [(short(hop["url"]), hop["code"]) for hop in json.loads(self.rows[f"{IN}/{name}"]["redirects"])]

    def requested(self, host: str) -> list[str]:
        return [
            entry["path"] for entry in self.log if entry["host"] == host and not entry["path"].startswith("/robots")
        ]


def _redirect(site: SiteProcess, path: str, location: str, status: int = 302, host: str = IN) -> None:
    site.set_page(host, path, "", status=status, headers={"Location": location})


def _build(site: SiteProcess) -> list[str]:
    """Sets the pages; the names of those to start at."""
    for status in (*TEMPORARY, *PERMANENT):
        _redirect(site, f"/{status}-in", f"/target-{status}.html", status)
        _redirect(site, f"/{status}-out", site.url(OUT, f"/page-{status}.html"), status)
    for kind in (*TEMPORARY, *PERMANENT, "meta"):
        site.set_page(IN, f"/target-{kind}.html", page(f"target {kind}"))
        back, away = site.url(IN, f"/from-out-{kind}.html"), f"/only-out-{kind}.html"
        site.set_page(OUT, f"/page-{kind}.html", page(f"outside {kind}", back, away))
        site.set_page(IN, f"/from-out-{kind}.html", page(f"from outside {kind}"))
    for name, target in (("in", "/target-meta.html"), ("out", site.url(OUT, "/page-meta.html"))):
        refresh = f'<meta http-equiv="refresh" content="0;url={target}">'
        site.set_page(IN, f"/meta-{name}", page("moved", head=refresh))
    for name, target in (("loop-a", "/loop-b"), ("loop-b", "/loop-a"), ("self", "/self")):
        _redirect(site, f"/{name}", target)
    for number in range(3):
        _redirect(site, f"/chain-{number}", f"/chain-{number + 1}", (302, 307, 303)[number])
    site.set_page(IN, "/chain-3", page("end of the chain"))
    for number in range(8):
        _redirect(site, f"/many-{number}", f"/many-{number + 1}")
    _redirect(site, "/blank", " ")
    site.set_page(IN, "/none", "", status=302)
    _redirect(site, "/broken", "http://[::1/")
    site.set_page(IN, "/slow", page("slow"))
    site.set_behaviour(IN, "/slow", delay_seconds=30)
    matrix = [f"{status}-{side}" for status in (*TEMPORARY, *PERMANENT) for side in ("in", "out")]
    return [*matrix, *ENDS]


def _build_refused(site: SiteProcess, excluded: HostileServer, odd: HostileServer) -> list[str]:
    """The same for what rules refuse."""
    for status in (302, 303, 307):
        _redirect(site, f"/port-{status}", f"http://{IN}:{excluded.port}/ok", status)
    _redirect(site, "/port-out", f"http://{OUT}:{excluded.port}/ok")
    _redirect(site, "/host", site.url(BAD, "/x.html"))
    _redirect(site, "/path", "/private/x.html")
    _redirect(site, "/path-out", site.url(OUT, "/hidden/x.html"))
    _redirect(site, "/pattern", site.url(OUT, "/secret.html"))
    _redirect(site, "/escaped", "/%73ecre%74.html")
    _redirect(site, "/chain", site.url(OUT, "/hop"))
    _redirect(site, "/hop", site.url(IN, "/private/x.html"), host=OUT)
    _redirect(site, "/allowed", site.url(OUT, "/page.html"))
    _redirect(site, "/odd-inside", f"http://{IN}:{odd.port}/ok")
    _redirect(site, "/odd-outside", f"http://{OUT}:{odd.port}/ok")
    for host, path in (
        (BAD, "/x.html"),
        (IN, "/private/x.html"),
        (IN, "/secret.html"),
        (OUT, "/hidden/x.html"),
        (OUT, "/secret.html"),
        (OUT, "/page.html"),
        (ROBOTS, "/page.html"),
    ):
        site.set_page(host, path, page(f"{host}{path}"))
    _redirect(site, "/robots.txt", site.url(BAD, "/robots.txt"), host=ROBOTS)
    return [*REFUSED, "allowed", "odd-inside", "odd-outside"]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("redirects")
    with SiteProcess() as site, HostileServer() as beside, HostileServer() as excluded:
        names = [*_build(site), *_build_refused(site, excluded, beside)]
        starts = [*(site.url(IN, f"/{name}") for name in names), site.url(ROBOTS, "/page.html")]
        project = new_project(
            folder,
            site,
            start={"urls": starts, "sitemaps": "off"},
            scope={**SCOPE, "exclude_ports": [excluded.port]},
            fetch={"retries": 0, "max_redirects": 5, "timeout_seconds": 2, "headers": OWN},
        )
        ended = project.crawl()
        yield Crawled(
            exit_code=ended.exit_code,
            rows=project.rows(),
            indexed=project.indexed(),
            log=site.log(),
            beside=beside.requests,
            excluded=list(excluded.requests),
            port=excluded.port,
            explained=project.ask("explain", site.url(IN, "/port-302")),
            counts=ended.counts,
            states={line["state"] for line in project.lines("urls", "demo", "--code", "955")},
        )


@pytest.mark.few(2)
@pytest.mark.parametrize("status", TEMPORARY)
def test_c6_temporary_redirect_when_followed_then_is_indexed_under_the_first_url_wherever_it_leads(
    crawled: Crawled, status: int
) -> None:
    assert (crawled.code(f"{status}-in"), crawled.code(f"{status}-out")) == (200, 200)
    assert crawled.way(f"{status}-in") == [(f"{IN}/{status}-in", status)]
    assert crawled.way(f"{status}-out") == [(f"{IN}/{status}-out", status)]
    assert {f"{IN}/{status}-in", f"{IN}/{status}-out"} <= set(crawled.indexed)
    assert f"/page-{status}.html" in crawled.requested(OUT)


@pytest.mark.parametrize("status", PERMANENT)
def test_c6_permanent_redirect_when_it_leads_outside_then_the_rule_is_named_and_nothing_asked(
    crawled: Crawled, status: int
) -> None:
    inside, outside = crawled.rows[f"{IN}/{status}-in"], crawled.rows[f"{IN}/{status}-out"]

    assert (inside["code"], inside["rule"], outside["code"]) == (954, None, 954)
    assert outside["rule"].startswith("scope.include_hosts")
    assert crawled.way(f"{status}-out") == [(f"{IN}/{status}-out", status)]
    assert crawled.rows[f"{IN}/target-{status}.html"]["code"] == 200
    assert f"{IN}/target-{status}.html" in crawled.indexed
    assert not {f"{IN}/{status}-in", f"{IN}/{status}-out"} & set(crawled.indexed)
    assert f"/page-{status}.html" not in crawled.requested(OUT)


def test_c6_meta_refresh_when_it_leads_outside_then_it_is_not_followed(crawled: Crawled) -> None:
    assert (crawled.code("meta-in"), crawled.code("meta-out")) == (953, 953)
    assert f"{IN}/target-meta.html" in crawled.indexed
    assert "/page-meta.html" not in crawled.requested(OUT)


def test_c6_links_when_found_at_a_target_outside_then_they_are_checked_as_usual(crawled: Crawled) -> None:
    found = {f"{IN}/from-out-{status}.html" for status in TEMPORARY}

    assert found <= set(crawled.indexed)
    led = {path for path in crawled.requested(OUT) if path.startswith("/page-")}
    assert led == {f"/page-{status}.html" for status in TEMPORARY}
    assert {f"{IN}/from-out-{kind}.html" for kind in (*PERMANENT, "meta")}.isdisjoint(crawled.rows)


@pytest.mark.parametrize("name", list(ENDS))
def test_c6_redirect_when_it_ends_nowhere_then_its_code_says_how(crawled: Crawled, name: str) -> None:
    assert crawled.code(name) == ENDS[name]


def test_c6_redirects_when_several_are_followed_then_each_hop_is_recorded(crawled: Crawled) -> None:
    assert crawled.exit_code == 0
    assert crawled.way("chain-0") == [(f"{IN}/chain-{number}", (302, 307, 303)[number]) for number in range(3)]
    assert crawled.way("loop-a") == [(f"{IN}/loop-a", 302)]
    assert len(crawled.way("many-0")) == 5
    assert crawled.requested(IN).count("/many-6") == 0


def test_c4_page_when_it_takes_longer_than_the_limit_then_its_row_says_902_and_the_others_go_on(
    crawled: Crawled,
) -> None:
    assert crawled.code("slow") == 902
    assert f"{IN}/slow" not in crawled.indexed


def test_n7_headers_when_a_redirect_leaves_the_origin_then_they_stay_and_no_referer_goes(crawled: Crawled) -> None:
    outside = [entry["headers"] for entry in crawled.log if entry["host"] == OUT]
    inside = [entry["headers"] for entry in crawled.log if entry["host"] == IN and entry["path"] != "/robots.txt"]
    beside = [head.lower() for head in crawled.beside]

    assert len(outside) >= len(TEMPORARY)
    assert not any({"x-api-key", "authorization", "referer", "cookie"} & set(headers) for headers in outside)
    assert {headers["x-api-key"] for headers in inside} == {OWN["X-Api-Key"]}
    assert {headers["authorization"] for headers in inside} == {OWN["Authorization"]}
    # Another port is another origin.
    assert any("get /ok " in head for head in beside)
    assert not any("of-ours" in head or "referer" in head for head in beside)


def test_c6_redirects_when_links_lead_to_all_pages_of_a_loop_then_one_of_them_is_963_in_each_run(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site:
        rings = {"moved": 2, "meta": 3}
        names = [f"{kind}-{number}" for kind, size in rings.items() for number in range(size)]
        site.set_page(IN, "/", page("start", *(f"/{name}" for name in names)))
        for number in range(2):
            _redirect(site, f"/moved-{number}", f"/moved-{1 - number}", 301)
        for number in range(3):
            refresh = f'<meta http-equiv="refresh" content="0;url=/meta-{(number + 1) % 3}">'
            site.set_page(IN, f"/meta-{number}", page("moved", head=refresh))
        project = new_project(tmp_path, site, **source(site, IN))
        codes = [(project.crawl().exit_code, project.codes()) for _ in range(2)]

    for exit_code, found in codes:
        by_kind = {kind: sorted(found[f"{IN}/{name}"] for name in names if name.startswith(kind)) for kind in rings}
        assert (exit_code, by_kind) == (0, {"moved": [954, 963], "meta": [953, 953, 963]})


def test_c6_redirects_when_the_page_that_found_another_leads_elsewhere_later_then_that_one_may_lead_to_it(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site:
        site.set_page(IN, "/", page("start", "/hub.html"))
        site.set_page(IN, "/hub.html", page("hub", "/old.html", "/new.html"))
        site.set_page(IN, "/old.html", page("old"))
        site.set_page(IN, "/new.html", page("new"))
        project = new_project(tmp_path, site, **source(site, IN), lifecycle={"max_delete_percent": 100})
        project.crawl()
        _redirect(site, "/hub.html", "/new.html", 301)
        _redirect(site, "/old.html", "/hub.html", 301)
        for _ in range(2):
            project.crawl()
        codes = project.codes()
        found = project.step("found", site.url(IN, "/old.html"))

    assert (codes[f"{IN}/hub.html"], codes[f"{IN}/old.html"]) == (954, 954)
    assert project.indexed() == [f"{IN}/", f"{IN}/new.html"]
    assert found.partition(",")[0] == f"on {site.url(IN, '/hub.html')}"


@pytest.mark.parametrize("name", list(REFUSED))
def test_c6_redirect_when_an_exclude_rule_names_its_target_then_the_row_names_the_rule(
    crawled: Crawled, name: str
) -> None:
    row = crawled.rows[f"{IN}/{name}"]

    assert (row["code"], row["rule"]) == (955, REFUSED[name].format(port=crawled.port))
    assert row["error"].startswith("leads to http://")
    assert f"{IN}/{name}" not in crawled.indexed


def test_c6_redirects_when_they_lead_to_excluded_places_then_they_count_as_fetched(crawled: Crawled) -> None:
    fetched = [name for name, row in crawled.rows.items() if row["code"] in (200, 953, 954, 955)]

    assert crawled.counts["rejected"] == 0
    assert crawled.counts["fetched"] == len(fetched)
    assert crawled.states == {"excluded"}


def test_c6_excluded_targets_when_led_to_then_none_is_requested_and_others_are(crawled: Crawled) -> None:
    requested = {f"{entry['host']}{entry['path']}" for entry in crawled.log}

    assert crawled.excluded == []
    assert not any(text in url for url in requested for text in (BAD, "private", "hidden", "secret"))
    assert crawled.rows[f"{IN}/allowed"]["code"] == 200
    assert {f"{IN}/allowed", f"{IN}/odd-inside"} <= set(crawled.indexed)


def test_l7_private_host_when_outside_then_only_usual_ports_and_those_of_start_urls_are_reached(
    crawled: Crawled,
) -> None:
    inside, outside = crawled.rows[f"{IN}/odd-inside"], crawled.rows[f"{IN}/odd-outside"]

    assert (inside["code"], outside["code"]) == (200, 907)
    assert "outside the boundary" in outside["error"]
    assert [head.split(" ", 2)[1] for head in crawled.beside] == ["/robots.txt", "/ok"]


def test_c5_robots_when_they_lead_to_an_excluded_host_then_cannot_be_had(crawled: Crawled) -> None:
    row = crawled.rows[f"{ROBOTS}/page.html"]

    assert (row["code"], row["rule"]) == (951, "robots.unavailable")
    assert "scope.exclude_hosts" in row["error"]


def test_l1_explain_when_a_target_is_excluded_then_names_the_rule(crawled: Crawled) -> None:
    decided = crawled.explained["decided_by"]

    assert (decided["key"], decided["rule"]) == ("scope.exclude_ports", str(crawled.port))
    assert crawled.explained["also"] == []
    assert [step["outcome"] for step in crawled.explained["steps"] if step["step"] == "redirect"] == ["refused"]


def test_b6_document_when_its_target_becomes_excluded_then_leaves_and_one_led_away_for_a_while_stays(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site, HostileServer() as beside:
        _redirect(site, "/by-port", f"http://{IN}:{beside.port}/ok")
        site.set_page(IN, "/page", page("page"))
        site.set_page(IN, "/login", page("login"))
        rules = {
            "start": {"urls": [site.url(IN, "/by-port"), site.url(IN, "/page")], "sitemaps": "off"},
            "scope": {"include_hosts": [f"={IN}"], "exclude_urls": ["*/login"]},
        }
        project = new_project(tmp_path, site, **rules)
        assert project.crawl().exit_code == 0
        before = project.indexed()

        _redirect(site, "/page", "/login")
        project.crawl()
        led_away, asked = project.indexed(), len(beside.requests)
        rules["scope"]["exclude_ports"] = [beside.port]
        site.set_page(IN, "/page", page("page"))
        project.edit(**rules)
        project.crawl()
        edited = project.rows()

        assert before == led_away == [f"{IN}/by-port", f"{IN}/page"]
        assert project.indexed() == [f"{IN}/page"]
        assert (edited[f"{IN}/by-port"]["code"], edited[f"{IN}/page"]["code"]) == (955, 200)
        assert len(beside.requests) == asked
