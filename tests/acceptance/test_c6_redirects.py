"""C6: each redirect by its code, inside and outside the boundary; N7: what is ours stays at its origin; C4: time-outs."""

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
    "other-port": 200,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """What one crawl of all of it left: rows and index by short URL, requests as the servers saw them."""

    exit_code: int
    rows: dict[str, dict[str, Any]]
    indexed: list[str]
    log: list[LogEntry]
    beside: list[str]

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


def _redirect(site: SiteProcess, name: str, status: int, location: str) -> None:
    site.set_page(IN, f"/{name}", "", status=status, headers={"Location": location})


def _build(site: SiteProcess, beside: HostileServer) -> list[str]:
    """Sets the pages; the names of those to start at."""
    for status in (*TEMPORARY, *PERMANENT):
        _redirect(site, f"{status}-in", status, f"/target-{status}.html")
        _redirect(site, f"{status}-out", status, site.url(OUT, f"/page-{status}.html"))
    for kind in (*TEMPORARY, *PERMANENT, "meta"):
        site.set_page(IN, f"/target-{kind}.html", page(f"target {kind}"))
        back, away = site.url(IN, f"/from-out-{kind}.html"), f"/only-out-{kind}.html"
        site.set_page(OUT, f"/page-{kind}.html", page(f"outside {kind}", back, away))
        site.set_page(IN, f"/from-out-{kind}.html", page(f"from outside {kind}"))
    for name, target in (("in", "/target-meta.html"), ("out", site.url(OUT, "/page-meta.html"))):
        refresh = f'<meta http-equiv="refresh" content="0;url={target}">'
        site.set_page(IN, f"/meta-{name}", page("moved", head=refresh))
    for name, target in (("loop-a", "/loop-b"), ("loop-b", "/loop-a"), ("self", "/self")):
        _redirect(site, name, 302, target)
    for number in range(3):
        _redirect(site, f"chain-{number}", (302, 307, 303)[number], f"/chain-{number + 1}")
    site.set_page(IN, "/chain-3", page("end of the chain"))
    for number in range(8):
        _redirect(site, f"many-{number}", 302, f"/many-{number + 1}")
    _redirect(site, "blank", 302, " ")
    site.set_page(IN, "/none", "", status=302)
    _redirect(site, "broken", 302, "http://[::1/")
    _redirect(site, "other-port", 302, f"http://{IN}:{beside.port}/ok")
    site.set_page(IN, "/slow", page("slow"))
    site.set_behaviour(IN, "/slow", delay_seconds=30)
    matrix = [f"{status}-{side}" for status in (*TEMPORARY, *PERMANENT) for side in ("in", "out")]
    return [*matrix, *ENDS]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("redirects")
    with SiteProcess() as site, HostileServer() as beside:
        names = _build(site, beside)
        starts = [site.url(IN, f"/{name}") for name in names]
        project = new_project(
            folder,
            site,
            start={"urls": starts, "sitemaps": "off"},
            scope={"include_hosts": [f"={IN}"]},
            fetch={"retries": 0, "max_redirects": 5, "timeout_seconds": 2, "headers": OWN},
        )
        exit_code = project.crawl().exit_code
        yield Crawled(
            exit_code=exit_code,
            rows=project.rows(),
            indexed=project.indexed(),
            log=site.log(),
            beside=beside.requests,
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
    assert sorted(set(crawled.requested(OUT))) == [f"/page-{status}.html" for status in TEMPORARY]
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
            _redirect(site, f"moved-{number}", 301, f"/moved-{1 - number}")
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
        _redirect(site, "hub.html", 301, "/new.html")
        _redirect(site, "old.html", 301, "/hub.html")
        for _ in range(2):
            project.crawl()
        codes = project.codes()
        found = project.step("found", site.url(IN, "/old.html"))

    assert (codes[f"{IN}/hub.html"], codes[f"{IN}/old.html"]) == (954, 954)
    assert project.indexed() == [f"{IN}/", f"{IN}/new.html"]
    assert found.partition(",")[0] == f"on {site.url(IN, '/hub.html')}"
