"""Delays and the number of requests at once, as the server sees them (C2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.site.behaviour import is_probe
from tests.site.client import LogEntry

#: A server's clock reads a request's arrival a little after it was sent, one late and the next not.
TOLERANCE_SECONDS: Final = 0.002


def _delay(project: CrawlProject) -> list[Run]:
    site = project.site
    for name in ("one", "two"):
        host = f"{name}.acme.test"
        pages(site, host, a=page("alpha"), b=page("beta"), c=page("gamma"))
        site.set_page(host, "/d.html", page("delta"))
        site.set_page(host, "/c.html", "", status=302, headers={"Location": "/d.html"})
    project.edit(
        start={"urls": [site.url("one.acme.test"), site.url("two.acme.test")]},
        scope={"include_hosts": ["one.acme.test", "two.acme.test"]},
        fetch={"delay_seconds": 0.3, "retries": 0},
    )
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


def _gaps(entries: list[LogEntry]) -> list[float]:
    times = sorted(entry["time"] for entry in entries)
    return [after - before for before, after in pairwise(times)]


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
    assert min(_gaps(entries)) >= 0.3 - TOLERANCE_SECONDS
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
    assert min(_gaps(entries)) >= seconds - TOLERANCE_SECONDS
    assert {entry["open"] for entry in entries} == {1}
