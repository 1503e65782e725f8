"""Scrapy's schedulers: of a run, which hands out the claims of the window, and what those of its members share with it.

The queue itself is the URL table (docs: decisions/url-table-is-the-queue). If a scheduler has no request, Scrapy asks
it again only after five seconds. So the engine is woken when a claim may go earlier (docs: decisions/waking-the-engine).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.engine.visit_engine import use_visit_engine, wake_engine
from searchcrawl.failpoints import reach
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.http.visit_end import find_claim
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.states import EndReason


class VisitScheduler(BaseScheduler):
    """Hands visits to the engine, and ends those that fail outside of our own stages.

    Requests of users' own spider code are accepted too, first in, first out; they are stored nowhere.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._others: deque[Request] = deque()

    def listen(self) -> Self:
        """Hears of the failures."""
        connect = self._crawler.signals.connect
        connect(self.item_dropped, signal=signals.item_dropped)
        connect(self.item_error, signal=signals.item_error)
        connect(self.spider_error, signal=signals.spider_error)
        return self

    def enqueue_request(self, request: Request) -> bool:
        claim = find_claim(request)
        if claim is None:
            self._others.append(request)
        else:
            self._redirect(claim, request)
        return True

    @abstractmethod
    def _redirect(self, claim: Claim, request: Request) -> None:
        """Lets a visit wait for its turn at the host of ``request``."""

    @abstractmethod
    def _end(self, outcome: Outcome) -> None:
        """Settles a row that did not reach the writer; otherwise the run would never end (X-D3)."""

    def item_dropped(self, item: object, exception: Exception) -> None:
        """Ends a visit whose page a pipeline of a user dropped: the page is not indexed."""
        self._end_at(item, Code.NOT_INDEXED, rule=f"pipeline: {exception}")

    def item_error(self, item: object, failure: Failure) -> None:
        """Ends a visit at whose page a pipeline failed; the document in the store stays."""
        stats: Any = self._crawler.stats
        stats.inc_value(f"searchcrawl/read_errors/{type(failure.value).__name__}")
        self._end_at(item, Code.CONVERSION_FAILED, error=repr(failure.value)[:300])

    def spider_error(self, failure: Failure, response: Response | Failure) -> None:
        """Ends a visit at whose response, or at whose failure, the spider or a component of a user failed."""
        request: Request | None = getattr(response, "request", None)
        claim = None if request is None else find_claim(request)
        if claim is not None:
            self._end(Outcome(claim=claim, code=Code.CONVERSION_FAILED, error=repr(failure.value)[:300]))

    def _end_at(self, item: object, code: int, *, rule: str | None = None, error: str | None = None) -> None:
        if isinstance(item, Document):
            self._end(Outcome(claim=item.claim, code=code, rule=rule, error=error, redirects=item.redirects))
        elif isinstance(item, Outcome):
            self._end(item)


class Scheduler(VisitScheduler):
    """Hands the claims of the spider's run to the engine. Threads may call ``_wake_from_thread`` and ``_stop`` only.

    Redirected claims come back through ``enqueue_request`` and wait at their new host.
    """

    def __init__(self, crawler: Crawler, run: Run, frontier: Frontier) -> None:
        super().__init__(crawler)
        self._run = run
        self._frontier = frontier
        self._timer: asyncio.TimerHandle | None = None
        self._started = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        stages = stages_of(crawler)
        return cls(crawler, stages.get(Run), stages.get(Frontier)).listen()

    def open(self, spider: Spider) -> None:
        run = self._run
        self._spider = spider
        self._loop = asyncio.get_running_loop()
        use_visit_engine(self._crawler)
        run.shutdown.open(self._stop)
        # Nothing was handed out while the store was away.
        run.database.outage_retry.on_return.append(self._wake_from_thread)
        max_minutes = run.source.fetch.max_minutes
        if max_minutes:
            self._loop.call_later(max_minutes * 60, self._stop, EndReason.MAX_MINUTES)

    def has_pending_requests(self) -> bool:
        return not self._frontier.exhausted

    def _redirect(self, claim: Claim, request: Request) -> None:
        self._frontier.redirect(claim, request.meta["download_slot"], request)

    def next_request(self) -> Request | None:
        if not self._started:
            self._started = True
            if self._stopped_as is not None:
                self._close(self._stopped_as)
                return None
            self._frontier.start(self._wake_from_thread)
        if self._others:
            return self._others.popleft()
        request = self._next()
        if request is None:
            self._sleep()
        return request

    def close(self, reason: str) -> Deferred[None]:
        reach("shutdown.begin")
        if self._timer is not None:
            self._timer.cancel()
        self._frontier.stop_handing_out()
        return deferred_from_coro(self._close_frontier())

    async def _close_frontier(self) -> None:
        # In a thread: this may wait for the store.
        await asyncio.to_thread(self._frontier.close)
        reach("shutdown.drain")

    def _end(self, outcome: Outcome) -> None:
        if self._frontier.window.host_of(outcome.claim.url_id) is not None:
            self._frontier.end_visit(outcome)
            self._frontier.settle(outcome)

    def _next(self) -> Request | None:
        found = self._frontier.next_claim()
        if found is None:
            return None
        host, claim = found
        redirected: Request | None = self._frontier.take_redirected(claim)
        if redirected is not None:
            return redirected
        spider: Any = self._spider
        return build_request(claim, host, callback=spider.handle_response, errback=spider.handle_failure)

    def _sleep(self) -> None:
        """Wakes the engine when the next delay is over."""
        moment = self._frontier.window.next_moment()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment is not None:
            self._timer = self._loop.call_later(max(moment - clock.monotonic(), 0.0), self._wake)

    def _wake(self) -> None:
        wake_engine(self._crawler)

    def _wake_from_thread(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _stop(self, reason: str) -> None:
        # If the log fails at the very end, there is nothing left to stop.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close, reason)

    def _close(self, reason: str) -> None:
        engine = self._crawler.engine
        if engine is None or engine.spider is None or self._closing:
            return
        if not self._started:
            # What is still being opened would not be closed, and the end of the run not be written.
            self._stopped_as = self._stopped_as or reason
            return
        self._closing = True
        self._close_task = asyncio.ensure_future(engine.close_spider_async(reason=reason))

    _stopped_as: str | None = None
    _closing = False
    _close_task: asyncio.Future[None] | None = None


def build_request(claim: Claim, host: str, *, callback: Callable[..., Any], errback: Callable[..., Any]) -> Request:
    """The request that visits a claimed row; its download slot is the host, its claim is in ``meta``."""
    return Request(
        claim.url,
        callback=callback,
        errback=errback,
        # Scrapy's duplicate filter would drop it without notice (X-D3).
        dont_filter=True,
        meta={"claim": claim, "download_slot": host, "verbatim_url": True},
    )


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
