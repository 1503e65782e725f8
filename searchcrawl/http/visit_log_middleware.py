"""What is written down of requests: counts for statistics, and where ``logs.urls`` asks for it a line of the log for each visit.

The line has how long the requests of the visit took, and what came of it (J4).
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Headers, Response

from searchcrawl import clock
from searchcrawl.codes import describe_code
from searchcrawl.http.large_response import find_body
from searchcrawl.http.visit_end import find_claim, find_failure, join_lines
from searchcrawl.items import Document, Outcome
from searchcrawl.sources.secrets import HIDDEN
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: Visits whose requests ended, and that did not end themselves yet, are few: this many can only be lost ones.
_MOST: Final = 10_000


class _Sent(NamedTuple):
    seconds: float = 0.0
    sent_bytes: int = 0


class VisitLog:
    """Adds up what the requests of a visit took, redirects included, and writes the line when it ends."""

    def __init__(self) -> None:
        self._sent: dict[int, _Sent] = {}

    def note(self, url_id: int, *, seconds: float, sent_bytes: int) -> None:
        """Notes a request of a visit that brought an answer or failed; ``sent_bytes`` are those of the body as sent."""
        if len(self._sent) >= _MOST:
            self._sent.clear()
        before = self._sent.get(url_id, _Sent())
        self._sent[url_id] = _Sent(before.seconds + seconds, before.sent_bytes + sent_bytes)

    def write(self, item: Document | Outcome) -> None:
        """Writes the line of a visit that is over."""
        sent = self._sent.pop(item.claim.url_id, _Sent())
        logger.info(
            "%d %s: %d bytes, %.0f ms: %s",
            item.code,
            item.claim.url,
            sent.sent_bytes,
            sent.seconds * 1000,
            _describe(item),
        )


def _describe(item: Document | Outcome) -> str:
    if isinstance(item, Document):
        text = (
            f"not indexed ({item.rule})"
            if item.rule
            else "the bytes of the last visit"
            if item.page is None
            else "read"
        )
        return f"{text}, redirected {len(item.redirects)} times" if item.redirects else text
    if item.released:
        return "released: the process stops"
    again = "; it is tried again" if item.transient else ""
    return f"{item.rule or item.error or describe_code(item.code)}{again}"


_BEGUN = "visit_log_begun"
#: Those of headers are shown without their values.
_CREDENTIALS: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization", b"set-cookie"})
_MOST_SHOWN: Final = 50


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
        self._note(request, len(find_body(response)))
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


#: Scrapy follows these below what counts answers as received.
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: " HTTP/1.1\r\n" and "\r\n"; "HTTP/1.1 200 \r\n" and "\r\n". What is not kept of an answer is its reason phrase.
_REQUEST_LINE_BYTES: Final = 14
_STATUS_LINE_BYTES: Final = 17


class StatsMiddleware:
    """The nearest one to the download: it sees each request that is sent, robots.txt and logins too.

    A class of Scrapy counts the same; it builds the text of each request for its size.
    """

    def __init__(self, stats: Any) -> None:
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("DOWNLOADER_STATS"):
            raise NotConfigured
        return cls(crawler.stats)

    def process_request(self, request: Request) -> None:
        count = self._stats.inc_value
        count("downloader/request_count")
        count(f"downloader/request_method_count/{request.method}")
        path = len(request.url) - request.url.find("/", 8)
        size = len(request.method) + path + _REQUEST_LINE_BYTES + _measure(request.headers) + len(request.body)
        count("downloader/request_bytes", size)

    def process_response(self, request: Request, response: Response) -> Response:
        count = self._stats.inc_value
        count("downloader/response_count")
        count(f"downloader/response_status_count/{response.status}")
        count("downloader/response_bytes", len(find_body(response)) + _measure(response.headers) + _STATUS_LINE_BYTES)
        if response.status not in _REDIRECTS:
            count("response_received_count")
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        # What our other middlewares raise is no failure of the network.
        if find_failure(exception) is not None:
            kind = type(exception)
            self._stats.inc_value("downloader/exception_count")
            self._stats.inc_value(f"downloader/exception_type_count/{kind.__module__}.{kind.__qualname__}")


def _measure(headers: Headers) -> int:
    """The bytes of headers with what is around them."""
    size = 0
    for name, values in dict.items(headers):
        for value in values:
            size += len(name) + len(value) + 4
    return size
