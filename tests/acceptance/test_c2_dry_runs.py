"""C2, C5, L5: ``test`` and ``explain --live`` take turns with crawls and with each other, and keep pauses of hosts."""

from __future__ import annotations

import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages
from tests.crawl_forks import COMMANDS, Forks
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

DELAY_SECONDS: Final = 0.6
#: A server's clock reads a request's arrival a little after it was sent, one late and the next not; processes that
#: each keep a delay of their own come within half a delay of each other.
LEAST_SECONDS: Final = DELAY_SECONDS / 2 + 0.05
ALL_DAY: Final = {"days": "mon-sun", "from": "00:00", "to": "00:00", "delay_seconds": DELAY_SECONDS}


def project_of(site: SiteProcess, folder: Path, host: str, names: str = "abc", **tables: Any) -> CrawlProject:
    """A project with one source of some pages of a host, and a store."""
    pages(site, host, **{name: page(f"{name} {host}") for name in names})
    source = {
        "start": {"urls": [site.url(host, f"/{name}.html") for name in names], "sitemaps": "off"},
        "scope": {"include_hosts": [host], "follow_links": False},
        "fetch": {"retries": 0, **tables.pop("fetch", {})},
    }
    project = new_project(folder, site, **source, **tables)
    assert COMMANDS.run(folder, "status").returncode == 0
    site.clear_log()
    return project


def gaps(site: SiteProcess, host: str) -> list[float]:
    """The seconds between the requests to a host."""
    times = sorted(entry["time"] for entry in site.log(host=host))
    return [after - before for before, after in pairwise(times)]


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
    assert len(gaps(site, host)) == (2 if way == "without-robots" else 5)
    assert min(gaps(site, host)) >= LEAST_SECONDS
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
    assert len(gaps(site, host)) == 12
    assert min(gaps(site, host)) >= LEAST_SECONDS


def test_dry_run_when_redirected_then_each_request_takes_a_turn(site: SiteProcess, tmp_path: Path) -> None:
    host = "redirected.acme.test"
    project = project_of(site, tmp_path, host, fetch={"delay_seconds": DELAY_SECONDS})
    site.set_page(host, "/a.html", "", status=302, headers={"Location": "/b.html"})

    assert project.command("test", site.url(host, "/a.html"), "--source", "demo").returncode == 0

    assert [entry["path"] for entry in site.log(host=host)] == ["/robots.txt", "/a.html", "/b.html"]
    assert min(gaps(site, host)) >= LEAST_SECONDS


def test_dry_run_when_its_host_asks_for_a_pause_then_all_processes_keep_it(site: SiteProcess, tmp_path: Path) -> None:
    host = "busy.acme.test"
    project = project_of(site, tmp_path, host)
    url = site.url(host, "/a.html")

    site.set_behaviour(host, "/a.html", status=503, headers={"Retry-After": "2"})
    ask = ("test", url, "--source", "demo")
    codes = [project.ask(*ask)["code"]]
    site.clear_behaviours()
    codes.append(project.ask(*ask)["code"])
    pause = gaps(site, host)[1]
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
