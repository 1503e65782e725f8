"""Hosts are shared: by the sources of a store, which keep one delay and one pause, and under a cap on sites (C2, C3, X-R10)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages
from tests.crawl_forks import Forks
from tests.site.client import LogEntry, SiteProcess, source_toml

#: A server's clock reads a request's arrival a little after it was sent, one late and the next not.
TOLERANCE_SECONDS: Final = 0.05
DELAY_SECONDS: Final = 0.4
#: A turn may be taken 50 ms late, and a busy machine adds to that; processes that each keep a delay of their own
#: come within half a delay of each other.
LEAST_SECONDS: Final = DELAY_SECONDS / 2 + TOLERANCE_SECONDS


def project_of(site: SiteProcess, folder: Path, **sources: dict[str, Any]) -> CrawlProject:
    """A project of several sources, each over the hosts that it starts at."""
    for name, tables in sources.items():
        project = new_project(folder, site, name=name)
        (folder / "sources" / f"{name}.toml").write_text(source_toml(site, **tables), "utf-8")
    return project


def at(site: SiteProcess, host: str, *paths: str, **fetch: Any) -> dict[str, Any]:
    """A source of so many paths of one host."""
    return {
        "start": {"urls": [site.url(host, path) for path in paths], "sitemaps": "off"},
        "scope": {"include_hosts": [host], "follow_links": False},
        "fetch": {"retries": 0, **fetch},
    }


def most_hosts_at_once(log: list[LogEntry]) -> int:
    """How many hosts had a request under way at the same moment."""
    moments = [(entry["time"], 1, entry["host"]) for entry in log]
    moments += [(entry["ended"] or entry["time"], 0, entry["host"]) for entry in log]
    open_requests: dict[str, int] = {}
    most = 0
    for _, begins, host in sorted(moments):
        open_requests[host] = open_requests.get(host, 0) + (1 if begins else -1)
        most = max(most, sum(count > 0 for count in open_requests.values()))
    return most


def test_c2_delay_when_two_processes_crawl_one_host_then_they_keep_one_delay_between_them(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    host = "both.acme.test"
    # So many that the one is not over before the other has begun.
    names = "abcdefghijkl"
    pages(site, host, **{name: page(name) for name in names})
    one, two = (
        at(site, host, *(f"/{name}.html" for name in half), delay_seconds=DELAY_SECONDS)
        for half in (names[:6], names[6:])
    )
    project = project_of(site, tmp_path, one=one, two=two)
    site.clear_log()

    running = [forks.start(project.folder, "crawl", name) for name in ("one", "two")]
    codes = [one.wait() for one in running]

    log = site.log(host=host)
    times = sorted(entry["time"] for entry in log)
    assert codes == [0, 0]
    assert sorted(entry["path"] for entry in log) == sorted(["/robots.txt"] * 2 + [f"/{name}.html" for name in names])
    assert min(after - before for before, after in pairwise(times)) >= LEAST_SECONDS
    # They were side by side, not one after the other.
    order = [entry["path"] for entry in log if entry["path"] != "/robots.txt"]
    assert order not in (sorted(order), sorted(order, reverse=True))
    assert set(project.codes().values()) == {200}


def test_c3_sites_when_six_are_capped_at_two_then_no_third_is_asked_beside_and_all_finish(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    hosts = [f"six{number}.acme.test" for number in range(6)]
    for host in hosts:
        pages(site, host, **{name: page(f"{name} {host}") for name in ("a", "b", "c")})
        site.set_page(host, "/", page(f"start {host}", "/a.html", "/b.html", "/c.html"))
        # Answers take a while, so that requests pile up as far as they may.
        site.set_behaviour(host, prefix="/", delay_seconds=0.03)
    source = {
        "start": {"urls": [site.url(host) for host in hosts]},
        "scope": {"include_hosts": hosts},
        "fetch": {"retries": 0, "sites": 2},
    }
    project = project_of(site, tmp_path, demo=source)
    site.clear_log()

    code = forks.run(project.folder, "crawl", "demo")

    log = site.log()
    site.clear_behaviours()
    assert code == 0
    assert most_hosts_at_once(log) == 2
    assert project.indexed() == sorted(
        f"{host}/{name}" for host in hosts for name in ("", "a.html", "b.html", "c.html")
    )
    # robots.txt and /sitemap.xml of each host count, too.
    asked = {(entry["host"], entry["path"]) for entry in log}
    assert asked >= {(host, path) for host in hosts for path in ("/robots.txt", "/sitemap.xml", "/a.html")}


def test_r10_retry_after_when_any_answer_has_one_then_the_host_is_left_alone_so_long(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    paths = ["/plain.html", "/robots.txt"]
    asked = {
        "200.acme.test": 200,
        "301.acme.test": 301,
        "404.acme.test": 404,
        "503.acme.test": 503,
        "429.acme.test": 429,
    }
    for host, status in asked.items():
        pages(site, host, **{name: page(f"{name} {host}") for name in ("first", "plain")})
        site.set_behaviour(host, "/first.html", status=status, headers={"Retry-After": "1", "Location": "/plain.html"})
    hosts = list(asked)
    source = {
        "start": {
            "urls": [site.url(host, f"/{name}.html") for host in hosts for name in ("first", "plain")],
            "sitemaps": "off",
        },
        "scope": {"include_hosts": hosts, "follow_links": False},
        "fetch": {"retries": 0},
    }
    project = project_of(site, tmp_path, demo=source)
    site.clear_log()

    code = forks.run(project.folder, "crawl", "demo")

    log = site.log()
    site.clear_behaviours()
    gaps = {}
    for host in hosts:
        times = {entry["path"]: entry["time"] for entry in log if entry["host"] == host}
        assert set(times) == {"/first.html", *paths}
        gaps[host] = times["/plain.html"] - times["/first.html"]
    assert code == 0
    assert min(gaps.values()) >= 1.0 - TOLERANCE_SECONDS
    assert {url: row for url, row in project.codes().items() if "plain" in url} == {
        f"{host}/plain.html": 200 for host in hosts
    }


def test_r10_host_when_it_asked_one_source_to_wait_an_hour_then_no_other_asks_it(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    host, good = "hour.acme.test", "fine.acme.test"
    for name in (host, good):
        pages(site, name, a=page(f"a {name}"), b=page(f"b {name}"))
    site.set_behaviour(host, "/a.html", status=429, headers={"Retry-After": "3600"})
    one = at(site, host, "/a.html", "/b.html")
    two = {**at(site, host, "/b.html"), "start": {"urls": [site.url(host, "/b.html"), site.url(good, "/a.html")]}}
    two["scope"] = {"include_hosts": [host, good], "follow_links": False}
    project = project_of(site, tmp_path, one=one, two=two)
    first = forks.run(project.folder, "crawl", "one")
    site.clear_behaviours()
    site.clear_log()

    codes = [forks.run(project.folder, "crawl", name) for name in ("two", "one")]

    rows = {row["host"].partition(":")[0]: row for row in project.lines("urls", "two")}
    assert first == 8
    assert codes == [0, 8]
    assert site.log(host=host) == []
    assert (rows[host]["code"], rows[good]["code"]) == (429, 200)
    assert "blocked for this run as it asked" in rows[host]["error"]
    # It is said where people look: in the log once, in the status of the run, and of each page.
    asked = f"{rows[host]['host']} gets no request for the rest of this run (429): it asked"
    logs = [(project.folder / "var" / "log" / f"{name}.log").read_text("utf-8") for name in ("one", "two")]
    assert [log.count(f"{asked} for a pause of 3600 s") for log in logs] == [1, 0]
    assert [log.count(f"{asked} another run for a pause") for log in logs] == [1, 1]
    for name, held_back in (("one", 2), ("two", 1)):
        warnings = project.ask("status", name)["warnings"]
        assert [each["message"].split()[0] for each in warnings if each["code"] == "busy"] == [str(held_back)]
    explained = project.ask("explain", site.url(host, "/b.html"))
    steps = {step["step"]: step for step in explained["steps"]}
    assert (steps["host"]["outcome"], "as it asked" in steps["host"]["detail"]) == ("waits", True)
