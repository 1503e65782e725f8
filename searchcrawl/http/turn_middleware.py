"""Lets pages wait for their turns where the window does not, or another process does (C2).

The window hands out the pages of a crawl when they may go. ``test`` and ``explain --live`` have none; a member of a run may
come to send a request so late that it would be near the next one.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from searchcrawl import clock, urls
from searchcrawl.codes import BUSY
from searchcrawl.exceptions import HostBlocked
from searchcrawl.http.visit_end import build_visit_end, find_claim
from searchcrawl.politeness.backoff import parse_retry_after
from searchcrawl.politeness.rate_limiter import DryRunRateLimiter, RateLimiter
from searchcrawl.stages import stages_of

#: The key of ``Request.meta`` for the moment (monotonic seconds) before which a request has to be sent.
TURN_ENDS: Final = "turn_ends"


class LateTurnMiddleware:
    """A request of a member whose turn has passed waits for another one."""

    def __init__(self, rate_limiter: RateLimiter) -> None:
        self._rate_limiter = rate_limiter

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LateTurnMiddleware:
        return cls(stages_of(crawler).get(RateLimiter))

    def process_request(self, request: Request) -> Awaitable[None] | None:
        ends = request.meta.pop(TURN_ENDS, None)
        if ends is None or clock.monotonic() <= ends:
            return None
        return self._rate_limiter.wait_until_allowed(urls.host_and_port(request.url))


class TurnMiddleware:
    """Each request for a page waits, redirects and repetitions included; side requests have waited before.

    A page of a host that asked for a long pause ends with the code of that answer, without a request.
    """

    def __init__(self, rate_limiter: DryRunRateLimiter) -> None:
        self._rate_limiter = rate_limiter

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> TurnMiddleware:
        rate_limiter = stages_of(crawler).find(DryRunRateLimiter)
        if rate_limiter is None:
            raise NotConfigured
        crawler.signals.connect(rate_limiter.finish, signal=signals.spider_closed)
        return cls(rate_limiter)

    async def process_request(self, request: Request) -> None:
        claim = find_claim(request)
        if claim is None:
            return
        try:
            await self._rate_limiter.wait_until_allowed(urls.host_and_port(request.url))
        except HostBlocked as error:
            raise build_visit_end(request, claim, error.code, error=str(error)) from error

    def process_response(self, request: Request, response: Response) -> Response:
        seconds = parse_retry_after(response.headers.get(b"Retry-After"))
        if seconds and response.status in BUSY and find_claim(request) is not None:
            self._rate_limiter.note_busy(urls.host_and_port(request.url), code=response.status, seconds=seconds)
        return response
