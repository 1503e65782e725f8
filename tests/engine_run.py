"""A crawl of made answers by Scrapy's engine or by ours, in a process of its own: prints what each URL met, as JSON.

``python -m tests.engine_run scrapy|ours plain|own|hard``: ``own`` adds middlewares like those of users, ``hard`` a pipeline
that raises what is no Exception.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import Response
from scrapy.logformatter import LogFormatter

from searchcrawl.engine.visit_engine import VisitEngine, use_visit_engine
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Outcome
from tests.factories import claim

#: What each URL of the site does.
KINDS = (
    *("page", "fails", "ends", "redirect", "raises", "generator", "coroutine", "stream", "drop", "broken", "nothing"),
    *("late", "answered", "refused", "half", "cancelled", "panic", "elsewhere"),
)
seen: dict[str, list[str]] = defaultdict(list)


class Panic(BaseException):
    """What libraries in other languages raise."""


class Handler:
    """Answers at once, or fails as the URL says."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        pass

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Handler:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        await asyncio.sleep(0)
        if "fails" in request.url:
            raise OSError("no route")
        return Response(request.url, body=b"x" * 10)

    async def close(self) -> None:
        """Has nothing to close."""


class Scheduler(BaseScheduler):
    """Hands out each kind of URL twice, and what comes back."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._queue: deque[Request] = deque()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        return cls(crawler)

    def open(self, spider: Any) -> None:
        for number, kind in enumerate(KINDS * 2):
            claimed = claim(number, url=f"http://site.test/{kind}/{number}")
            self._queue.append(spider.ask(claimed.url, claimed))
        if sys.argv[1] == "ours":
            use_visit_engine(self._crawler)
            assert type(self._crawler.engine) is VisitEngine

    def has_pending_requests(self) -> bool:
        return bool(self._queue)

    def enqueue_request(self, request: Request) -> bool:
        self._queue.append(request)
        return True

    def next_request(self) -> Request | None:
        return self._queue.popleft() if self._queue else None


class Middleware:
    """Does at some URLs what ours do: ends a visit, answers, repeats, refuses."""

    __module__ = "searchcrawl.made"

    def process_request(self, request: Request) -> Any:
        if "answered" in request.url:
            return Response(request.url, request=request)
        if "ends" in request.url:
            raise VisitEnded(Outcome(claim=request.meta["claim"], code=404))
        if "cancelled" in request.url:
            raise asyncio.CancelledError
        if "panic" in request.url:
            raise Panic
        if "refused" in request.url:
            raise IgnoreRequest("no")
        return self._wait() if "late" in request.url else None

    async def _wait(self) -> None:
        await asyncio.sleep(0.01)

    def process_response(self, request: Request, response: Response) -> Any:
        if "elsewhere" in request.url and sys.argv[2] == "hard":
            return Request(request.url.replace("elsewhere", "other"), dont_filter=True, callback=_take_nothing)
        if "redirect" in request.url:
            return request.replace(url=request.url.replace("redirect", "target"), dont_filter=True)
        return response

    def process_exception(self, request: Request, exception: Exception) -> Any:
        seen[request.url].append(f"process_exception {type(exception).__name__}")


def _take_nothing(response: Response) -> list[object]:
    return []


class OwnMiddleware(Middleware):
    """Like one of a user: asynchronous."""

    __module__ = "mine"

    async def process_response(self, request: Request, response: Response) -> Response:
        seen[request.url].append("own middleware")
        return response


class OwnSpiderMiddleware:
    """Like one of a user: notes what comes out of the spider."""

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for item in result:
            seen[response.url].append("own spider middleware")
            yield item


class Pipeline:
    """Drops an item, or breaks at it."""

    def process_item(self, item: dict[str, str]) -> dict[str, str]:
        seen[item["url"]].append("pipeline")
        if "drop" in item["url"]:
            raise DropItem("no")
        if "broken" in item["url"]:
            raise ValueError("broken")
        if sys.argv[2] == "hard" and "page" in item["url"]:
            raise Panic
        return item


class MadeSpider(Spider):
    """Takes answers in each of the ways in which Scrapy lets a spider take them."""

    name = "made"

    async def start(self) -> AsyncIterator[Any]:
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def ask(self, url: str, claimed: Any) -> Request:
        kind = url.split("/")[3]
        call = {"generator": self._generate, "half": self._break_off, "coroutine": self._await, "stream": self._stream}
        callback = call.get(kind, self._list)
        return Request(url, callback=callback, errback=self._fail, dont_filter=True, meta={"claim": claimed})

    def _list(self, response: Response) -> list[dict[str, str]]:
        seen[response.url].append("callback")
        if "raises" in response.url:
            raise ValueError("spider")
        return [] if "nothing" in response.url else [{"url": response.url}]

    def _generate(self, response: Response) -> Iterator[dict[str, str]]:
        yield {"url": response.url}

    def _break_off(self, response: Response) -> Iterator[dict[str, str]]:
        yield {"url": response.url}
        raise ValueError("half")

    async def _await(self, response: Response) -> list[dict[str, str]]:
        return [{"url": response.url}]

    async def _stream(self, response: Response) -> AsyncIterator[Any]:
        yield {"url": response.url}

    def _fail(self, failure: Any) -> list[dict[str, str]]:
        url = failure.request.url
        seen[url].append(f"errback {type(failure.value).__name__}")
        return [{"url": url}]


class Log(LogFormatter):
    """Notes the lines instead."""

    def crawled(self, request: Request, response: Response, spider: Spider) -> Any:
        seen[request.url].append("logged")
        return None


NAMES = (
    *("request_reached_downloader", "response_downloaded", "request_left_downloader", "response_received"),
    *("item_scraped", "item_dropped", "item_error", "spider_error"),
)


def main() -> None:
    """Runs the crawl and prints what was seen."""
    own = sys.argv[2] == "own"
    settings = {
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
        "DOWNLOAD_HANDLERS": {"http": Handler, "https": None, "file": None, "ftp": None, "s3": None, "data": None},
        "SCHEDULER": Scheduler,
        "EXTENSIONS_BASE": {},
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {},
        "DOWNLOADER_MIDDLEWARES": {Middleware: 1} | ({OwnMiddleware: 2} if own else {}),
        "SPIDER_MIDDLEWARES": {OwnSpiderMiddleware: 1} if own else {},
        "ITEM_PIPELINES": {Pipeline: 1},
        "LOG_FORMATTER": Log,
        "LOG_ENABLED": False,
        "CONCURRENT_REQUESTS": 4,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
    }
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(MadeSpider)
    receivers = [_listen(crawler, name) for name in NAMES]
    reasons: list[str] = []

    def close(reason: str) -> None:
        reasons.append(reason)

    crawler.signals.connect(close, signals.spider_closed)
    process.crawl(crawler)
    process.start()
    print(json.dumps({"seen": seen, "reasons": reasons, "listeners": len(receivers)}))


def _listen(crawler: Crawler, name: str) -> Any:
    def note(request: Any = None, response: Any = None, item: Any = None) -> None:
        told = request or getattr(response, "request", None) or response
        seen[item["url"] if item else told.url].append(name)

    crawler.signals.connect(note, getattr(signals, name))
    return note


if __name__ == "__main__":
    main()
