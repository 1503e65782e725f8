"""Asks for the sitemaps of a run beside its pages, through the same middlewares, guard and turns.

An extension and no spider: a sitemap is no row of the URL table and no page of the run.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from searchcrawl import urls
from searchcrawl.codes import Code, is_retried
from searchcrawl.exceptions import HostBlocked, InvalidUrl, SearchcrawlError
from searchcrawl.html.content_type import parse_content_type
from searchcrawl.http.content_coding import codings_of
from searchcrawl.http.outcome_middleware import PAGES, described, status_line
from searchcrawl.http.redirect_middleware import slot_of
from searchcrawl.http.visit_end import failing_of, one_line
from searchcrawl.items import SitemapPart
from searchcrawl.politeness.backoff import parse_retry_after
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.robots.robots_middleware import RobotsMiddleware, RobotsUnavailable
from searchcrawl.run import Run
from searchcrawl.sitemaps.formats import MAX_BYTES
from searchcrawl.sitemaps.parts import Answer, ReadingStopped
from searchcrawl.sitemaps.reading import Means, SitemapFailed, SitemapReading
from searchcrawl.stages import stages_of
from searchcrawl.store.sitemaps import sitemap_table

logger = logging.getLogger(__name__)

_MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_VALIDATOR_CHARACTERS: Final = 1000


class SitemapExtension:
    """Begins to read with the engine, and ends with the spider."""

    def __init__(
        self,
        crawler: Crawler,
        run: Run,
        rate_limiter: RateLimiter,
        robots: RobotsMiddleware,
        *,
        submit: Callable[[SitemapPart], bool],
        hold: Callable[[], Callable[[], None]],
        revisits: threading.Event,
    ) -> None:
        self._crawler = crawler
        self._run = run
        self._rate_limiter = rate_limiter
        self._robots = robots
        self.reading = SitemapReading(
            run,
            Means(
                fetch=self._fetch,
                robots_of=self._robots_of if run.source.robots.obey else None,
                later=lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
                submit=submit,
                hold=hold,
                revisits=revisits,
            ),
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SitemapExtension:
        extension = stages_of(crawler).find(cls)
        if extension is None:
            raise NotConfigured("start.sitemaps is off")
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        # Before the first claim: an empty table must not end the crawl.
        self.reading.hold()

    async def engine_started(self) -> None:
        run = self._run
        roots: list[str] = []
        try:
            if run.source.lifecycle.trust_sitemap:
                roots = await asyncio.to_thread(
                    run.read, lambda transaction: sitemap_table.good_roots(transaction, run.source_id)
                )
        except SearchcrawlError as error:
            # Nobody else would end the crawl, which is held.
            run.shutdown.fail(error)
            return
        named = [start.url for start in run.starts if not start.code]
        self.reading.start([url for url in named if run.boundary.decide(url, 0).allowed], roots)

    async def spider_closed(self, spider: Spider) -> None:
        await self.reading.stop()

    async def _robots_of(self, origin: str) -> RobotsFile:
        self._check_open()
        try:
            return await self._robots.file_of(origin)
        except RobotsUnavailable as error:
            pause = error.pause_seconds
            raise SitemapFailed(
                str(error), code=error.code, transient=pause is not None, retry_after_seconds=pause
            ) from error

    async def _fetch(self, url: str, validators: tuple[str | None, str | None]) -> Answer | None:
        """The answer after at most five redirects, None for a 304 that was asked for."""
        asked_for = url
        for hop in range(_MAX_REDIRECTS + 1):
            response = await self._ask(url, validators if hop == 0 else (None, None), asked_for=asked_for)
            target = _target_of(response, url)
            if target is None:
                return _answer(response, conditional=hop == 0 and any(validators), redirected=hop > 0)
            decision = self._run.boundary.decide_sitemap(target)
            if not decision.allowed:
                raise SitemapFailed(
                    f"redirects to {target[:200]}, outside the boundary ({decision.key}: {decision.rule})",
                    code=Code.OUTSIDE_BOUNDARY,
                )
            url = target
        raise SitemapFailed(f"more than {_MAX_REDIRECTS} redirects", code=Code.REDIRECT_LOOP)

    async def _ask(self, url: str, validators: tuple[str | None, str | None], *, asked_for: str) -> Response:
        meta: dict[str, Any] = {
            "sitemap": True,
            "asked_for": asked_for,
            "own_headers": url == asked_for,
            "download_slot": slot_of(url),
            "verbatim_url": True,
            # One more shows that there was more.
            "body_prefix_bytes": MAX_BYTES + 1,
        }
        headers = {
            name: value
            for name, value in zip(("If-None-Match", "If-Modified-Since"), validators, strict=True)
            if value is not None and value.isascii() and value.isprintable()
        }
        request = Request(url, headers=headers, meta=meta, dont_filter=True)
        slot = slot_of(url)
        try:
            await self._rate_limiter.acquire_request(slot)
        except HostBlocked as error:
            raise SitemapFailed(str(error), code=error.code) from error
        try:
            self._check_open()
            return await self._crawler.engine.download_async(request)
        except Exception as error:
            failing = failing_of(error)
            if failing is None:
                raise
            text = one_line(described(failing.code, error))
            raise SitemapFailed(text, code=failing.code, transient=failing.transient) from error
        finally:
            self._rate_limiter.release_request(slot)

    def _check_open(self) -> None:
        """Raises ReadingStopped once the spider is being closed: one more request would keep it open.

        There is no public sign of that; test_r14_sitemaps sees that this one works.
        """
        engine = self._crawler.engine
        slot = engine._slot if engine is not None else None
        if slot is None or slot.closing is not None:
            raise ReadingStopped


def _target_of(response: Response, url: str) -> str | None:
    """Where a redirect leads; None for an answer that is none."""
    if response.status not in _REDIRECTS:
        return None
    location = response.headers.get(b"Location")
    if not location:
        raise SitemapFailed(f"{status_line(response.status)} without a Location", code=Code.NO_LOCATION)
    try:
        return urls.resolve(location.decode("utf-8", "replace"), url)
    except InvalidUrl as error:
        raise SitemapFailed(f"redirects to what is no URL: {error}", code=Code.NO_LOCATION) from error


def _answer(response: Response, *, conditional: bool, redirected: bool) -> Answer | None:
    status = response.status
    if status == 304 and conditional:
        return None
    if status not in PAGES:
        raise SitemapFailed(
            status_line(status),
            # Scrapy's own handler lets any number pass.
            code=status if 100 <= status <= 999 else Code.HEADER_ERROR,
            # A 304 that nobody asked for.
            transient=is_retried(status) or status == 304,
            retry_after_seconds=parse_retry_after(response.headers.get(b"Retry-After")),
        )
    headers = response.headers
    content_type = parse_content_type((headers.get(b"Content-Type") or b"").decode("latin-1"))
    return Answer(
        body=response.body,
        codings=tuple(codings_of(headers.getlist(b"Content-Encoding"))),
        charset=content_type.charset,
        # Validators belong to the URL that answered.
        etag=None if redirected else _text(headers.get(b"ETag")),
        last_modified=None if redirected else _text(headers.get(b"Last-Modified")),
    )


def _text(value: bytes | None) -> str | None:
    return value.decode("latin-1")[:_MAX_VALIDATOR_CHARACTERS] if value else None
