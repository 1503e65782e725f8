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
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.spiders.web_spider import WebSpider


class PageSpider(WebSpider):
    """``seen`` gets what became of the page: one item, as it left the pipelines."""

    #: Read by the add-on: what would store or deliver is left out.
    dry_run = True

    claim: Claim
    seen: list[Document | Outcome]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider._scraped, signal=signals.item_scraped)
        crawler.signals.connect(spider._dropped, signal=signals.item_dropped)
        crawler.signals.connect(spider._failed, signal=signals.item_error)
        crawler.signals.connect(spider._broken, signal=signals.spider_error)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """The one request."""
        host = urls.host_and_port(self.claim.url)
        if not self.source.robots.obey:
            # Otherwise the request for robots.txt waits.
            await self.stages.get(RateLimiter).wait_until_allowed(host)
        yield build_request(self.claim, host, callback=self.visited, errback=self.failed)

    def _scraped(self, item: object, response: Response | None) -> None:
        if isinstance(item, Document | Outcome):
            self.seen.append(item)

    def _dropped(self, item: object, exception: Exception) -> None:
        # As the scheduler of a crawl settles it.
        self._end(Code.NOT_INDEXED, rule=f"pipeline: {exception}")

    def _failed(self, item: object, failure: Failure) -> None:
        self._broken(failure)

    def _broken(self, failure: Failure) -> None:
        self._end(Code.CONVERSION_FAILED, error=repr(failure.value)[:300])

    def _end(self, code: Code, *, rule: str | None = None, error: str | None = None) -> None:
        self.seen.append(Outcome(claim=self.claim, code=code, rule=rule, error=error))


def look_at(process: AsyncCrawlerProcess, run: DryRun, url: str, *, depth: int = 0) -> Document | Outcome:
    """What a visit to ``url``, an identity, brings now; runs the reactor, so once a process.

    Raises ConfigurationError where nothing came of it: a component of the source's own could not begin, or kept it.
    """
    seen: list[Document | Outcome] = []
    claim = Claim(url_id=0, url=url, host_id=0, depth=depth)
    values = {"name": run.source.name, "source": run.source, "project": run.project, "__module__": __name__}
    spider = type("PageSpiderOfSource", (PageSpider,), values)
    process.crawl(spider, run=run, claim=claim, seen=seen)
    process.start()
    if not seen:
        message = f"the visit came to no end: searchcrawl crawl {run.source.name} says why in its log"
        raise ConfigurationError(run.source.file, "settings", message)
    return seen[-1]
