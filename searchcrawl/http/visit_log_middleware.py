"""Measures the requests of visits where ``logs.urls`` asks for a line for each."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from searchcrawl import clock
from searchcrawl.http.visit_end import find_claim
from searchcrawl.http.visit_log import VisitLog
from searchcrawl.stages import stages_of

_BEGUN = "visit_log_begun"


class VisitLogMiddleware:
    """The nearest one to the download: it sees the answer as it came."""

    def __init__(self, log: VisitLog) -> None:
        self._log = log

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> VisitLogMiddleware:
        log = stages_of(crawler).find(VisitLog)
        if log is None:
            raise NotConfigured
        return cls(log)

    def process_request(self, request: Request) -> None:
        request.meta[_BEGUN] = clock.monotonic()

    def process_response(self, request: Request, response: Response) -> Response:
        self._note(request, len(response.body))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._note(request, 0)

    def _note(self, request: Request, sent_bytes: int) -> None:
        claim, begun = find_claim(request), request.meta.get(_BEGUN)
        if claim is not None and begun is not None:
            self._log.note(claim.url_id, seconds=clock.monotonic() - begun, sent_bytes=sent_bytes)
