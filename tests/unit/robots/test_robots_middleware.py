"""robots.txt asked for once an origin, and what its answers mean for visits (RFC 9309; C5, X-D7, X-B1–B7)."""

from __future__ import annotations

import asyncio
import gzip
import logging
from itertools import pairwise
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.http import Response

from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.visit_end import BrokenHeader, CertificateRefused, ForbiddenAddress, VisitEnded
from searchcrawl.items import Claim, Outcome
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots import files
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.robots.robots_middleware import RobotsMiddleware
from tests.factories import ANY_TARGET

RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n"
Answer = tuple[int, bytes, dict[str, str]] | Exception


class Site(RateLimiter):
    """Answers robots requests by URL, and is the host table's clock besides."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.turns: list[str] = []
        self.inside = 0
        self.delays: dict[str, float] = {}

    async def download(self, request: Request) -> Response:
        assert request.meta["side_request"] == "robots"
        assert self.inside
        self.asked.append(request.url)
        await asyncio.sleep(0)
        answer = self.answers.get(request.url, (404, b"", {}))
        if isinstance(answer, Exception):
            raise answer
        status, body, headers = answer
        return Response(request.url, status=status, body=body, headers=headers, request=request)

    async def wait_until_allowed(self, host: str) -> None:
        self.turns.append(host)

    def set_crawl_delay(self, host: str, *, delay_seconds: float, starts: bool = True) -> None:
        self.delays[host] = delay_seconds

    async def acquire_host(self, host: str) -> None:
        self.inside += 1

    def release_host(self, host: str) -> None:
        self.inside -= 1


@pytest.fixture(autouse=True)
def pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PAUSE_SECONDS", 30.0)


def obeying(site: Site, **values: Any) -> RobotsMiddleware:
    return RobotsMiddleware(files_of(site, **values), site)


def files_of(site: Site, **values: Any) -> RobotsFiles:
    given = {"user_agent": "searchcrawl", "max_crawl_delay_seconds": 60.0} | values
    return RobotsFiles(SideRequests(download=site.download, rate_limiter=site, targets=ANY_TARGET), site, **given)


async def judged(middleware: RobotsMiddleware, url: str) -> Outcome | None:
    """How the visit of ``url`` ended; None where it goes on."""
    row = Claim(url_id=1, url=url, host_id=1, depth=1)
    try:
        waiting = middleware.process_request(Request(url, meta={"claim": row}))
        if waiting is not None:
            await waiting
    except VisitEnded as ended:
        return ended.outcome
    return None


def visit(middleware: RobotsMiddleware, *urls: str) -> list[Outcome | None]:
    """How the visits end, one after the other."""

    async def visit_all() -> list[Outcome | None]:
        return [await judged(middleware, url) for url in urls]

    return asyncio.run(visit_all())


def end_of(outcome: Outcome | None) -> tuple[int, str | None, bool] | None:
    return None if outcome is None else (outcome.code, outcome.rule, outcome.transient)


def test_robots_when_the_crawl_ends_while_a_visit_waits_for_its_turn_then_it_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(Site):
        async def wait_until_allowed(self, host: str) -> None:
            self.turns.append(host)
            # The first turn is that of robots.txt.
            if len(self.turns) > 1:
                await asyncio.Event().wait()

    monkeypatch.setattr("searchcrawl.robots.robots_middleware._LOOK_SECONDS", 0.01)
    site = Slow({})
    middleware = RobotsMiddleware(files_of(site), site, is_closing=lambda: len(site.turns) > 1)

    ended = asyncio.run(judged(middleware, "http://a.test/page"))

    assert ended is not None
    assert (ended.released, site.turns) == (True, ["a.test:80"] * 2)


FORBIDDEN = (951, "Disallow: /private/", False)
UNAVAILABLE = (951, "robots.unavailable", True)


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        ((200, RULES, {}), FORBIDDEN),
        ((200, gzip.compress(RULES), {"Content-Encoding": "gzip"}), FORBIDDEN),
        ((200, b"no gzip", {"Content-Encoding": "gzip"}), (958, None, True)),
        # Where it is missing, all is allowed, whatever its body says.
        *(
            ((status, b"User-agent: *\nDisallow: /", {}), None)
            for status in (300, 301, 304, 400, 401, 403, 404, 410, 418, 451, 499)
        ),
        *(
            ((301, b"", {"Location": location}), None)
            for location in ("", "http://[bad", "file:///etc/passwd", "/robots.txt")
        ),
        # Where it cannot be had, nothing is asked for now.
        *(((status, b"User-agent: *\nAllow: /", {}), UNAVAILABLE) for status in (0, 199, 429, 500, 502, 503, 599, 999)),
        (DownloadTimeoutError("slow"), (902, None, True)),
        (DownloadConnectionRefusedError("no"), (906, None, True)),
        (CannotResolveHostError("no"), (907, None, True)),
        (ForbiddenAddress("10.0.0.1"), (907, None, False)),
        (CertificateRefused("expired"), (962, None, True)),
        (DownloadFailedError("reset"), (905, None, True)),
        (ResponseDataLossError("cut"), (958, None, True)),
        (BrokenHeader("bad"), (1006, None, True)),
    ],
)
def test_robots_when_it_is_answered_or_not_then_visits_end_as_that_says(
    answer: Answer, ended: tuple[int, str | None, bool] | None
) -> None:
    middleware = obeying(Site({"http://site.test/robots.txt": answer}))

    page, private = visit(middleware, "http://site.test/page", "http://site.test/private/x")

    assert (end_of(page), end_of(private)) == (None if ended == FORBIDDEN else ended, ended)
    assert page is None or (page.error or "").startswith("robots.txt: ")
    assert page is None or ended != UNAVAILABLE or page.retry_after_seconds == pytest.approx(30, abs=5)


def test_robots_when_asking_breaks_for_another_reason_then_it_is_not_hidden() -> None:
    with pytest.raises(KeyError):
        visit(obeying(Site({"http://site.test/robots.txt": KeyError("a bug")})), "http://site.test/page")


def test_robots_when_many_pages_wait_then_it_is_asked_for_once() -> None:
    site = Site({"http://site.test/robots.txt": (200, RULES, {})})
    middleware = obeying(site)

    async def steps() -> list[Outcome | None]:
        together = [judged(middleware, f"http://site.test/{n}") for n in range(5)]
        return [*await asyncio.gather(*together), await judged(middleware, "http://site.test/private/later")]

    *outcomes, last = asyncio.run(steps())

    assert site.asked == ["http://site.test/robots.txt"]
    assert outcomes == [None] * 5
    assert last is not None
    assert last.code == 951


def test_robots_when_asked_for_then_it_and_the_waiting_page_take_turns() -> None:
    site = Site({})

    visit(obeying(site), "http://site.test/1", "http://site.test/2")

    assert site.turns == ["site.test:80", "site.test:80"]


def test_c2_robots_when_read_for_a_sitemap_and_it_asks_for_a_delay_then_the_next_page_waits_for_its_turn() -> None:
    site = Site({"http://site.test/robots.txt": (200, RULES, {})})
    files = files_of(site)
    asyncio.run(files.get_rules("http://site.test"))

    visit(RobotsMiddleware(files, site), *(f"http://site.test/{number}" for number in range(3)))

    # The file's, and that of the page that may have been handed out before.
    assert site.turns == ["site.test:80", "site.test:80"]


def test_robots_when_origins_differ_then_each_is_asked() -> None:
    site = Site({})
    origins = ["http://site.test", "https://site.test", "http://site.test:8080", "http://www.site.test"]

    visit(obeying(site), *(f"{origin}/" for origin in origins))

    assert site.asked == [f"{origin}/robots.txt" for origin in origins]


@pytest.mark.parametrize(
    ("answer", "seconds", "asked"),
    [
        ((200, RULES, {}), 23 * 3600, 1),
        ((200, RULES, {}), 25 * 3600, 2),
        ((404, b"", {}), 25 * 3600, 2),
        ((503, b"", {}), 29, 1),
        ((503, b"", {}), 31, 2),
        ((503, b"", {"Retry-After": "300"}), 299, 1),
        ((503, b"", {"Retry-After": "300"}), 301, 2),
        (DownloadTimeoutError(), 31, 2),
    ],
)
def test_robots_when_time_goes_by_then_it_is_asked_for_again(
    now: list[float], answer: Answer, seconds: float, asked: int
) -> None:
    site = Site({"http://site.test/robots.txt": answer})
    middleware = obeying(site)

    visit(middleware, "http://site.test/1")
    now[0] += seconds
    visit(middleware, "http://site.test/2")

    assert len(site.asked) == asked


@pytest.mark.parametrize("failure", [(503, b"", {}), DownloadTimeoutError()])
def test_robots_when_refreshing_fails_then_the_last_good_copy_stays(now: list[float], failure: Answer) -> None:
    site = Site({"http://site.test/robots.txt": (200, RULES, {})})
    middleware = obeying(site)

    visit(middleware, "http://site.test/")
    site.answers["http://site.test/robots.txt"] = failure
    now[0] += 25 * 3600
    allowed, refused = visit(middleware, "http://site.test/", "http://site.test/private/x")

    assert allowed is None
    assert refused is not None
    assert refused.rule == "Disallow: /private/"
    assert len(site.asked) == 2


def redirects(count: int) -> dict[str, Answer]:
    names = ["http://site.test/robots.txt", *(f"http://host{n}.test/robots.txt" for n in range(1, count + 1))]
    answers: dict[str, Answer] = {name: (302, b"", {"Location": target}) for name, target in pairwise(names)}
    return answers | {names[-1]: (200, RULES, {})}


@pytest.mark.parametrize(("count", "code"), [(1, 951), (5, 951), (6, None)])
def test_robots_when_redirected_then_five_are_followed_and_more_allow_all(count: int, code: int | None) -> None:
    site = Site(redirects(count))

    (outcome,) = visit(obeying(site), "http://site.test/private/x")

    assert (outcome.code if outcome else None) == code
    assert len(site.asked) == min(count, 5) + 1


@pytest.mark.parametrize(
    ("longest", "expected"), [(60.0, {"site.test:80": 7.0}), (5.0, {"site.test:80": 5.0}), (None, {})]
)
def test_robots_when_it_asks_for_a_delay_then_the_host_is_slowed_down(
    longest: float | None, expected: dict[str, float]
) -> None:
    site = Site({"http://site.test/robots.txt": (200, RULES, {})})

    visit(obeying(site, max_crawl_delay_seconds=longest), "http://site.test/")

    assert site.delays == expected


def test_robots_when_not_obeyed_then_log_says_so_once_and_nothing_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    site = Site({"http://site.test/robots.txt": (200, RULES, {})})

    with caplog.at_level(logging.INFO):
        outcomes = visit(RobotsMiddleware(None, site), "http://site.test/private/x")

    assert outcomes == [None]
    assert site.asked == []
    assert [record.message for record in caplog.records] == [
        "robots.txt is not obeyed for this source (robots.obey = false)"
    ]


def test_robots_when_request_has_no_row_then_is_left_alone() -> None:
    site = Site({})

    assert (
        obeying(site).process_request(Request("http://site.test/robots.txt", meta={"side_request": "robots"})) is None
    )


def test_robots_when_files_are_large_then_the_oldest_are_given_up_and_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "_MAX_MEMORY_BYTES", 12_000_000)
    large = b"User-agent: *\nDisallow: /private/\n" + b"".join(b"Allow:/%x\n" % number for number in range(9_000))
    hosts = [f"http://h{number}.test" for number in range(4)]
    site = Site({f"{host}/robots.txt": (200, large, {}) for host in hosts})
    middleware = obeying(site)

    ended = visit(middleware, *(f"{host}/private/x" for host in (*hosts, hosts[-1], hosts[0])))

    assert {outcome.rule for outcome in ended if outcome} == {"Disallow: /private/"}
    assert site.asked == [f"{host}/robots.txt" for host in (*hosts, hosts[0])]
