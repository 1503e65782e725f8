"""Ends visits whose page a component of a user dropped: otherwise their rows would be in flight for ever (X-D3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from searchcrawl.codes import Code
from searchcrawl.http.visit_end import find_claim
from searchcrawl.items import Claim, Document, Outcome


class SettlingMiddleware:
    """The last spider middleware; it is used only if users have pipelines or spider middlewares of their own.

    If none of them hands the page on, the visit has failed (903). The document in the store stays.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SettlingMiddleware:
        middleware = cls(crawler)
        crawler.signals.connect(middleware.item_scraped, signal=signals.item_scraped)
        return middleware

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yields all items. If none of them is the page (a Document or Outcome of its row), the visit ends here."""
        claim = None if response.request is None else find_claim(response.request)
        missing = claim is not None
        async for item in result:
            missing = missing and claim is not None and not _ends_visit(item, claim)
            yield item
        if missing and claim is not None:
            yield _failed(claim, "a spider middleware handed no page on")

    def item_scraped(self, item: object, response: Response | Failure | None) -> None:
        """Notes an item that passed all pipelines: the page reached the writer, or became another item."""
        request = getattr(response, "request", None)
        claim = None if request is None else find_claim(request)
        if claim is None or _ends_visit(item, claim):
            return
        why = f"a pipeline made {type(item).__name__} of the page"
        # The scheduler receives this signal, and knows whether the visit has already ended.
        self._crawler.signals.send_catch_log(
            signals.item_error,
            item=_failed(claim, why),
            response=response,
            spider=self._crawler.spider,
            failure=Failure(TypeError(why)),  # type: ignore[no-untyped-call]  # Twisted's
        )


def _ends_visit(item: object, claim: Claim) -> bool:
    """Whether an item ends the visit of a row."""
    return isinstance(item, Document | Outcome) and item.claim.url_id == claim.url_id


def _failed(claim: Claim, why: str) -> Outcome:
    return Outcome(claim=claim, code=Code.CONVERSION_FAILED, error=f"{why}: {claim.url}")
