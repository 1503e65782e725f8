"""C6, L7: what an exclude rule names is requested by no redirect, and outside the boundary no odd port of a private host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page
from tests.hostile_server import HostileServer
from tests.site.client import LogEntry, SiteProcess

IN: Final = "in.acme.test"
OUT: Final = "out.acme.test"
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
    """What a crawl of all of it left; URLs are short."""

    rows: dict[str, dict[str, Any]]
    indexed: list[str]
    log: list[LogEntry]
    excluded: list[str]
    odd: list[str]
    port: int
    explained: dict[str, Any]
    counts: dict[str, int]
    states: set[str]


def _redirect(site: SiteProcess, path: str, location: str, status: int = 302, host: str = IN) -> None:
    site.set_page(host, path, "", status=status, headers={"Location": location})


def _build(site: SiteProcess, excluded: HostileServer, odd: HostileServer) -> list[str]:
    """Sets the pages; the names of those to start at."""
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
    folder = tmp_path_factory.mktemp("targets")
    with SiteProcess() as site, HostileServer() as excluded, HostileServer() as odd:
        starts = [site.url(IN, f"/{name}") for name in _build(site, excluded, odd)]
        project = new_project(
            folder,
            site,
            start={"urls": [*starts, site.url(ROBOTS, "/page.html")], "sitemaps": "off"},
            scope={**SCOPE, "exclude_ports": [excluded.port]},
            fetch={"retries": 0},
        )
        ended = project.crawl()
        assert ended.exit_code == 0
        yield Crawled(
            rows=project.rows(),
            indexed=project.indexed(),
            log=site.log(),
            excluded=list(excluded.requests),
            odd=[text.split(" ", 2)[1] for text in odd.requests],
            port=excluded.port,
            explained=project.ask("explain", site.url(IN, "/port-302")),
            counts=ended.counts,
            states={line["state"] for line in project.lines("urls", "demo", "--code", "955")},
        )


@pytest.mark.parametrize("name", list(REFUSED))
def test_c6_redirect_when_an_exclude_rule_names_its_target_then_the_row_names_the_rule(
    crawled: Crawled, name: str
) -> None:
    row = crawled.rows[f"{IN}/{name}"]

    assert (row["code"], row["rule"]) == (955, REFUSED[name].format(port=crawled.port))
    assert row["error"].startswith("leads to http://")
    assert f"{IN}/{name}" not in crawled.indexed


def test_c6_redirects_when_they_lead_to_excluded_places_then_they_count_as_fetched(crawled: Crawled) -> None:
    failed = [name for name, row in crawled.rows.items() if row["code"] not in (200, 955)]

    assert crawled.counts["rejected"] == 0
    assert crawled.counts["fetched"] == len(crawled.rows) - len(failed)
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
    assert crawled.odd == ["/robots.txt", "/ok"]


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
        source = {
            "start": {"urls": [site.url(IN, "/by-port"), site.url(IN, "/page")], "sitemaps": "off"},
            "scope": {"include_hosts": [f"={IN}"], "exclude_urls": ["*/login"]},
        }
        project = new_project(tmp_path, site, **source)
        assert project.crawl().exit_code == 0
        before = project.indexed()

        _redirect(site, "/page", "/login")
        project.crawl()
        led_away, asked = project.indexed(), len(beside.requests)
        source["scope"]["exclude_ports"] = [beside.port]
        site.set_page(IN, "/page", page("page"))
        project.edit(**source)
        project.crawl()
        edited = project.rows()

        assert before == led_away == [f"{IN}/by-port", f"{IN}/page"]
        assert project.indexed() == [f"{IN}/page"]
        assert (edited[f"{IN}/by-port"]["code"], edited[f"{IN}/page"]["code"]) == (955, 200)
        assert len(beside.requests) == asked
