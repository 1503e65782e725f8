"""The spider of ``plan`` and ``apply``: has what the cache holds processed again, and requests nothing."""

from __future__ import annotations

from collections.abc import Iterator

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response

from searchcrawl.exceptions import ConfigurationError, SearchcrawlError
from searchcrawl.http.replay_middleware import ReplayMiddleware, find_further
from searchcrawl.items import Document, Outcome, VisitEnds
from searchcrawl.run import Run
from searchcrawl.spiders.base_spider import SourceSpider
from searchcrawl.spiders.running import run_spider
from searchcrawl.spiders.spider_loader import build_spider_class


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
        raise ConfigurationError(run.source.file, "settings", message)
    return crawler.spider.stages.get(ReplayMiddleware).pages
