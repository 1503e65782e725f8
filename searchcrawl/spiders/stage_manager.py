"""Calls the item pipelines of a source, ours and those of users."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.logformatter import LogFormatter
from scrapy.pipelines import ItemPipelineManager
from twisted.python.failure import Failure

from searchcrawl.documents.document_pipeline import FieldsPipeline
from searchcrawl.exceptions import ConfigurationError, SearchcrawlError
from searchcrawl.http.visit_end import PAGES, join_lines
from searchcrawl.items import Document, Outcome, VisitEnds
from searchcrawl.run import Run
from searchcrawl.user_code import is_ours, ordinary_errors, show_error, wait_for_user_code

logger = logging.getLogger(__name__)

_KEY: Final = "settings.ITEM_PIPELINES"


class QuietLogFormatter(LogFormatter):
    """Writes no line for each page: the URL table has the result of each URL, and lines cost time; and never a body."""

    def crawled(self, *_: Any, **__: Any) -> Any:
        return None

    scraped = dropped = crawled

    def item_error(self, item: Any, exception: BaseException, response: Any, spider: Spider) -> Any:
        url = item.claim.url if isinstance(item, Document | Outcome) else type(item).__name__
        return {"level": logging.ERROR, "msg": "%(url)s cannot be processed", "args": {"url": url}}


class StageManager(ItemPipelineManager):
    """Calls our item pipelines one after the other, and waits only for those that answer later.

    Scrapy's own manager waits after each, which costs as much as some of the stages. The pipelines of users, in the order
    of their numbers, are called where a page was read and its fields are not complete yet, with what their authors know of
    a document (``plugins.Document``).
    """

    def __init__(self, *middlewares: Any, **arguments: Any) -> None:
        self._theirs: list[tuple[str, Any]] = []
        super().__init__(*middlewares, **arguments)
        ours = [pipeline for pipeline in middlewares if _is_ours(pipeline)]
        readers = [pipeline for pipeline in ours if hasattr(pipeline, "process_document")]
        #: those that read documents: an end of a visit without one passes none of them; and those that take all ends of visits
        self._readers: list[Callable[[Document], Any]] = [pipeline.process_document for pipeline in readers]
        self._takers = [pipeline.process_item for pipeline in ours if hasattr(pipeline, "process_item")]
        run = getattr(getattr(self.crawler, "spider", None), "run", None)
        if run is not None and (self._theirs or run.source.has_document_plugins):
            self._add_user_stage(
                run, [number for number, each in enumerate(readers) if isinstance(each, FieldsPipeline)]
            )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        try:
            with ordinary_errors():
                return super().from_crawler(crawler)
        except SearchcrawlError:
            raise
        except Exception as error:
            theirs = [path for path in crawler.settings.getdict("ITEM_PIPELINES") if not is_ours(_show(path))]
            if not theirs:
                raise
            _refuse(crawler, f"{' or '.join(map(_show, theirs))} cannot begin: {join_lines(show_error(error))}", error)

    async def open_spider_async(self) -> None:
        """Opens the pipelines of users first: where one fails, nothing of ours has begun."""
        for name, pipeline in self._theirs:
            if hasattr(pipeline, "open_spider"):
                try:
                    await self._call(pipeline.open_spider)
                except Exception as error:  # noqa: BLE001 - a pipeline of a user may raise anything
                    _refuse(self.crawler, f"{name} cannot begin: {join_lines(show_error(error))}", error)
        await super().open_spider_async()

    async def close_spider_async(self) -> None:
        """Closes the pipelines of users first; ours are closed whatever these raise."""
        for name, pipeline in reversed(self._theirs):
            if hasattr(pipeline, "close_spider"):
                try:
                    await self._call(pipeline.close_spider)
                except Exception as error:  # noqa: BLE001 - the run must end as it would without it
                    logger.warning("pipeline %s failed to close: %s", name, join_lines(show_error(error)))
        await super().close_spider_async()

    async def _call(self, method: Callable[..., Any]) -> None:
        """Calls a method of a user, which has the time that it has for a document."""

        async def call() -> None:
            await self.get_awaitable(method)

        crawler: Any = self.crawler
        await wait_for_user_code(call(), crawler.settings.getfloat("SEARCHCRAWL_STALL_SECONDS") or None)

    async def process_item_async(self, item: Any) -> Any:
        if isinstance(item, VisitEnds):
            for end in item.ends:
                await self._process_end(end)
            return item
        return await self._process(item)

    def _add_middleware(self, mw: Any) -> None:
        if _is_ours(mw):
            super()._add_middleware(mw)
            return
        name = _show(type(mw))
        self._theirs.append((name, mw))
        for method in ("open_spider", "process_item", "close_spider"):
            if hasattr(mw, method):
                self._check_mw_method_spider_arg(getattr(mw, method))

    def _add_user_stage(self, run: Run, places: list[int]) -> None:
        """Adds what users wrote; where members of the run read the pages, there is no place for it here."""
        # Loaded where it is used: most sources have none of it.
        from searchcrawl.spiders.user_spider import note_user_starts  # noqa: PLC0415

        spider = self.crawler.spider  # type: ignore[union-attr]  # the manager is that of a source
        if not getattr(spider, "dry_run", False) and not hasattr(spider, "member"):
            note_user_starts(self.crawler, run)
        for place in places:
            self._readers.insert(place, self._build_user_stage(run))

    def _build_user_stage(self, run: Run) -> Callable[[Document], Any]:
        from searchcrawl.spiders.user_spider import build_user_stage  # noqa: PLC0415  # see above

        pipelines = [
            (name, partial(pipeline.process_item, spider=self._spider) if takes_spider else pipeline.process_item)
            for name, pipeline in self._theirs
            if hasattr(pipeline, "process_item")
            for takes_spider in [pipeline.process_item in self._mw_methods_requiring_spider]
        ]
        return build_user_stage(self.crawler, run, pipelines).process_document

    async def _process(self, item: Any) -> Any:
        for process_document in self._readers:
            if not isinstance(item, Document):
                break
            item = process_document(item)
            if not isinstance(item, Document | Outcome):
                item = await item
        for process_item in self._takers:
            item = process_item(item)
            if not isinstance(item, Document | Outcome):
                item = await item
        if isinstance(item, Document) and item.code in PAGES and item.refusal is None:
            crawler: Any = self.crawler
            crawler.stats.inc_value("item_scraped_count")
        return item

    async def _process_end(self, end: Document | Outcome) -> None:
        """As Scrapy does with an item of its own."""
        try:
            await self._process(end)
        except Exception as error:
            logger.exception("%s cannot be processed", end.claim.url)
            crawler: Any = self.crawler
            failure = Failure(error)  # type: ignore[no-untyped-call]
            await crawler.signals.send_catch_log_async(
                signal=signals.item_error, item=end, response=None, spider=crawler.spider, failure=failure
            )


def _is_ours(component: object) -> bool:
    return is_ours(type(component).__module__)


def _show(component: Any) -> str:
    return component if isinstance(component, str) else f"{component.__module__}.{component.__qualname__}"


def _refuse(crawler: Crawler | None, message: str, error: Exception) -> NoReturn:
    run: Run = crawler.spider.run  # type: ignore[union-attr]  # the manager is that of a source
    file, key = run.source.locate(_KEY)
    raise ConfigurationError(file, key, message) from error
