"""Retry-After of any answer leaves its host alone, in both forms, for a minute at most (X-R10, L5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from scrapy import Request

from searchcrawl import clock
from searchcrawl.http.redirect_middleware import RedirectMiddleware
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.rewriting import Rewriting
from tests.fetch_crawl import NotingRateLimiter
from tests.fetch_requests import answer, robots_request, visit

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
IN_20_SECONDS = format_datetime(NOW + timedelta(seconds=20), usegmt=True)


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def paused(request: Request, status: int, retry_after: str) -> dict[str, float]:
    """The hosts that are paused after an answer, and for how many seconds."""
    rate_limiter = NotingRateLimiter()
    tested = RedirectMiddleware(
        boundary=Boundary(include_hosts=["site.test"]),
        max_redirects=3,
        rewriting=Rewriting(),
        rate_limiter=rate_limiter,
    )
    tested.process_response(request, answer(request, status, Retry_After=retry_after, Location="/next"))
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
