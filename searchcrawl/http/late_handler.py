"""Has the download handler of a source loaded with its first request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.crawler import Crawler

if TYPE_CHECKING:
    from searchcrawl.http.download_handler import GuardedHandler


class LateHandler:
    """Scrapy loads the classes of handlers with the engine, and makes those that are ``lazy`` when a request needs them.

    An HTTP client takes a tenth of the start, so a run that requests nothing does without.
    """

    lazy = True

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> GuardedHandler:
        from searchcrawl.http.download_handler import GuardedHandler  # noqa: PLC0415  # heavy

        return GuardedHandler.from_crawler(crawler)
