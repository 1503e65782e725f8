"""One task for each visit, in the place of the many that Scrapy's engine makes for a request.

Scrapy's engine, downloader and scraper hand a request to each other through tasks, Deferreds and queues, which took a
quarter of a millisecond of CPU a page, as much as reading a small one. The window has decided already how many requests a
host gets, and when, so these queues are always empty. What is the same: middlewares, pipelines, signals, limits on
responses in memory, and how a run is closed.

Our downloader middlewares are called one after the other, and only those that answer later are waited for.

All of Scrapy's engine that we use and that is not public is used here. With another release than those of
``KNOWN_RELEASES`` Scrapy's own engine is left as it is; ``wake_engine`` and ``is_closing`` use ``_slot`` of any, for
nothing public wakes an engine, or says that closing begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import scrapy
from pydispatch import dispatcher  # type: ignore[import-untyped]
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.engine import ExecutionEngine
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import ensure_awaitable, maybe_deferred_to_future
from scrapy.utils.log import logformatter_adapter
from scrapy.utils.spider import iterate_spider_output
from twisted.python.failure import Failure

from searchcrawl.http.large_response import is_large
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.user_code import is_ours

_Send = Callable[[Request], Awaitable[Response]]


_Methods = Mapping[str, Sequence[Callable[..., Any]]]


def _list_plain(manager: DownloaderMiddlewareManager) -> _Methods | None:
    """The methods of our middlewares by their names; None if one of them is a user's own."""
    names = ("process_request", "process_response", "process_exception")
    methods: dict[str, Any] = {name: tuple(manager.methods[name]) for name in names}
    ours = all(is_ours(getattr(method, "__module__", "")) for kind in methods.values() for method in kind)
    return methods if ours else None


_ANSWERS: Final = (Response, Request)


async def _pass_through(methods: _Methods, send: _Send, request: Request) -> Response | Request:
    """The answer of ``send`` or of a middleware in its place, or the request that one of them wants instead.

    Scrapy's manager waits after each method: that costs as much as many of them.
    """
    result: Any
    try:
        for process in methods["process_request"]:
            result = process(request=request)
            if result is not None and not isinstance(result, _ANSWERS):
                result = await result
            if result is not None:
                break
        else:
            result = await send(request)
    except Exception as error:
        # A middleware or the handler: they are asked what it means.
        for process in methods["process_exception"]:
            result = process(request=request, exception=error)
            if result is not None and not isinstance(result, _ANSWERS):
                result = await result
            if result is not None:
                break
        else:
            raise
    for process in methods["process_response"]:
        if isinstance(result, Request):
            break
        result = process(request=request, response=result)
        if not isinstance(result, _ANSWERS):
            result = await result
    answer: Response | Request = result
    return answer


logger = logging.getLogger(__name__)

#: The releases of Scrapy (major, minor) whose engine was read for this.
KNOWN_RELEASES: Final = frozenset({(2, 19)})


