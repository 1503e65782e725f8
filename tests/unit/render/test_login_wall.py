"""The wall of a login in the browser: who may be asked for what, before and after something was typed (C10, L7, X-N7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.http import Response

from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.visit_end import PUBLIC_ONLY
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.render.crawl_wall import CrawlWall
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.render.wall import Refused
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.targets import TargetRules

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


def run(work: Callable[[], object]) -> object:
    async def all_of_it() -> object:
        found = work()
        return await found if asyncio.iscoroutine(found) else found

    return asyncio.run(all_of_it())


@pytest.mark.parametrize(
    ("url", "kind", "before", "after"),
    [
        ("https://site.test/api", "xhr", True, True),
        (SCRIPT, "script", True, True),
        ("https://cdn.test/other.js", "script", True, False),
        ("https://cdn.test/known.js?p=secret", "script", True, False),
        ("https://below.site.test/x", "xhr", True, False),
        ("https://below.site.test/x", "document", True, False),
    ],
)
def test_c10_login_when_something_was_typed_then_no_other_host_is_asked_for_anything_new(
    url: str, kind: str, before: bool, after: bool
) -> None:
    site = Site()
    wall = build(site)
    run(lambda: wall.fetch(SCRIPT, "script", {}))
    first = wall.check(url, kind, "GET", is_frame=False)
    wall.note_typing()

    refusal = wall.check(url, kind, "GET", is_frame=False)

    assert (first is None, refusal is None) == (before, after)
    assert after or "render.allow_hosts may name its host" in (refusal or "")


def test_c10_login_when_a_known_script_is_loaded_after_typing_then_its_host_is_not_asked_again() -> None:
    site = Site()
    wall = build(site)
    run(lambda: wall.fetch(SCRIPT, "script", {}))
    wall.note_typing()

    run(lambda: wall.fetch(SCRIPT, "script", {}))

    assert [one.url for one in site.asked] == [SCRIPT]


def test_c10_login_when_its_own_data_leads_elsewhere_after_typing_then_it_is_not_followed() -> None:
    site = Site()
    site.leads["https://site.test/api"] = "https://below.site.test/x?p=secret"
    wall = build(site)
    wall.note_typing()

    with pytest.raises(Refused):
        run(lambda: wall.fetch("https://site.test/api", "xhr", {}))

    assert [one.url for one in site.asked] == ["https://site.test/api"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("url", ["http://site.test/x", "http://sso.test/x"])
def test_n7_login_when_a_page_came_over_https_then_nothing_is_sent_over_http(url: str, method: str) -> None:
    wall = build(Site(), allow_hosts=("sso.test",))
    before = wall.check(url, "document", method, is_frame=False)
    run(lambda: wall.fetch(LOGIN, "document", {}))

    refusal = wall.check(url, "document", method, is_frame=False)

    assert (before, refusal) == (None, "http after https")
    assert wall.is_https


def test_l7_login_when_another_host_is_asked_then_at_a_public_address_only() -> None:
    site = Site()
    wall = build(site, allow_hosts=("sso.test", "=cdn.test"), origins=("https://site.test",))

    for url in (LOGIN, "https://sso.test:8443/x"):
        run(lambda url=url: wall.fetch(url, "document", {}))
    other = build(site)
    run(lambda: other.fetch(SCRIPT, "script", {}))

    assert [one.meta[PUBLIC_ONLY] for one in site.asked] == [False, False, True]
