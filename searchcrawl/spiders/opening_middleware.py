"""Has URLs wait that the spider of a source says are not to be requested yet: *not now*, which refuses nothing (B1, K4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl import clock
from searchcrawl.documents.own_pipeline import PluginErrors
from searchcrawl.http.visit_end import VisitEnded, find_claim, find_redirects
from searchcrawl.items import Outcome
from searchcrawl.own_code import ordinary_errors
from searchcrawl.run import Run
from searchcrawl.spiders.own_middleware import plugin_errors_of
from searchcrawl.spiders.web_spider import WebSpider
from searchcrawl.stages import stages_of


class OpeningMiddleware:
    """Asks ``find_opening`` of the spider before each request, of targets of redirects as well.

    A visit that is not to be made now ends without a request. Its row keeps what it has, and so does its document; it is due
    once the URL may be requested.
    """

    def __init__(self, find_opening: Callable[[str], datetime | None], name: str, errors: PluginErrors) -> None:
        self._find_opening = find_opening
        self._name = name
        self._errors = errors

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OpeningMiddleware:
        spider: Any = crawler.spider
        if getattr(type(spider), "find_opening", None) in {None, WebSpider.find_opening}:
            raise NotConfigured
        run = stages_of(crawler).get(Run)
        name = f"spider {run.source.spider or run.source.kind.spider}.find_opening"
        return cls(spider.find_opening, name, plugin_errors_of(crawler, run.shutdown))

    def process_request(self, request: Request) -> None:
        claim = find_claim(request)
        if claim is None:
            return
        try:
            with ordinary_errors():
                opening = _read(self._find_opening(request.url))
        except Exception as error:
            redirects = find_redirects(request)
            raise VisitEnded(self._errors.note_error(self._name, claim, error, redirects=redirects)) from error
        self._errors.note_good(self._name)
        if opening is not None and opening > clock.now_ms():
            error_text = f"not to be requested before {clock.iso(opening)}: {self._name}"
            is_asked = bool(find_redirects(request))
            raise VisitEnded(
                Outcome(claim=claim, code=claim.code, error=error_text, unasked=not is_asked, not_before_ms=opening)
            )


def _read(opening: object) -> int | None:
    """A moment in ms since 1970; raises TypeError for what is none, or has no time zone."""
    if opening is None:
        return None
    if not isinstance(opening, datetime) or opening.utcoffset() is None:
        shown = "a datetime without a time zone" if isinstance(opening, datetime) else f"a {type(opening).__name__}"
        raise TypeError(f"returned {shown}, not a datetime with a time zone or None")
    return clock.cap_ms(opening)
