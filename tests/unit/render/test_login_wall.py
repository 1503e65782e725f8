"""The wall of a login in the browser: who may be asked for what, before and after something was typed (C10, L7, X-N7)."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.visit_end import PUBLIC_ONLY
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.budget import SharedBudget
from searchcrawl.render.crawl_wall import CrawlWall
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules

LOGIN = "https://site.test/login"
SCRIPT = "https://cdn.test/known.js"


class Site:
    """Answers everything, and notes what it was asked for; ``leads`` are redirects."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.leads: dict[str, str] = {}

    async def download(self, request: Request) -> Response:
        self.asked.append(request)
        target = self.leads.get(request.url)
        if target is not None:
            return Response(request.url, status=302, headers={"Location": target}, request=request)
        return Response(request.url, body=b"found", request=request)


def build(site: Site, *, allow_hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> LoginWall:
    boundary = Boundary(include_hosts=("site.test",), file="f")
    targets = TargetRules(boundary, starts=("http://site.test/",))
    side = SideRequests(download=site.download, rate_limiter=RateLimiter(), targets=targets)
    wall = CrawlWall(
        boundary, allow_hosts=allow_hosts, targets=targets, side_requests=side, robots=None, max_bytes=1000, file="f"
    )
    return LoginWall(wall, side, origins=origins or ("http://site.test", "https://site.test"))


def ask(url: str, destination: str = "script", method: str = "GET") -> BrowserRequest:
    return BrowserRequest(method, url, (("sec-fetch-dest", destination),))


def fetch(wall: LoginWall, request: BrowserRequest) -> None:
    asyncio.run(wall.fetch(request, SharedBudget(1 << 20).open()))


@pytest.mark.parametrize(
    ("url", "destination", "before", "after"),
    [
        ("https://site.test/api", "empty", True, True),
        (SCRIPT, "script", True, True),
        ("https://cdn.test/other.js", "script", True, False),
        ("https://cdn.test/known.js?p=secret", "script", True, False),
        ("https://below.site.test/x", "empty", True, False),
        ("https://below.site.test/x", "document", False, False),
    ],
)
def test_c10_login_when_something_was_typed_then_no_other_host_is_asked_for_anything_new(
    url: str, destination: str, before: bool, after: bool
) -> None:
    wall = build(Site())
    fetch(wall, ask(SCRIPT))
    first = wall.check(ask(url, destination))
    wall.note_typing()

    refusal = wall.check(ask(url, destination))

    assert (first is None, refusal is None) == (before, after)
    assert after or "render.allow_hosts may name its host" in (refusal or "")


def test_c10_login_when_a_known_script_is_loaded_after_typing_then_its_host_is_not_asked_again() -> None:
    site = Site()
    wall = build(site)
    fetch(wall, ask(SCRIPT))
    wall.note_typing()

    fetch(wall, ask(SCRIPT))

    assert [one.url for one in site.asked] == [SCRIPT]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("url", ["http://site.test/x", "http://sso.test/x"])
def test_n7_login_when_a_page_came_over_https_then_nothing_is_sent_over_http(url: str, method: str) -> None:
    wall = build(Site(), allow_hosts=("sso.test",))
    before = wall.check(ask(url, "document", method))
    fetch(wall, ask(LOGIN, "document"))

    refusal = wall.check(ask(url, "document", method))

    assert (before, refusal) == (None, "http after https")
    assert wall.is_https


def test_l7_login_when_another_host_is_asked_then_at_a_public_address_only() -> None:
    site = Site()
    wall = build(site, allow_hosts=("sso.test", "=cdn.test"), origins=("https://site.test",))
    for url in (LOGIN, "https://sso.test:8443/x"):
        fetch(wall, ask(url, "document"))
    fetch(build(site), ask(SCRIPT))

    assert [one.meta[PUBLIC_ONLY] for one in site.asked] == [False, False, True]
