"""Obeys robots.txt (RFC 9309; C5, X-D7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.http.turn_middleware import TURN_ENDS
from searchcrawl.http.visit_end import PUBLIC_ONLY, VisitEnded, build_visit_end, find_claim, find_redirects
from searchcrawl.items import Claim, Outcome
from searchcrawl.politeness.rate_limiter import DryRunRateLimiter, RateLimiter
from searchcrawl.robots.files import RobotsCopy, RobotsFiles
from searchcrawl.rules.redirects import write_target
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: How often a visit that waits for its turn looks whether the crawl ends.
_LOOK_SECONDS: Final = 1.0


#: The key of ``Request.meta`` for the origin whose robots.txt allows a request that waits for its turn.
_CHECKED: Final = "robots_checked"


class RobotsMiddleware:
    """Ends visits that robots.txt forbids (951, ``rule`` is its line).

    If it answers 5xx or 429, all visits of that origin end with 951 and ``robots.unavailable``. If the host cannot be
    reached, or its answer not be read, they end with the code of that failure. In both cases robots.txt is requested again after a pause.
    ``files`` is None if robots.txt is not obeyed, and
    ``rate_limiter`` where pages wait for their turn later.
    """

    def __init__(
        self,
        files: RobotsFiles | None,
        rate_limiter: RateLimiter | None,
        *,
        is_closing: Callable[[], bool] = lambda: False,
    ) -> None:
        self._files = files
        self._rate_limiter = rate_limiter
        self._is_closing = is_closing
        if files is None:
            logger.warning("robots.txt is not obeyed for this source (robots.obey = false)")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMiddleware:
        stages = stages_of(crawler)
        waits_later = stages.find(DryRunRateLimiter) is not None
        rate_limiter = None if waits_later else stages.get(RateLimiter)
        return cls(stages.find(RobotsFiles), rate_limiter, is_closing=stages.get(SideRequests).is_closing)

    def process_request(self, request: Request) -> Awaitable[Request | None] | None:
        files, claim = self._files, find_claim(request)
        if files is None or claim is None:
            return None
        origin = urls.origin_of(request.url)
        if request.meta.pop(_CHECKED, None) == origin:
            return None
        copy = files.find(origin)
        if copy is None or origin in files.slowed:
            return self._check_in_turn(files, request, claim, origin)
        _check(request, claim, copy)
        return None

    async def _check_in_turn(self, files: RobotsFiles, request: Request, claim: Claim, origin: str) -> Request | None:
        """Checks a page whose own turn the file took, or another request while it was fetched.

        Where a delay is in force the page goes back to the frontier, and waits there for another turn: no request in
        flight waits, so that those of other hosts may go.
        """
        limiter, host = self._rate_limiter, urls.host_and_port(request.url)
        copy = files.find(origin)
        if copy is None:
            if limiter is not None:
                limiter.give_turn_back(host)
            copy = await files.fetch(origin, inside=not request.meta.get(PUBLIC_ONLY, False))
        _check(request, claim, copy)
        files.slowed.discard(origin)
        if limiter is None:
            return None
        request.meta.pop(TURN_ENDS, None)
        if limiter.has_delay(host):
            request.meta[_CHECKED] = origin
            return request
        await self._wait(limiter, request, claim)
        return None

    async def _wait(self, rate_limiter: RateLimiter, request: Request, claim: Claim) -> None:
        """Waits for a turn, unless the crawl ends before: the visit is given back then."""
        turn = asyncio.ensure_future(rate_limiter.wait_until_allowed(urls.host_and_port(request.url)))
        try:
            while not (await asyncio.wait([turn], timeout=_LOOK_SECONDS))[0]:
                if self._is_closing():
                    raise VisitEnded(Outcome(claim=claim, code=claim.code, released=True))
            await turn
        finally:
            turn.cancel()


def _check(request: Request, claim: Claim, copy: RobotsCopy) -> None:
    """Raises VisitEnded for a URL that must not be requested."""
    if copy.file is None:
        raise build_visit_end(
            request,
            claim,
            copy.code,
            rule=copy.rule,
            error=copy.error,
            transient=copy.transient,
            retry_after_seconds=copy.pause_seconds,
        )
    decision = copy.file.decide(request.url)
    if not decision.allowed:
        ended = build_visit_end(request, claim, Code.ROBOTS, rule=decision.rule, error=f"robots.txt: {decision.rule}")
        # After a redirect the row keeps where it led.
        target = write_target(request.url) if find_redirects(request) else None
        raise ended if target is None else VisitEnded(replace(ended.outcome, error=target))
