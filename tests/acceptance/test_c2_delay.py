"""Delays, pauses and the number of requests at once, as the server sees them: of one crawl, of several, of commands beside them, and
through a proxy (C2, C3, C5, C10, L5, X-R10).
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_shared_hosts import at, gaps, sources_of
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.crawl_forks import COMMANDS, Forks
from tests.proxy_server import ProxyServer
from tests.site.behaviour import is_probe
from tests.site.client import LogEntry, SiteProcess, source_toml
from tests.stored_rows import query_columns

#: A server's clock reads a request's arrival a little after it was sent, one late and the next not.
TOLERANCE_SECONDS: Final = 0.002


def _delay(project: CrawlProject) -> list[Run]:
    site = project.site
    for name in ("one", "two"):
        host = f"{name}.acme.test"
        pages(site, host, a=page("alpha"), b=page("beta"), c=page("gamma"))
        site.set_page(host, "/d.html", page("delta"))
        site.set_page(host, "/c.html", "", status=302, headers={"Location": "/d.html"})
    project.edit(**source(site, ["one.acme.test", "two.acme.test"], delay_seconds=0.3))
    return [run(project), run(project)]


def _no_delay(project: CrawlProject) -> list[Run]:
    # Answers take a while, so that requests pile up as far as they may.
    overrides = source(project.site, "gen.acme.test", "/n/30,delay=0.1/", host_concurrency=2)
    project.edit(**overrides)
    return [run(project)]


def _crawl_delay(project: CrawlProject) -> list[Run]:
    site = project.site
    for name, seconds in (("short", "0.4"), ("long", "3600")):
        pages(site, f"{name}.acme.test", **{letter: page(letter) for letter in "abcd"})
        robots = f"User-agent: *\nCrawl-delay: {seconds}\n"
        site.set_page(f"{name}.acme.test", "/robots.txt", robots, content_type="text/plain")
    hosts = ["short.acme.test", "long.acme.test"]
    starts = [site.url(host, f"/{letter}.html") for host in hosts for letter in "abcd"]
    project.edit(
        start={"urls": starts},
        scope={"include_hosts": hosts},
        fetch={"retries": 0},
        robots={"max_crawl_delay_seconds": 0.6},
    )
    return [run(project)]


STORIES: dict[str, Story] = {"delay": _delay, "no_delay": _no_delay, "crawl_delay": _crawl_delay}


def _of(log: list[LogEntry], host: str) -> list[LogEntry]:
    return [entry for entry in log if entry["host"] == host]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("host", ["one.acme.test", "two.acme.test"])
def test_delay_when_set_then_no_gap_between_requests_is_shorter_robots_and_redirects_included(
    tell: Tell, host: str, number: int
) -> None:
    entries = _of(tell("delay")[number].log, host)

    assert {entry["path"] for entry in entries if not is_probe(entry["path"])} == {
        "/robots.txt",
        "/sitemap.xml",
        "/",
        *(f"/{letter}.html" for letter in "abcd"),
    }
    assert min(gaps(entries)) >= 0.3 - TOLERANCE_SECONDS
    assert {entry["open"] for entry in entries} == {1}


def test_delay_when_two_hosts_are_crawled_then_they_take_turns_side_by_side(tell: Tell) -> None:
    log = tell("delay")[0].log

    one, two = ([entry["time"] for entry in _of(log, host)] for host in ("one.acme.test", "two.acme.test"))
    assert min(one) < max(two)
    assert min(two) < max(one)


def test_delay_when_set_then_the_run_does_not_stall(tell: Tell) -> None:
    entries = tell("delay")[0].log

    # Six requests a host take 1.5 s; a scheduler that sleeps for 5 s each time would take half a minute.
    assert max(entry["time"] for entry in entries) - min(entry["time"] for entry in entries) < 10


def test_concurrency_when_there_is_no_delay_then_it_is_used_and_never_passed(tell: Tell) -> None:
    (only,) = tell("no_delay")

    assert len(only.versions) == 30
    assert max(entry["open"] for entry in only.log) == 2


@pytest.mark.parametrize(("host", "seconds"), [("short.acme.test", 0.4), ("long.acme.test", 0.6)])
def test_crawl_delay_when_robots_asks_for_one_then_it_is_kept_up_to_the_maximum(
    tell: Tell, host: str, seconds: float
) -> None:
    (only,) = tell("crawl_delay")

    entries = _of(only.log, host)
    assert len(entries) == 6
    assert min(gaps(entries)) >= seconds - TOLERANCE_SECONDS
    assert {entry["open"] for entry in entries} == {1}


#: A server's clock reads a request's arrival a little after it was sent, one late and the next not.
LATE_SECONDS: Final = 0.05
SHARED_SECONDS: Final = 0.4
#: A turn may be taken 50 ms late, and a busy machine adds to that; processes that each keep a delay of their own
#: come within half a delay of each other.
LEAST_SECONDS: Final = SHARED_SECONDS / 2 + LATE_SECONDS


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
        at(site, host, *(f"/{name}.html" for name in half), delay_seconds=SHARED_SECONDS)
        for half in (names[:6], names[6:])
    )
    project = sources_of(site, tmp_path, one=one, two=two)
    site.clear_log()

    running = [forks.start(project.folder, "crawl", name) for name in ("one", "two")]
    codes = [one.wait() for one in running]

    log = site.log(host=host)
    assert codes == [0, 0]
    assert sorted(entry["path"] for entry in log) == sorted(["/robots.txt"] * 2 + [f"/{name}.html" for name in names])
    assert min(gaps(log)) >= LEAST_SECONDS
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
    project = new_project(tmp_path, site, **source(site, hosts, sites=2))
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
    asked = {f"{status}.acme.test": status for status in (200, 301, 404, 503, 429)}
    for host, status in asked.items():
        pages(site, host, **{name: page(f"{name} {host}") for name in ("first", "plain")})
        site.set_behaviour(host, "/first.html", status=status, headers={"Retry-After": "1", "Location": "/plain.html"})
    hosts = list(asked)
    project = new_project(tmp_path, site, **at(site, hosts, "/first.html", "/plain.html"))
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
    assert min(gaps.values()) >= 1.0 - LATE_SECONDS
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
    two = at(site, [host, good])
    two["start"] = {"urls": [site.url(host, "/b.html"), site.url(good, "/a.html")]}
    project = sources_of(site, tmp_path, one=one, two=two)
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


DELAY_SECONDS: Final = 0.6
#: A server's clock reads a request's arrival a little after it was sent, one late and the next not; processes that
#: each keep a delay of their own come within half a delay of each other.
LEAST_OF_COMMANDS: Final = DELAY_SECONDS / 2 + 0.05
ALL_DAY: Final = {"days": "mon-sun", "from": "00:00", "to": "00:00", "delay_seconds": DELAY_SECONDS}


def project_of(site: SiteProcess, folder: Path, host: str, names: str = "abc", **tables: Any) -> CrawlProject:
    """A project with one source of some pages of a host, and a store."""
    pages(site, host, **{name: page(f"{name} {host}") for name in names})
    paths = (f"/{name}.html" for name in names)
    project = new_project(folder, site, **at(site, host, *paths, **tables.pop("fetch", {})), **tables)
    assert COMMANDS.run(folder, "status").returncode == 0
    site.clear_log()
    return project


@pytest.mark.parametrize("way", ["delay", "window", "without-robots"])
def test_dry_runs_when_begun_at_once_then_take_turns(site: SiteProcess, forks: Forks, tmp_path: Path, way: str) -> None:
    host = f"{way}.acme.test"
    fetch = {"windows": [ALL_DAY]} if way == "window" else {"delay_seconds": DELAY_SECONDS}
    project = project_of(site, tmp_path, host, fetch=fetch, robots={"obey": way != "without-robots"})
    commands = (
        ("test", site.url(host, "/a.html"), "--source", "demo"),
        ("test", site.url(host, "/b.html"), "--source", "demo"),
        ("explain", site.url(host, "/c.html"), "--live"),
    )

    codes = [one.wait() for one in [forks.start(project.folder, *command) for command in commands]]

    assert codes == [0, 0, 0]
    assert len(gaps(site.log(host=host))) == (2 if way == "without-robots" else 5)
    assert min(gaps(site.log(host=host))) >= LEAST_OF_COMMANDS
    # Nothing is stored but the turns.
    assert query_columns(project.folder, "SELECT id FROM urls") == []


def test_dry_run_when_a_crawl_runs_then_they_keep_the_delay_of_robots_between_them(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    host = "crawled.acme.test"
    site.set_page(host, "/robots.txt", f"User-agent: *\nCrawl-delay: {DELAY_SECONDS}\n")
    project = project_of(site, tmp_path, host, "abcdefgh")
    crawl = forks.start(project.folder, "crawl", "demo")
    # Its first page is under way: it knows the delay.
    crawl.until(lambda: len(site.log(host=host)) >= 2)
    tests = [
        forks.start(project.folder, "test", site.url(host, path), "--source", "demo") for path in ("/a.html", "/b.html")
    ]

    codes = [one.wait() for one in (*tests, crawl)]

    assert codes == [0, 0, 0]
    assert len(gaps(site.log(host=host))) == 12
    assert min(gaps(site.log(host=host))) >= LEAST_OF_COMMANDS


def test_dry_run_when_redirected_then_each_request_takes_a_turn(site: SiteProcess, tmp_path: Path) -> None:
    host = "redirected.acme.test"
    project = project_of(site, tmp_path, host, fetch={"delay_seconds": DELAY_SECONDS})
    site.set_page(host, "/a.html", "", status=302, headers={"Location": "/b.html"})

    assert project.command("test", site.url(host, "/a.html"), "--source", "demo").returncode == 0

    assert [entry["path"] for entry in site.log(host=host)] == ["/robots.txt", "/a.html", "/b.html"]
    assert min(gaps(site.log(host=host))) >= LEAST_OF_COMMANDS


def test_dry_run_when_its_host_asks_for_a_pause_then_all_processes_keep_it(site: SiteProcess, tmp_path: Path) -> None:
    host = "busy.acme.test"
    project = project_of(site, tmp_path, host)
    url = site.url(host, "/a.html")

    site.set_behaviour(host, "/a.html", status=503, headers={"Retry-After": "2"})
    ask = ("test", url, "--source", "demo")
    codes = [project.ask(*ask)["code"]]
    site.clear_behaviours()
    codes.append(project.ask(*ask)["code"])
    pause = gaps(site.log(host=host))[1]
    site.set_behaviour(host, "/a.html", status=429, headers={"Retry-After": "3000"})
    codes.append(project.ask(*ask)["code"])
    asked = len(site.log(host=host))
    refused = project.ask(*ask)["code"]
    project.crawl()
    site.clear_behaviours()

    assert codes == [503, 200, 429]
    assert pause >= 1.5
    assert refused not in (200, 429)
    assert len(site.log(host=host)) == asked == 6


@pytest.mark.few(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [("test", "--source", "demo"), ("explain", "--live")], ids=["test", "explain"])
def test_dry_run_when_a_signal_comes_while_it_waits_then_it_ends_at_once(
    site: SiteProcess, forks: Forks, tmp_path: Path, command: tuple[str, ...], number: int
) -> None:
    host = f"{command[0]}{number}.acme.test"
    project = project_of(site, tmp_path, host, fetch={"delay_seconds": 30})
    url = site.url(host, "/a.html")

    running = forks.start(project.folder, *command, url)
    # It has asked for robots.txt; the page has its turn half a minute later.
    running.until(lambda: len(site.log(host=host)) == 1)
    time.sleep(0.5)
    running.signal(number)
    begun = time.monotonic()
    code = running.wait()

    assert (code, time.monotonic() - begun < 5) == (3, True)
    assert len(site.log(host=host)) == 1
    assert "Traceback" not in running.output.read_text("utf-8")


PROXIED: Final = "proxied.acme.test"
HOUR_SECONDS: Final = 0.2


def test_c10_c2_crawl_when_it_has_a_proxy_and_windows_then_everything_goes_through_it_at_the_pace_of_the_hour(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site, ProxyServer({PROXIED: "127.0.0.1"}) as proxy:
        pages(site, PROXIED, one=page("one"), two=page("two"))
        text = source_toml(
            site,
            start={"urls": [site.url(PROXIED)]},
            scope={"include_hosts": [PROXIED]},
            fetch={
                "proxy": {"env": "OUR_PROXY"},
                "windows": [{"from": "00:00", "to": "00:00", "delay_seconds": HOUR_SECONDS}],
                "timezone": "Asia/Tokyo",
                "resolve": None,
                "private_networks": None,
            },
        )
        project = new_project(tmp_path, site)
        (project.folder / "sources" / "demo.toml").write_text(text, "utf-8")

        ended = project.crawl(OUR_PROXY=proxy.url)

        log, asked = site.log(), [line.split(" ")[1] for line in proxy.asked]

    assert (ended.exit_code, ended.errors) == (0, "")
    assert sorted(asked) == sorted(site.url(PROXIED, entry["path"]) for entry in log)
    assert {entry["path"] for entry in log} >= {"/robots.txt", "/sitemap.xml", "/", "/one.html", "/two.html"}
    assert min(gaps(log)) >= HOUR_SECONDS - 0.05
    assert project.indexed() == [f"{PROXIED}/", f"{PROXIED}/one.html", f"{PROXIED}/two.html"]
    assert "which resolves names" in project.log()
