"""The wall of a crawl: what the browser of a source may go to, load, and when (C2, C5, L7)."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Headers, Response

from searchcrawl.http.side_requests import SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import PUBLIC_ONLY
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.render.crawl_wall import CrawlWall
from searchcrawl.render.wall import FetchFailed, Refused
from searchcrawl.robots.files import RobotsCopy
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.identity import Identity
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.rules.targets import TargetRules


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


class Site:
    """What the downloader answers, by URL: a body, or the target of a redirect; and what it was asked for."""

    def __init__(self, **pages: bytes) -> None:
        self.pages = pages
        self.asked: list[Request] = []

    async def download(self, request: Request) -> Response:
        self.asked.append(request)
        found = self.pages.get(request.url.rpartition("/")[2] or "index", b"found")
        if found.startswith(b"http"):
            return Response(request.url, status=302, headers={"Location": found}, request=request)
        coded = gzip.compress(found)
        headers = Headers({"Content-Encoding": "gzip", "X-Kind": ["a", "b"]})
        return Response(request.url, headers=headers, body=coded, request=request)


def wall(
    *,
    allow_hosts: tuple[str, ...] = (),
    robots: Any = None,
    turns: RateLimiter | None = None,
    site: Site | None = None,
    max_bytes: int = 1000,
) -> CrawlWall:
    boundary = Boundary(include_hosts=("site.test",), exclude_urls=("*/private/*", "*/one"), file="f")
    rewriting = Rewriting(identity=Identity(["utm_*"]))
    targets = TargetRules(boundary, starts=("http://site.test/",), rewriting=rewriting)
    return CrawlWall(
        boundary,
        allow_hosts=allow_hosts,
        targets=targets,
        side_requests=SideRequests(
            download=(site or Site()).download, rate_limiter=turns or RateLimiter(), targets=targets
        ),
        robots=robots,
        max_bytes=max_bytes,
        file="f",
    )


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://site.test/a#b", None),
        ("http://site.test/private/a", "scope.exclude_urls: */private/*"),
        ("http://site.test/%70rivate/a", "scope.exclude_urls: */private/*"),
        ("http://site.test/one?utm_id=1", "scope.exclude_urls: */one"),
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
        ((), "https://cdn.test/one?utm_id=1", "script", False),
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

    async def ask() -> list[tuple[str, int | None]]:
        said = []
        for url in ("http://site.test/x.js", "http://site.test/api/1", "http://cdn.test/x.js"):
            try:
                await here.fetch(url, "script", {})
            except Refused as error:
                said.append((str(error), error.code))
        return said

    said = asyncio.run(ask())

    assert turns.taken == ["site.test:80"]
    (forbidden, for_good), (unknown, for_now) = said
    assert forbidden.startswith("robots.txt: ")
    assert unknown == "robots.txt of http://cdn.test: 503"
    assert (for_good, for_now) == (None, 951)
    assert here.check_resource("http://site.test/api/1", "xhr") == forbidden
    assert here.check_navigation("http://site.test/api/1") == forbidden


@pytest.mark.parametrize(
    ("url", "is_public"),
    [
        ("http://site.test/a.js", False),
        ("http://site.test:8080/a.js", False),
        ("http://other.test/a.js", True),
        ("http://other.test:8080/a.js", True),
    ],
)
def test_l7_address_when_the_host_is_outside_the_boundary_then_it_has_to_be_a_public_one(
    url: str, is_public: bool
) -> None:
    site = Site()
    asyncio.run(wall(site=site).fetch(url, "script", {}))

    assert [request.meta[PUBLIC_ONLY] for request in site.asked] == [is_public]


def test_c10_answer_when_it_is_fetched_then_it_is_decoded_and_the_headers_of_the_script_went_along() -> None:
    site = Site()
    answer = asyncio.run(wall(site=site).fetch("http://site.test/x", "xhr", {"x-key": "1"}))

    assert (answer.body, answer.status) == (b"found", 200)
    assert ("x-kind", "a") in answer.headers
    assert ("x-kind", "b") in answer.headers
    assert site.asked[0].headers["X-Key"] == b"1"


def test_c10_redirect_when_it_leads_a_resource_to_what_is_refused_then_nothing_is_requested_there() -> None:
    for target in (b"http://other.test/x", b"http://site.test/private/x"):
        site = Site(x=target)
        with pytest.raises((Refused, FetchFailed)):
            asyncio.run(wall(site=site).fetch("http://site.test/x", "xhr", {}))
        assert [request.url for request in site.asked] == ["http://site.test/x"]


def test_c10_redirect_when_it_is_that_of_a_page_then_it_is_an_answer() -> None:
    site = Site(x=b"http://other.test/x")
    answer = asyncio.run(wall(site=site).fetch("http://site.test/x", "document", {}))

    assert (answer.status, dict(answer.headers)["location"]) == (302, "http://other.test/x")
    assert len(site.asked) == 1


@pytest.mark.parametrize(("size", "fails"), [(1000, False), (1001, True)])
def test_l6_body_when_it_is_larger_than_max_bytes_then_it_is_refused(size: int, fails: bool) -> None:
    here = wall(site=Site(x=b"a" * size))
    if fails:
        with pytest.raises(FetchFailed, match="more than 1000 bytes"):
            asyncio.run(here.fetch("http://site.test/x", "xhr", {}))
    else:
        assert len(asyncio.run(here.fetch("http://site.test/x", "xhr", {})).body) == size


def test_c10_script_when_two_pages_share_it_then_it_is_requested_once_and_data_each_time() -> None:
    site = Site()
    here = wall(site=site)

    async def ask() -> None:
        for kind in ("script", "script", "xhr", "xhr"):
            await here.fetch(f"http://site.test/{kind}", kind, {})

    asyncio.run(ask())

    assert [request.url.rpartition("/")[2] for request in site.asked] == ["script", "xhr", "xhr"]
