"""Measures the requests of visits where ``logs.urls`` asks for a line for each."""

from __future__ import annotations

import logging
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Headers, Response

from searchcrawl import clock
from searchcrawl.http.visit_end import find_claim, join_lines
from searchcrawl.http.visit_log import VisitLog
from searchcrawl.sources.secrets import HIDDEN
from searchcrawl.stages import stages_of

_BEGUN = "visit_log_begun"
#: Those of headers are shown without their values.
_CREDENTIALS: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization", b"set-cookie"})
_MOST_SHOWN: Final = 50

logger = logging.getLogger(__name__)


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
        if logger.isEnabledFor(logging.DEBUG):
            asked, answered = describe_headers(request.headers), describe_headers(response.headers)
            logger.debug("%s: asked with %s; answered %d with %s", request.url, asked, response.status, answered)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._note(request, 0)

    def _note(self, request: Request, sent_bytes: int) -> None:
        claim, begun = find_claim(request), request.meta.get(_BEGUN)
        if claim is not None and begun is not None:
            self._log.note(claim.url_id, seconds=clock.monotonic() - begun, sent_bytes=sent_bytes)


def describe_headers(headers: Headers) -> str:
    """Headers on one line, without credentials; a value is as long as a line of the log may have it."""
    pairs = [(name, value) for name, values in headers.items() for value in values]
    return ", ".join(
        f"{join_lines(name.decode('latin-1'))}: {HIDDEN if name.lower() in _CREDENTIALS else join_lines(value.decode('latin-1'))}"
        for name, value in pairs[:_MOST_SHOWN]
    )