class VisitEngine(ExecutionEngine):
    """Scrapy's engine, whose requests from the scheduler each run in one task; made by ``use_visit_engine``."""

    _plain: _Methods | None
    _reads_plainly: bool
    _visits: set[asyncio.Task[None]]

    def take_over(self) -> None:
        """Looks at the components, once they are made."""
        self.signals = self.scraper.signals = QuietSignals(self.crawler)
        self._plain = _list_plain(self.downloader.middleware)
        # A spider middleware is a user's own, or there because of one.
        methods = self.scraper.spidermw.methods
        names = ("process_spider_input", "process_spider_output", "process_spider_exception")
        self._reads_plainly = not any(any(methods[name]) for name in names)
        self._visits = set()

    def _start_scheduled_request(self) -> bool:
        slot: Any = self._slot
        request = slot.scheduler.next_request()
        if request is None:
            self.signals.send_catch_log(signals.scheduler_empty)
            return False
        slot.add_request(request)
        # Before the task begins: whether one more request may be sent is asked next.
        self.downloader.active.add(request)
        # The loop alone would not keep it.
        task = asyncio.get_running_loop().create_task(self._visit(request))
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)
        return True

    async def download_async(self, request: Request) -> Response:
        """As Scrapy's; also once all requests of this process have ended, for its members may still ask for a robots.txt."""
        slot: Any = self._slot
        if slot is None or slot.closing is None or not slot.closing.called:
            return await super().download_async(request)
        result: Any = request
        while isinstance(result, Request):
            result = await maybe_deferred_to_future(self.downloader.fetch(result))
        self._log_crawled(result.request or request, result)
        return cast(Response, result)

    async def _visit(self, request: Request) -> None:
        slot: Any = self._slot
        try:
            result = await self._fetch(request)
            if isinstance(result, Request):
                self.crawl(result)
                if "claim" in request.meta and "claim" not in result.meta:
                    # Its answer would be nobody's, and the run would wait for this page for ever.
                    raise ValueError(
                        f"a middleware requests {result.url} in its place: request.replace() keeps the row"
                    )
            else:
                await self._read(result, request)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  # whatever it is, and whoever raised it: the visit has to end
            failure: Any = Failure()  # type: ignore[no-untyped-call]
            failure.request = request
            self.scraper.handle_spider_error(failure, request, failure)
        finally:
            slot.remove_request(request)
            slot.nextcall.schedule()

    async def _fetch(self, request: Request) -> Response | Request | Failure:
        """The answer, a request in its place, or why there is none."""
        slot: Any = self._slot
        try:
            if self._plain is None:
                result = await self.downloader.middleware.download_async(self._send, request)
            else:
                result = await _pass_through(self._plain, self._send, request)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  # the spider's errback takes it
            return Failure()  # type: ignore[no-untyped-call]  # Twisted's
        finally:
            self.downloader.active.remove(request)
            slot.nextcall.schedule()
        if isinstance(result, Response):
            if result.request is None:
                result.request = request
            self._log_crawled(result.request, result)
            self._tell("response_received", response=result, request=result.request)
        return result

    async def _send(self, request: Request) -> Response:
        if "download_slot" not in request.meta:
            request.meta["download_slot"] = self.downloader.get_slot_key(request)
        self._tell("request_reached_downloader", request=request)
        try:
            response = await self.downloader.handlers.download_request_async(request)
            self._tell("response_downloaded", response=response, request=request)
            return response
        finally:
            self._tell("request_left_downloader", request=request)

    async def _read(self, result: Response | Failure, request: Request) -> None:
        """Gives the result to the spider, and its items to the pipelines."""
        scraper = self.scraper
        slot: Any = scraper.slot
        call = self._choose_callback(result, request)
        if call is None:
            await maybe_deferred_to_future(scraper.enqueue_scrape(result, request))
            return
        # It counts the bytes that are in memory, for which it would read a body that is not.
        counted = None if isinstance(result, Response) and is_large(result) else result
        slot.add_response_request(counted, request)
        slot.next_response_request_deferred()
        try:
            await self._read_plainly(call, result, request)
        finally:
            slot.finish_response(counted, request)
            scraper._check_if_closing()

    def _choose_callback(self, result: Response | Failure, request: Request) -> Callable[[Any], Any] | None:
        """What the spider of a source takes the result with; None where Scrapy's scraper is to find it."""
        if not self._reads_plainly or "claim" not in request.meta:
            return None
        if isinstance(result, Response):
            # A middleware may have given the answer of another request.
            return (result.request or request).callback
        result.request = request  # type: ignore[attr-defined]  # as Scrapy does
        return request.errback if isinstance(result.value, VisitEnded) else None

    async def _read_plainly(self, call: Callable[[Any], Any], result: Response | Failure, request: Request) -> None:
        try:
            output = call(result)
            if not isinstance(output, list):
                output = await ensure_awaitable(iterate_spider_output(output))
        except Exception:  # noqa: BLE001  # it is a user's
            self.scraper.handle_spider_error(Failure(), request, result)  # type: ignore[no-untyped-call]
            return
        if isinstance(output, list):
            for item in output:
                await self.scraper.start_itemproc_async(item, response=result)
        else:
            await self.scraper.handle_spider_output_async(output, request, result)

    def _log_crawled(self, request: Request, response: Response) -> None:
        spider: Any = self.spider
        entry = self.logformatter.crawled(request, response, spider)
        if entry is not None:
            logger.log(*logformatter_adapter(entry), extra={"spider": spider})

    def _tell(self, name: str, **values: Any) -> None:
        self.signals.send_catch_log(signal=getattr(signals, name), spider=self.spider, **values)


class QuietSignals(SignalManager):
    """Sends a signal only where somebody is connected to it; Scrapy looks for receivers in four lists each time."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._crawler = crawler

    def send_catch_log(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        return super().send_catch_log(signal, **values) if self._is_heard(signal) else []

    async def send_catch_log_async(self, signal: Any, **values: Any) -> list[tuple[Any, Any]]:
        return await super().send_catch_log_async(signal, **values) if self._is_heard(signal) else []

    def _is_heard(self, signal: Any) -> bool:
        connections = dispatcher.connections
        for sender in (id(self._crawler), _ANYBODY):
            of_sender = connections.get(sender)
            if of_sender and (of_sender.get(signal) or of_sender.get(dispatcher.Any)):
                return True
        return False


_ANYBODY: Final = id(dispatcher.Any)


def use_visit_engine(crawler: Crawler) -> None:
    """Lets an engine that has not begun to send requests visit pages in one task each, where its parts are as expected."""
    engine: Any = crawler.engine
    expected = type(engine) is ExecutionEngine and type(engine.downloader) is Downloader
    if scrapy.version_info[:2] in KNOWN_RELEASES and expected and type(engine.scraper) is Scraper:
        engine.__class__ = VisitEngine
        engine.take_over()


def wake_engine(crawler: Crawler) -> None:
    """Has the engine ask its scheduler for requests; one that had none is asked again only seconds later."""
    engine: Any = crawler.engine
    if engine is not None and engine._slot is not None:
        engine._slot.nextcall.schedule()


async def download(crawler: Crawler, request: Request) -> Response:
    """The answer to a request that is none of the scheduler; the engine may be made later than what calls this."""
    return await crawler.engine.download_async(request)


def is_closing(crawler: Crawler) -> bool:
    """Whether the spider of a crawler whose engine was made is being closed, or closed."""
    slot = crawler.engine._slot
    return slot is None or slot.closing is not None
