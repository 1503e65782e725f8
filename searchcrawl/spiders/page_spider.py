"""Spiders of commands, beside that of a source: for ``test`` and ``explain --live``, and for ``plan`` and ``apply``.

The first one visits one page as a crawl would, and stores nothing. The other one has what the cache holds processed again,
and requests nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, SearchcrawlError
from searchcrawl.frontier.scheduler import build_request
from searchcrawl.http.replay_middleware import ReplayMiddleware, find_further
from searchcrawl.items import Claim, Document, Outcome, VisitEnds
from searchcrawl.operations.dry_run import DryRun
from searchcrawl.run import Run
from searchcrawl.spiders.base_spider import SourceSpider
from searchcrawl.spiders.running import run_spider
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


def visit_page(process: AsyncCrawlerProcess, run: DryRun, url: str, *, depth: int = 0) -> Document | Outcome:
    """Visits ``url`` (an identity) and returns its document or outcome; runs the reactor, so only once in a process.

    Raises ConfigurationError where there is neither: a component of the user's own did not start, or kept the item; and
    what ended the visit where nothing can be said of the page.
    """
    seen: list[Document | Outcome] = []
    claim = Claim(url_id=0, url=url, host_id=0, depth=depth)
    process.crawl(build_spider_class(run.project, run.source, PageSpider), run=run, claim=claim, seen=seen)
    # The command has handlers of its own: those of Scrapy let a request wait for its turn.
    process.start(install_signal_handlers=False)
    if run.shutdown.failure is not None:
        raise run.shutdown.failure
    if not seen:
        message = f"the visit came to no end: searchcrawl crawl {run.source.name} says why in its log"
        raise ConfigurationError(run.source.path, "settings", message)
    return seen[-1]


class ReplaySpider(SourceSpider):
    """Beside the spider of a source's type: its pages come from the cache."""

    #: Read by the add-on: what would request is left out.
    replay = True

    def handle_response(self, response: Response) -> Iterator[Document | VisitEnds]:
        """Yields the document of a response, and those of the answers that came with it."""
        yield from super().handle_response(response)
        further = find_further(response)
        if further:
            ends = [end if isinstance(end, Outcome) else self.build_document(end) for end in further]
            yield VisitEnds(ends)


def replay_pages(process: AsyncCrawlerProcess, run: Run) -> int:
    """Processes again what the cache holds of a source, as far as its edit asks for it; returns how many pages.

    Runs the reactor, so only once in a process. Raises ConfigurationError where a component of the user's own did not
    start.
    """
    crawler, error = run_spider(process, build_spider_class(run.project, run.source, ReplaySpider), run=run)
    if isinstance(error, SearchcrawlError):
        raise error
    if process.bootstrap_failed or not isinstance(crawler.spider, ReplaySpider):
        message = f"the pages cannot be processed: the log of {run.source.name} says why"
        raise ConfigurationError(run.source.path, "settings", message)
    return crawler.spider.stages.get(ReplayMiddleware).pages
