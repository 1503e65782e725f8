"""Follows, moves or ends redirects as ``rules.redirects`` decides (C6, X-R8, X-N7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from searchcrawl import urls
from searchcrawl.codes import BUSY, Code
from searchcrawl.http.visit_end import VisitEnded, build_visit_end, find_claim, find_redirects
from searchcrawl.items import Claim
from searchcrawl.politeness.backoff import MAX_RETRY_PAUSE_SECONDS, parse_retry_after
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules import redirects
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import Redirect, RedirectKind
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

#: The key of ``Request.meta`` by which a login notes that it keeps the cookies of the URL.
KEEPS_COOKIES: Final = "cookie_generation"


class RedirectMiddleware:
    """Makes a followed redirect a new Request of the same row; every other redirect ends the visit.

    It gets every answer, also those of side requests, and pauses the host as long as Retry-After says. The new request
    has no header of the old one: validators, credentials and Referer are not sent on.
    """

    def __init__(
        self, *, boundary: Boundary, max_redirects: int, rewriting: Rewriting, rate_limiter: RateLimiter
    ) -> None:
        self._boundary = boundary
        self._rewriting = rewriting
        self._rate_limiter = rate_limiter
        self._max_redirects = max_redirects

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RedirectMiddleware:
        stages = stages_of(crawler)
        run = stages.get(Run)
        return cls(
            boundary=run.boundary,
            max_redirects=run.source.fetch.max_redirects,
            rewriting=run.rewriting,
            rate_limiter=stages.get(RateLimiter),
        )

    def process_response(self, request: Request, response: Response) -> Response | Request:
        # dict's own method is faster: the name needs no normalisation.
        if dict.__contains__(response.headers, b"Retry-After"):
            self._apply_retry_after(request, response)
        if not 300 < response.status < 309:
            return response
        claim = find_claim(request)
        if claim is None:
            return response
        verdict = redirects.decide(
            response.status,
            response.headers.getlist(b"Location"),
            base_url=request.url,
            boundary=self._boundary,
            hops=find_redirects(request),
            max_redirects=self._max_redirects,
            depth=claim.depth,
            rewriting=self._rewriting,
            own_url=claim.url,
            keeps_cookies=KEEPS_COOKIES in request.meta,
        )
        if verdict.kind is RedirectKind.FOLLOW and verdict.url is not None:
            return repeat_request(request, verdict.url, redirects=verdict.hops)
        if verdict.kind is RedirectKind.NONE:
            return response
        raise _build_end(request, claim, verdict)

    def _apply_retry_after(self, request: Request, response: Response) -> None:
        """Pauses the host as long as an answer says, a minute at most.

        After 429 and 503 for a page, the frontier decides when it gets the end of the visit.
        """
        seconds = parse_retry_after(response.headers.get(b"Retry-After"))
        decided_by_frontier = response.status in BUSY and find_claim(request) is not None
        if seconds and not decided_by_frontier:
            self._rate_limiter.pause(urls.host_and_port(request.url), seconds=min(seconds, MAX_RETRY_PAUSE_SECONDS))


def repeat_request(request: Request, url: str, **meta: Any) -> Request:
    """The request for the same row at ``url``, without headers, and with ``meta`` besides that of the old one."""
    # Scrapy's notes in ``meta`` about the download belong to the old request, and so does that of a login.
    kept = {
        name: value
        for name, value in request.meta.items()
        if not name.startswith("download_") and name != KEEPS_COOKIES
    }
    return Request(
        url,
        callback=request.callback,
        errback=request.errback,
        meta=kept | {"download_slot": urls.host_and_port(url), "verbatim_url": True} | meta,
        priority=request.priority,
        dont_filter=True,
        cb_kwargs=request.cb_kwargs,
    )


def _build_end(request: Request, claim: Claim, verdict: Redirect) -> VisitEnded:
    if verdict.kind is RedirectKind.FAIL:
        code = Code.NO_LOCATION if verdict.code is None else verdict.code
        return build_visit_end(request, claim, code, error=verdict.error)
    decision = verdict.decision
    rule = None if decision.allowed else f"{decision.key}: {decision.rule}"
    links = () if verdict.link is None else (verdict.link,)
    code = Code.MOVED if verdict.code is None else verdict.code
    outcome = build_visit_end(request, claim, code, rule=rule).outcome
    error = None if verdict.url is None else redirects.write_target(verdict.url)
    return VisitEnded(replace(outcome, links=links, redirects=verdict.hops, error=error))
