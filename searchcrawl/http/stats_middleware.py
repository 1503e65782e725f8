"""Counts requests and answers under the names that Scrapy has for them, which extensions of users read."""

from __future__ import annotations

from typing import Any, Final, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Headers, Response

from searchcrawl.http.visit_end import find_failure

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
        count("downloader/response_bytes", len(response.body) + _measure(response.headers) + _STATUS_LINE_BYTES)
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
