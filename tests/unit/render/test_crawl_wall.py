"""The wall of a crawl: what the browser of a source may go to, load, and when (C2, C5, L7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from searchcrawl.http.address_guard import AddressGuard, PublicGuard
from searchcrawl.http.side_requests import SideRequestFailed
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.render.crawl_wall import CrawlWall
from searchcrawl.robots.files import RobotsCopy
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.targets import TargetRules

GUARD = AddressGuard(private_networks=("127.0.0.1/32",), resolve={})
PUBLIC = PublicGuard(private_networks=(), resolve={})


class Turns(RateLimiter):
    """Notes which hosts were waited for."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    async def wait_until_allowed(self, host: str) -> None:
        self.taken.append(host)


class Robots:
    """Knows the files of these origins once they were asked for."""

    def __init__(self, **texts: str | None) -> None:
        self._texts = {f"http://{name}.test": text for name, text in texts.items()}
        self._known: dict[str, RobotsCopy] = {}

    def find(self, origin: str) -> RobotsCopy | None:
        return self._known.get(origin)

    async def get_rules(self, origin: str) -> RobotsFile:
        text = self._texts.get(origin, "")
        if text is None:
            raise SideRequestFailed("503", code=951)
        file = RobotsFile.parse(text.encode(), user_agent="x")
        self._known[origin] = RobotsCopy(expires=1e12, file=file)
        return file


def wall(*, allow_hosts: tuple[str, ...] = (), robots: Any = None, turns: RateLimiter | None = None) -> CrawlWall:
    boundary = Boundary(include_hosts=("site.test",), exclude_urls=("*/private/*",), file="f")
    return CrawlWall(
        boundary,
        allow_hosts=allow_hosts,
        targets=TargetRules(boundary, starts=("http://site.test/",)),
        rate_limiter=turns or RateLimiter(),
        robots=robots,
        guard=GUARD,
        public_guard=PUBLIC,
        file="f",
    )


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://site.test/a#b", None),
        ("http://site.test/private/a", "scope.exclude_urls: */private/*"),
        ("http://site.test/%70rivate/a", "scope.exclude_urls: */private/*"),
        ("http://other.test/", "scope.include_hosts: no include matches"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("data:text/html,x", "not an http or https URL"),
        ("about:blank", "not an http or https URL"),
    ],
)
def test_c10_navigation_when_it_is_asked_for_then_the_boundary_decides(url: str, refusal: str | None) -> None:
    assert wall().check_navigation(url) == refusal


def test_c10_navigation_when_a_redirect_led_outside_then_that_page_alone_is_open_while_it_is_rendered() -> None:
    here = wall()
    with here.open_for("http://other.test/page"), here.open_for("http://other.test/page"):
        pass
    before = here.check_navigation("http://other.test/page")
    with here.open_for("http://other.test/page"):
        during = here.check_navigation("http://other.test/page"), here.check_navigation("http://other.test/next")

    assert before is not None
    assert during == (None, "scope.include_hosts: no include matches")


@pytest.mark.parametrize(
    ("allow_hosts", "url", "kind", "allowed"),
    [
        ((), "http://site.test/x", "xhr", True),
        ((), "http://below.site.test/x", "fetch", True),
        ((), "http://site.test/private/x.js", "script", False),
        ((), "https://cdn.test/x.js", "script", True),
        ((), "https://cdn.test/x.css", "stylesheet", True),
        ((), "https://cdn.test/x", "xhr", False),
        ((), "https://cdn.test/x", "document", False),
        ((), "https://cdn.test/private/x.js", "script", False),
        (("cdn.test",), "https://a.cdn.test/x", "xhr", True),
        (("cdn.test",), "https://other.test/x.js", "script", False),
        (("=cdn.test",), "https://a.cdn.test/x.js", "script", False),
        ((), "file:///etc/passwd", "script", False),
        ((), "ws://site.test/", "websocket", False),
    ],
)
def test_c10_resource_when_it_is_asked_for_then_excludes_hosts_and_kind_decide(
    allow_hosts: tuple[str, ...], url: str, kind: str, allowed: bool
) -> None:
    assert (wall(allow_hosts=allow_hosts).check_resource(url, kind) is None) is allowed


def test_c10_resource_when_robots_forbids_it_then_it_gets_no_turn_and_is_refused_from_then_on() -> None:
    turns, robots = Turns(), Robots(site="User-agent: *\nDisallow: /api/", cdn=None)
    here = wall(robots=robots, turns=turns)

    async def ask() -> list[str]:
        said = []
        for url in ("http://site.test/x.js", "http://site.test/api/1", "http://cdn.test/x.js"):
            try:
                await here.take_turn(url)
            except PermissionError as error:
                said.append(str(error))
        return said

    said = asyncio.run(ask())

    assert turns.taken == ["site.test:80"]
    assert said[0].startswith("robots.txt: ")
    assert said[1] == "robots.txt of http://cdn.test: 503"
    assert here.check_resource("http://site.test/api/1", "xhr") == said[0]
    assert here.check_navigation("http://site.test/api/1") == said[0]


@pytest.mark.parametrize(
    ("url", "guard"),
    [
        ("http://site.test/", GUARD),
        ("http://site.test:8080/", GUARD),
        ("http://other.test/", PUBLIC),
        ("http://other.test:8080/", PUBLIC),
    ],
)
def test_l7_address_when_the_host_is_outside_the_boundary_then_it_has_to_be_a_public_one(
    url: str, guard: AddressGuard
) -> None:
    assert wall().choose_guard(url) is guard
