"""Requests beside the pages: their redirects, slots, headers and failures (C2, C5, C10, L5, L9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response

from searchcrawl.codes import Code
from searchcrawl.exceptions import CrawlEnds, HostBlocked
from searchcrawl.http.side_requests import (
    ASKED_FOR,
    Form,
    SideAnswer,
    SideLimits,
    SidePolicy,
    SideRequestFailed,
    SideRequests,
)
from searchcrawl.http.visit_end import PUBLIC_ONLY
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules
from tests.factories import ANY_TARGET

URL = "http://a.test/x"
POLICY = SidePolicy(kind="test", max_bytes=1000)
Answers = dict[str, tuple[int, str | None] | Exception]


class Site(RateLimiter):
    """Answers by URL with a status and a Location, and notes what happens in its order."""

    def __init__(self, answers: Answers, *, blocked: bool = False) -> None:
        self.answers = answers
        self.blocked = blocked
        self.requests: list[Request] = []
        self.steps: list[str] = []

    async def download(self, request: Request) -> Response:
        self.requests.append(request)
        self.steps.append(request.url)
        answer = self.answers.get(request.url, (200, None))
        if isinstance(answer, Exception):
            raise answer
        status, location = answer
        headers = {} if location is None else {"Location": location}
        return Response(request.url, status=status, headers=headers, body=b"text", request=request)

    async def wait_until_allowed(self, host: str) -> None:
        self.steps.append(f"wait {host}")

    async def acquire_request(self, host: str) -> None:
        if self.blocked:
            raise HostBlocked("blocked", code=429)
        self.steps.append(f"acquire {host}")

    def release_request(self, host: str) -> None:
        self.steps.append(f"release {host}")

    async def acquire_host(self, host: str) -> None:
        self.steps.append(f"acquire host {host}")

    def release_host(self, host: str) -> None:
        self.steps.append(f"release host {host}")


def get(
    site: Site,
    policy: SidePolicy = POLICY,
    *,
    is_closing: Callable[[], bool] = bool,
    targets: TargetRules = ANY_TARGET,
    **values: Any,
) -> SideAnswer:
    side = SideRequests(download=site.download, rate_limiter=site, targets=targets, is_closing=is_closing)
    return asyncio.run(side.fetch(URL, policy, **values))


def post(site: Site) -> SideAnswer:
    side = SideRequests(download=site.download, rate_limiter=site, targets=ANY_TARGET)
    return asyncio.run(side.fetch(URL, POLICY, form=Form(b"u=me", "http://a.test/form")))


def failure_of(site: Site, policy: SidePolicy = POLICY, **values: Any) -> SideRequestFailed:
    with pytest.raises(SideRequestFailed) as failed:
        get(site, policy, **values)
    return failed.value


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        (SideLimits.DELAY_ONLY, ["wait a.test:80", URL, "wait b.test:80", "http://b.test/y"]),
        (
            SideLimits.SITES,
            [
                "acquire host a.test:80",
                "wait a.test:80",
                URL,
                "wait b.test:80",
                "http://b.test/y",
                "release host a.test:80",
            ],
        ),
        (
            SideLimits.HOST_CONCURRENCY,
            [
                "acquire a.test:80",
                URL,
                "release a.test:80",
                "acquire b.test:80",
                "http://b.test/y",
                "release b.test:80",
            ],
        ),
    ],
)
def test_redirect_when_followed_then_each_request_waits_for_its_own_host(limits: SideLimits, steps: list[str]) -> None:
    site = Site({URL: (302, "http://b.test/y")})

    answer = get(site, SidePolicy(kind="test", max_bytes=1000, limits=limits))

    assert site.steps == steps
    assert (answer.url, answer.status, answer.body, answer.redirected) == ("http://b.test/y", 200, b"text", True)


def test_redirect_when_followed_then_each_request_says_where_it_comes_from() -> None:
    secure = "https://b.test/y"
    site = Site({URL: (301, "/z"), "http://a.test/z": (308, secure), secure: (302, "http://b.test/y")})

    get(site, SidePolicy(kind="test", max_bytes=1000), headers={"If-None-Match": '"1"'})

    assert [request.meta["from_https"] for request in site.requests] == [False, False, True, True]
    assert [b"If-None-Match" in request.headers for request in site.requests] == [True, False, False, False]
    assert {request.meta[ASKED_FOR] for request in site.requests} == {URL}
    slots = ["a.test:80", "a.test:80", "b.test:443", "b.test:80"]
    assert [request.meta["download_slot"] for request in site.requests] == slots


@pytest.mark.parametrize(
    ("answer", "status"), [((302, None), 302), ((404, "/z"), 404), ((303, "/z"), 303), ((500, None), 500)]
)
def test_answer_when_it_is_no_redirect_to_follow_then_it_is_returned(
    answer: tuple[int, str | None], status: int
) -> None:
    found = get(Site({URL: answer}), SidePolicy(kind="test", max_bytes=1000, followed=frozenset({302})))

    assert (found.status, found.redirected) == (status, False)


@pytest.mark.parametrize(
    ("answer", "code", "transient", "message"),
    [
        ((302, "/x"), Code.REDIRECT_LOOP, False, "more than 5 redirects from http://a.test/x"),
        ((302, "http://["), Code.NO_LOCATION, False, "http://a.test/x redirects to what is no URL"),
        (DownloadTimeoutError("slow\nline"), Code.TIMEOUT, True, "timeout: slow line"),
    ],
)
def test_answer_when_there_is_none_then_failure_has_the_code_of_a_page(
    answer: tuple[int, str | None] | Exception, code: Code, transient: bool, message: str
) -> None:
    failure = failure_of(Site({URL: answer}))

    assert (failure.code, failure.transient, str(failure)) == (code, transient, message)


def test_host_when_it_is_blocked_then_nothing_is_sent_and_its_status_is_the_code() -> None:
    site = Site({}, blocked=True)

    failure = failure_of(site, SidePolicy(kind="test", max_bytes=1000, limits=SideLimits.HOST_CONCURRENCY))

    assert (failure.code, failure.transient, site.requests) == (429, False, [])


def test_error_when_it_is_a_bug_then_it_is_not_hidden() -> None:
    with pytest.raises(KeyError):
        get(Site({URL: KeyError("a bug")}))


def test_check_when_it_refuses_a_target_then_that_is_not_requested() -> None:
    site = Site({URL: (302, "http://b.test/y")})

    async def check(url: str) -> None:
        if "b.test" in url:
            raise SideRequestFailed("outside", code=Code.OUTSIDE_BOUNDARY)

    failure = failure_of(site, check=check)

    assert (failure.code, [request.url for request in site.requests]) == (Code.OUTSIDE_BOUNDARY, [URL])


EXCLUDING = TargetRules(
    Boundary(include_hosts=["a.test"], exclude_ports=[81], exclude_urls=["*/private/*"]), named=["http://a.test:83/"]
)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["http://a.test:81/", "/private/x", "http://b.test/%70rivate/x?key=1"])
def test_redirect_when_an_exclude_rule_names_its_target_then_that_is_not_requested(status: int, target: str) -> None:
    site = Site({URL: (302, "/y"), "http://a.test/y": (status, target)})

    failure = failure_of(site, targets=EXCLUDING)
    answer = get(site, SidePolicy(kind="login", max_bytes=1000, ends_at_excluded=True), targets=EXCLUDING)

    assert (failure.code, failure.transient) == (Code.OUTSIDE_BOUNDARY, False)
    assert "which is excluded (scope.exclude_" in str(failure)
    assert "key=1" not in str(failure)
    assert (answer.url, answer.status) == ("http://a.test/y", status)
    assert {request.url for request in site.requests} == {URL, "http://a.test/y"}


def test_request_when_its_host_is_outside_and_its_port_unusual_then_its_address_has_to_be_public() -> None:
    targets = ["http://b.test:83/", "http://b.test/", "http://a.test:83/", "http://a.test:82/", "http://c.test:82/"]
    site = Site(dict(zip([URL, *targets], [(302, target) for target in targets], strict=False)))

    get(site, targets=EXCLUDING)

    assert [request.meta[PUBLIC_ONLY] for request in site.requests] == [False, True, False, False, False, True]


@pytest.mark.parametrize(
    ("limits", "sent"), [(SideLimits.DELAY_ONLY, 1), (SideLimits.SITES, 1), (SideLimits.HOST_CONCURRENCY, 0)]
)
def test_crawl_when_it_ends_then_only_requests_that_a_page_waits_for_are_sent(limits: SideLimits, sent: int) -> None:
    site = Site({})

    try:
        get(site, SidePolicy(kind="test", max_bytes=1000, limits=limits), is_closing=lambda: True)
    except CrawlEnds:
        assert site.steps == ["acquire a.test:80", "release a.test:80"]

    assert len(site.requests) == sent


@pytest.mark.parametrize(("status", "method"), [(302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_form_when_redirected_then_it_is_sent_again_only_where_the_method_stays(status: int, method: str) -> None:
    site = Site({URL: (status, "/z")})

    post(site)

    first, second = site.requests
    assert (first.method, first.body, first.headers[b"Referer"]) == ("POST", b"u=me", b"http://a.test/form")
    assert (second.method, second.body) == (method, b"u=me" if method == "POST" else b"")
    assert second.headers.get(b"Referer") == (URL.encode() if method == "POST" else None)


def test_form_when_it_is_sent_on_to_another_origin_then_it_is_not() -> None:
    site = Site({URL: (307, "https://a.test/x?secret=1")})

    with pytest.raises(SideRequestFailed, match=r"to another origin: https://a\.test/x; nothing"):
        post(site)

    assert [request.url for request in site.requests] == [URL]
