"""No log line a page: the URL table says what became of each URL, and lines cost time."""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.logformatter import LogFormatter


class QuietLogFormatter(LogFormatter):
    """Leaves out the lines for crawled pages, scraped items and failed downloads."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> Any:
        return None

    def scraped(self, item: Any, response: Any, spider: Spider) -> Any:
        return None
