"""The spider of ``test`` and ``explain --live``: visits one page as a crawl would, and stores nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Self

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.frontier.scheduler import build_request
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.operations.dry_run import DryRun
from searchcrawl.spiders.base_spider import SourceSpider
from searchcrawl.spiders.spider_loader import build_spider_class


class PageSpider(SourceSpider):
    """Beside the spider of a source's type: adds to ``seen`` what became of the page: one item, as it comes from the item pipelines."""

    #: Read by the add-on: what would store or deliver is left out.
    dry_run = True

    claim: Claim
    seen: list[Document | Outcome]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider._keep_item, signal=signals.item_scraped)
        crawler.signals.connect(spider._end_dropped, signal=signals.item_dropped)
        crawler.signals.connect(spider._end_error, signal=signals.item_error)
        crawler.signals.connect(spider._end_error, signal=signals.spider_error)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Yields the one request."""
        yield build_request(
            self.claim, urls.host_and_port(self.claim.url), callback=self.handle_response, errback=self.handle_failure
        )

    def _keep_item(self, item: object, response: Response | None) -> None:
        if isinstance(item, Document | Outcome):
            self.seen.append(item)

    def _end_dropped(self, item: object, exception: Exception) -> None:
        # In a crawl, the scheduler settles the row in the same way.
        self._end(Code.NOT_INDEXED, rule=f"pipeline: {exception}")

    def _end_error(self, failure: Failure) -> None:
        self._end(Code.CONVERSION_FAILED, error=repr(failure.value)[:300])

    def _end(self, code: Code, *, rule: str | None = None, error: str | None = None) -> None:
        self.seen.append(Outcome(claim=self.claim, code=code, rule=rule, error=error))


def build_page_spider(run: DryRun) -> type[PageSpider]:
    """The class for a source, beside the spider of its type; raises ConfigurationError."""
    return build_spider_class(run.project, run.source, PageSpider)


def visit_page(process: AsyncCrawlerProcess, run: DryRun, url: str, *, depth: int = 0) -> Document | Outcome:
    """Visits ``url`` (an identity) and returns its document or outcome; runs the reactor, so only once in a process.

    Raises ConfigurationError where there is neither: a component of the user's own did not start, or kept the item; and
    what ended the visit where nothing can be said of the page.
    """
    seen: list[Document | Outcome] = []
    claim = Claim(url_id=0, url=url, host_id=0, depth=depth)
    process.crawl(build_page_spider(run), run=run, claim=claim, seen=seen)
    # The command has handlers of its own: those of Scrapy let a request wait for its turn.
    process.start(install_signal_handlers=False)
    if run.shutdown.failure is not None:
        raise run.shutdown.failure
    if not seen:
        message = f"the visit came to no end: searchcrawl crawl {run.source.name} says why in its log"
        raise ConfigurationError(run.source.file, "settings", message)
    return seen[-1]
