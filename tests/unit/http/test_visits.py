"""The middlewares one by one, on requests of claimed rows (B1, C6, D2, L5)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from scrapy import Request

from searchcrawl import clock
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.codes import Code
from searchcrawl.http import boundary_middleware
from searchcrawl.http.boundary_middleware import BoundaryMiddleware, ForgottenWatch
from searchcrawl.http.headers_middleware import ConditionalMiddleware
from searchcrawl.http.redirect_middleware import RedirectMiddleware
from searchcrawl.http.side_requests import ASKED_FOR, SideRequestFailed
from searchcrawl.http.turn_middleware import TURN_ENDS, LateTurnMiddleware
from searchcrawl.http.visit_end import PUBLIC_ONLY
from searchcrawl.items import Claim, Hop, Link
from searchcrawl.kind import WEB
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.forgotten import Forgotten
from searchcrawl.rules.redirects import TargetRules
from searchcrawl.rules.rewriting import Identity, Rewriting
from searchcrawl.sources.config import Source
from searchcrawl.sources.forgotten_list import add_lines
from searchcrawl.sources.loading import load_project, load_source
from tests.fetch_crawl import NotingRateLimiter
from tests.fetch_requests import TRAIL, URL, answer, claim, end_of, robots_request, visit

INSIDE = Boundary(include_hosts=["site.test"], exclude_urls=["*/private/*"], depth=2)
TARGETS = TargetRules(INSIDE, starts=["http://site.test:8000/"])
NOTHING_NEW: Any = SimpleNamespace(look=lambda: None)
BOUNDARY = BoundaryMiddleware(INSIDE, NOTHING_NEW, TrapWatch(1, trap_after=0, max_urls_per_pattern=0), TARGETS, WEB)
CONDITIONAL = ConditionalMiddleware()


def build_redirect(rate_limiter: RateLimiter) -> RedirectMiddleware:
    boundary = Boundary(include_hosts=["site.test"])
    return RedirectMiddleware(boundary=boundary, max_redirects=3, rewriting=Rewriting(), rate_limiter=rate_limiter)


REDIRECT = build_redirect(RateLimiter())


# Boundary


@pytest.mark.parametrize(
    ("url", "depth", "code", "rule"),
    [
        ("http://other.test/", 1, 955, "scope.include_hosts: no include matches"),
        ("http://site.test/private/x", 1, 955, "scope.exclude_urls: */private/*"),
        ("http://site.test/page", 3, 955, "scope.depth: depth = 2"),
        ("http://site.test/" + "x" * 3000, 1, 1004, "scope.max_url_length: max_url_length = 2048"),
    ],
)
def test_boundary_when_row_is_outside_then_visit_ends_with_rule(url: str, depth: int, code: int, rule: str) -> None:
    row = Claim(url_id=1, url=url, host_id=1, depth=depth)

    outcome = end_of(BOUNDARY.process_request, visit(url, row=row))

    assert (outcome.code, outcome.rule) == (code, rule)
    assert not outcome.transient


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://site.test/", "data:text/html,x"])
def test_boundary_when_scheme_is_not_http_then_url_is_malformed(url: str) -> None:
    outcome = end_of(BOUNDARY.process_request, visit(url))

    assert outcome.code == Code.MALFORMED_URL


@pytest.mark.parametrize(
    ("url", "public_only"),
    [("http://other.test/", False), ("http://other.test:8000/", False), ("http://other.test:8001/", True)],
)
def test_boundary_when_redirect_was_followed_then_target_may_lie_anywhere_with_a_public_address(
    url: str, public_only: bool
) -> None:
    request = visit(url, redirects=TRAIL)

    assert BOUNDARY.process_request(request) is None
    assert request.meta[PUBLIC_ONLY] is public_only


@pytest.mark.parametrize(("line", "error"), [(f"{URL}s", f"leads to {URL}s?utm_id=1"), (URL, None)])
def test_boundary_when_a_target_is_forgotten_while_it_waits_then_it_is_not_requested(
    line: str, error: str | None
) -> None:
    boundary = Boundary(allow_all=True)
    targets = TargetRules(boundary, rewriting=Rewriting(identity=Identity(["utm_*"])))
    watch: Any = SimpleNamespace(look=lambda: boundary.replace_forgotten(Forgotten([line])))
    middleware = BoundaryMiddleware(boundary, watch, TrapWatch(1, trap_after=0, max_urls_per_pattern=0), targets, WEB)
    request = visit(f"{URL}s?utm_id=1", redirects=TRAIL)

    outcome = end_of(middleware.process_request, request)

    assert (outcome.code, outcome.rule, outcome.redirects) == (955, f"forget: {line}", TRAIL)
    assert error in (None, outcome.error)
    side = Request(f"{line}?utm_id=1", meta={ASKED_FOR: "http://site.test/sitemap.xml"})
    with pytest.raises(SideRequestFailed, match="forget: "):
        middleware.process_request(side)
    assert middleware.process_request(side.replace(meta={ASKED_FOR: side.url})) is None


def test_boundary_when_a_visit_begins_again_then_what_held_for_its_target_is_forgotten() -> None:
    request = visit(redirects=(), **{PUBLIC_ONLY: True})

    assert BOUNDARY.process_request(request) is None
    assert PUBLIC_ONLY not in request.meta


class CutPattern:
    """All URLs of one path are cut."""

    def refuse(self, claim: Claim) -> Decision | None:
        return (
            Decision(False, "http://site.test/maze/**", "demo.toml", "scope.trap_after")
            if "/maze/" in claim.url
            else None
        )

    def split_refused(self, *_: object) -> NoReturn:
        raise AssertionError("only who claims sifts")


def test_boundary_when_pattern_was_cut_since_the_claim_then_nothing_is_requested() -> None:
    middleware, maze = BoundaryMiddleware(INSIDE, NOTHING_NEW, CutPattern(), TARGETS, WEB), "http://site.test/maze/1"

    outcome = end_of(middleware.process_request, visit(maze, row=Claim(url_id=1, url=maze, host_id=1, depth=1)))

    assert (outcome.code, outcome.rule) == (961, "scope.trap_after: http://site.test/maze/**")
    assert middleware.process_request(visit("http://site.test/other")) is None


def test_boundary_when_request_has_no_row_then_is_left_alone() -> None:
    assert BOUNDARY.process_request(Request("http://other.test/robots.txt", meta={"robots": True})) is None


# Conditional requests


def test_conditional_when_row_has_validators_then_both_are_sent() -> None:
    request = visit(row=claim(etag='"5"', last_modified="Sun, 01 Mar 2026 12:00:30 GMT"))

    CONDITIONAL.process_request(request)

    assert request.headers["If-None-Match"] == b'"5"'
    assert request.headers["If-Modified-Since"] == b"Sun, 01 Mar 2026 12:00:30 GMT"


@pytest.mark.parametrize(
    ("etag", "redirects"), [('"5"', TRAIL), *((etag, ()) for etag in ('"é"', '"a\r\nX-Evil: 1"', '"\x00"'))]
)
def test_conditional_when_url_is_a_redirects_target_or_validator_is_not_plain_text_then_none_is_sent(
    etag: str, redirects: tuple[Hop, ...]
) -> None:
    request = visit(row=claim(etag=etag), redirects=redirects)

    CONDITIONAL.process_request(request)

    assert b"If-None-Match" not in request.headers


def test_conditional_when_304_was_asked_for_then_visit_ends_unchanged() -> None:
    request = visit(row=claim(etag='"5"'))
    CONDITIONAL.process_request(request)

    outcome = end_of(CONDITIONAL.process_response, request, answer(request, 304, ETag='W/"6"'))

    assert (outcome.code, outcome.etag, outcome.transient, outcome.error) == (304, 'W/"6"', False, None)


def test_conditional_when_304_was_not_asked_for_then_failure_passes() -> None:
    request = visit()

    outcome = end_of(CONDITIONAL.process_response, request, answer(request, 304))

    assert outcome.code == 304
    assert outcome.transient
    assert outcome.error == "304 without a condition: http://site.test/page"


def test_conditional_when_answer_is_another_then_goes_on() -> None:
    request = visit(row=claim(etag='"5"'))

    assert CONDITIONAL.process_response(request, answer(request)).status == 200


# Redirects


@pytest.mark.parametrize("status", [302, 303, 307])
def test_redirect_when_temporary_then_is_followed_for_the_same_row(status: int) -> None:
    request = visit(row=claim(etag='"5"'), wanted=1, download_latency=0.1, download_timeout=9)
    request.headers["X-Api-Key"] = "secret"

    following = REDIRECT.process_response(request, answer(request, status, Location="http://other.test:8080/x#part"))

    assert isinstance(following, Request)
    assert following.url == "http://other.test:8080/x"
    assert following.meta == {
        "claim": request.meta["claim"],
        "wanted": 1,
        "redirects": (Hop(URL, status),),
        "download_slot": "other.test:8080",
        "verbatim_url": True,
    }
    assert following.dont_filter
    assert not following.headers


@pytest.mark.parametrize(
    ("status", "location", "links", "rule"),
    [
        (301, "/new", (Link("http://site.test/new"),), None),
        (308, "/new", (Link("http://site.test/new"),), None),
        (301, "http://other.test/", (), "scope.include_hosts: no include matches"),
    ],
)
def test_redirect_when_permanent_then_target_is_a_link_or_the_rule_that_refuses_it_is_named(
    status: int, location: str, links: tuple[Link, ...], rule: str | None
) -> None:
    request = visit()

    outcome = end_of(REDIRECT.process_response, request, answer(request, status, Location=location))

    assert (outcome.code, outcome.links, outcome.rule) == (954, links, rule)
    assert outcome.redirects == (Hop(URL, status),)


@pytest.mark.parametrize(
    ("locations", "code"),
    [
        ([], 1003),
        ([" "], 1003),
        (["http://[bad"], 1003),
        (["file:///etc/passwd"], 1003),
        (["/one", "/two"], 1003),
        (["/page"], 963),
        (["/first"], 963),
    ],
)
def test_redirect_when_it_leads_nowhere_then_visit_ends(locations: list[str], code: int) -> None:
    request = visit(redirects=TRAIL)

    outcome = end_of(REDIRECT.process_response, request, answer(request, 302, Location=locations))

    assert outcome.code == code
    assert outcome.error


def test_redirect_when_there_were_too_many_then_visit_ends() -> None:
    trail = tuple(Hop(f"http://site.test/{n}", 302) for n in range(3))
    request = visit(redirects=trail)

    outcome = end_of(REDIRECT.process_response, request, answer(request, 302, Location="/next"))

    assert outcome.code == Code.REDIRECT_LOOP
    assert outcome.redirects == trail


def test_redirect_when_answer_is_of_robots_then_is_left_alone() -> None:
    response = answer(robots_request(), 302, Location="/x")

    assert REDIRECT.process_response(robots_request(), response) is response


@pytest.mark.parametrize(
    ("left_s", "waited"),
    [(None, []), (1000, []), (-0.001, ["a.example:80"])],
    ids=["no delay is in force", "in time", "late"],
)
def test_request_when_its_turn_has_passed_then_waits_for_another(left_s: float | None, waited: list[str]) -> None:
    limiter = NotingRateLimiter()
    meta = {} if left_s is None else {TURN_ENDS: clock.monotonic() + left_s}
    request = Request("http://a.example/", meta=meta)

    async def process() -> None:
        waiting = LateTurnMiddleware(limiter).process_request(request)
        if waiting is not None:
            await waiting

    asyncio.run(process())

    assert limiter.turns == waited
    assert TURN_ENDS not in request.meta


# Retry-After of any answer leaves its host alone, in both forms, for a minute at most (X-R10, L5).

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
IN_20_SECONDS = format_datetime(NOW + timedelta(seconds=20), usegmt=True)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def paused(request: Request, status: int, retry_after: str) -> dict[str, float]:
    """The hosts that are paused after an answer, and for how many seconds."""
    rate_limiter = NotingRateLimiter()
    build_redirect(rate_limiter).process_response(
        request, answer(request, status, Retry_After=retry_after, Location="/next")
    )
    return rate_limiter.delays


@pytest.mark.parametrize("status", [200, 203, 302, 304, 404, 500])
@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("7", 7.0), (IN_20_SECONDS, 20.0), ("3600", 60.0), ("99999999999999", 60.0)]
)
def test_r10_answer_when_it_names_a_pause_then_its_host_gets_it(status: int, retry_after: str, seconds: float) -> None:
    assert paused(visit(), status, retry_after) == {"site.test:80": seconds}


@pytest.mark.parametrize("status", [200, 302, 429, 503])
def test_r10_answer_when_it_is_a_robots_file_then_the_host_is_left_alone_too(status: int) -> None:
    assert paused(robots_request(), status, "5") == {"site.test:80": 5.0}


@pytest.mark.parametrize("retry_after", ["0", "soon", "-5", format_datetime(NOW - timedelta(days=1), usegmt=True)])
def test_r10_answer_when_it_names_no_pause_then_there_is_none(retry_after: str) -> None:
    assert paused(visit(), 200, retry_after) == {}


@pytest.mark.parametrize("status", [429, 503])
def test_r10_page_when_the_host_is_busy_then_the_end_of_its_visit_tells_how_long(status: int) -> None:
    assert paused(visit(), status, "3600") == {}


# What is forgotten

FORGOTTEN = "http://a.test/page"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "sources").mkdir()
    (tmp_path / "searchcrawl.toml").write_text('contact = "a@acme.test"\n')
    (tmp_path / "sources" / "a.toml").write_text(
        '[start]\nurls = ["http://a.test/"]\n[scope]\ninclude_hosts = ["a.test"]\n'
    )
    return load_source(load_project(tmp_path), "a")


def test_look_when_lines_come_and_go_then_the_boundary_follows(tmp_path: Path, source: Source) -> None:
    boundary = Boundary(include_hosts=["a.test"])
    watch = ForgottenWatch(tmp_path, source, boundary)
    seen = []
    for change in (lambda: None, lambda: add_lines(tmp_path, [FORGOTTEN]), (tmp_path / "forgotten.txt").unlink):
        change()
        watch.look()
        seen.append(boundary.decide(FORGOTTEN).allowed)

    assert seen == [True, False, True]


def test_look_when_the_file_is_the_same_then_its_lines_are_not_compared_again(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    class Lines(tuple[str, ...]):
        __slots__ = ()

        def __ne__(self, other: object) -> bool:
            compared.append(other)
            return tuple(self) != other

    lines = Lines([FORGOTTEN])
    monkeypatch.setattr(boundary_middleware, "read_list", lambda root: lines)
    boundary: Any = SimpleNamespace(replace_forgotten=lambda forgotten: None)
    watch = ForgottenWatch(tmp_path, source, boundary)
    for _ in range(3):
        watch.look()

    assert len(compared) == 1
