"""The item pipeline that reads bodies (``registry.py`` lists the formats).

What may take long, or harm a process, runs in worker processes with a limit of time and of memory (X-R15; docs:
decisions/worker-processes).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

from searchcrawl.codes import Code
from searchcrawl.convert.conversion_pool import ConversionPool
from searchcrawl.convert.converter import Converter, RunsIn
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.registry import Registry
from searchcrawl.convert.user_converter import list_user_converters, refuse_wrong_converters
from searchcrawl.counters import NOT_CONVERTED, SHELLS
from searchcrawl.exceptions import DocumentError, LogError, NoConverter, WorkerLost, WorkersUnavailable
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.links import MAX_LINKS
from searchcrawl.html.raw_page import needs_scripts
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import (
    ARCHIVE_ETAG,
    CANONICAL_ETAG,
    Document,
    Outcome,
    Page,
    Unread,
    copy_with,
)
from searchcrawl.rules import lifecycle
from searchcrawl.rules.lifecycle import has_stopped
from searchcrawl.run import Run, Shutdown
from searchcrawl.sources.config import Content
from searchcrawl.stages import stages_of
from searchcrawl.traces import ParseMark

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class ConvertPipeline:
    """Gives each document its page; a body that cannot be read ends the visit with its code.

    A document with the same bytes as at the last visit passes unread. A document that the index filter refuses gets an
    empty page without being read, if its format has no links to follow. ``context`` has what is the same for all bodies
    of the source. ``count_shell`` is called for each page that is next to empty without its scripts; None where a
    browser renders such pages, and ``count_known`` for each page whose bytes were read before. What this process parses itself has its ``mark`` meanwhile.
    """

    def __init__(
        self,
        stats: StatsCollector,
        context: ConversionContext,
        *,
        shutdown: Shutdown | None = None,
        registry: Registry | None = None,
        count_shell: Callable[[], None] | None = None,
        count_known: Callable[[], None] = lambda: None,
        mark: ParseMark | None = None,
    ) -> None:
        self._stats = stats
        self._registry = registry or Registry()
        self._context = context
        self._shutdown = shutdown or Shutdown()
        self._pool = ConversionPool()
        self._count_shell = count_shell
        self._count_known = count_known
        self._mark = mark
        self._opening = threading.Lock()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ConvertPipeline:
        run = stages_of(crawler).get(Run)
        refuse_wrong_converters(run.project)
        context = ConversionContext(
            default_charset=run.source.fetch.default_charset,
            user_agent=run.source.robots.user_agent or run.project.user_agent,
            attribute_origins=run.attributes.attribute_origins if run.attributes is not None else frozenset(),
            text_rules=build_text_rules(run.source.content),
            routes=run.source.scope.hash_routes,
        )
        return cls(
            crawler.stats,
            context,
            shutdown=run.shutdown,
            registry=Registry(list_user_converters(run.project)),
            count_shell=None if run.source.render.in_use else lambda: run.count(**{SHELLS: 1}),
            count_known=lambda: run.count(**{NOT_CONVERTED: 1}),
            mark=stages_of(crawler).find(ParseMark),
        )

    def process_document(self, item: Document) -> Document | Outcome | Awaitable[Document | Outcome]:
        """The item with its page: at once if the converter runs in the reactor, else an awaitable of it."""
        if item.body_digest == item.claim.body_digest:
            return item
        try:
            if item.refusal is not None and not self._may_have_links(item):
                return copy_with(item, page=Page())
            converter = self._registry.choose(item.mimetype, item.body, item.headers)
            # Once a process has ended while it parsed the page, a worker does: then nobody else is blamed, or harmed.
            is_suspect = has_stopped(item.claim.failures)
            page = None if is_suspect else self._convert_again(item, converter)
            if page is not None:
                return copy_with(item, page=page, converter=converter.name)
            place = RunsIn.PROCESS if is_suspect else converter.choose_place(item.body)
            if place is not RunsIn.REACTOR or not isinstance(item.body, bytes):
                return self._convert_elsewhere(item, converter, place)
            page = self._parse(item, converter.convert, item.body, self._build_context(item))
            return self._add_page(item, converter, page)
        except Exception as error:  # noqa: BLE001 - one document that cannot be read never ends a crawl
            return self._end_visit(item, error)

    def _may_have_links(self, document: Document) -> bool:
        """Whether a document that is not to be indexed has to be read nevertheless; not where nothing can read it."""
        try:
            return self._registry.choose(document.mimetype, document.body, document.headers).has_links
        except DocumentError:
            return False

    def _convert_again(self, document: Document, converter: Converter) -> Page | None:
        """The page of an answer of the cache, if its text need not be read once more."""
        cached = document.same_answer
        if cached is None or (cached.page is not None and cached.converter != converter.name):
            return None
        page = cached.page if converter.is_kept else None
        # Of a crawl, where requests wait: what is large is read where it stops nothing.
        is_large = cached.page is not None and converter.choose_place(document.body) is not RunsIn.REACTOR
        if converter.convert_again is not None and not is_large and isinstance(document.body, bytes):
            context = self._build_context(document)
            page = self._parse(document, converter.convert_again, document.body, context, cached.text)
        if page is None:
            return None
        if cached.page is not None:
            self._count_known()
        return copy_with(
            page,
            whole_digest=cached.whole_digest,
            headings=cached.headings,
            naming=cached.naming,
            fallback=cached.fallback,
        )

    async def close_spider(self) -> None:
        await asyncio.to_thread(self._pool.close)

    async def _convert_elsewhere(self, document: Document, converter: Converter, place: RunsIn) -> Document | Outcome:
        context = self._build_context(document)
        try:
            if place is RunsIn.THREAD and isinstance(document.body, bytes):
                page = await asyncio.to_thread(self._parse, document, converter.convert, document.body, context)
            else:
                page = await asyncio.wrap_future(self._pool.submit(converter, document.body, context))
        except WorkerLost as error:
            return self._end_visit(document, WorkerLost(f"{converter.name}: {error}", code=error.code))
        except Exception as error:  # noqa: BLE001 - one document that cannot be read never ends a crawl
            return self._end_visit(document, error)
        return self._add_page(document, converter, page)

    def _parse(self, document: Document, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls ``function`` in this process, which a fault of a native library may end."""
        mark = self._mark
        if mark is None:
            return function(*args, **kwargs)
        if not mark.is_open:
            self._open(mark)
        return mark.call(document.claim.url_id, function, *args, **kwargs)

    def _open(self, mark: ParseMark) -> None:
        with self._opening:
            if mark.is_open:
                return
            try:
                mark.open()
            except OSError as error:
                self._mark = None
                self._shutdown.fail(LogError(f"log {mark.path}: {error.strerror or error}"))

    def _build_context(self, document: Document) -> ConversionContext:
        return copy_with(
            self._context,
            url=document.base_url,
            row_url=document.claim.url,
            headers=document.headers,
            mimetype=document.mimetype,
        )

    def _add_page(self, document: Document, converter: Converter, page: Page) -> Document:
        if page.malformed:
            shown = ", ".join(map(repr, page.malformed))
            logger.info("%d: links of %s are not URLs: %s", Code.MALFORMED_URL, document.base_url, shown)
        if len(page.links) >= MAX_LINKS:
            logger.warning("%s: no more than its first %d links are followed", document.base_url, MAX_LINKS)
            self._stats.inc_value("searchcrawl/pages_with_too_many_links")
        if (
            self._count_shell is not None
            and converter is HTML
            and needs_scripts(document.body, page.whole or page.text)
        ):
            self._count_shell()
        return copy_with(document, page=page, converter=converter.name)

    def _end_visit(self, document: Document, error: Exception) -> Outcome:
        if isinstance(error, WorkersUnavailable):
            self._shutdown.fail(error)
            return Outcome(claim=document.claim, code=Code.NOT_FETCHED, error=str(error), released=True)
        if isinstance(error, DocumentError):
            code, text = error.code, f"{error}: {document.base_url}"
            logger.info("%d: %s", code, text)
        else:
            # A document that our own code cannot read must never end a crawl.
            logger.error("%s cannot be read", document.base_url, exc_info=error)
            self._stats.inc_value(f"searchcrawl/read_errors/{type(error).__name__}")
            code, text = Code.CONVERSION_FAILED, join_lines(f"{error!r}: {document.base_url}")
        stopped = isinstance(error, WorkerLost)
        return Outcome(
            claim=document.claim,
            code=code,
            error=text,
            redirects=document.redirects,
            stopped_worker=stopped,
            unread=_note_unread(document) if isinstance(error, NoConverter) else None,
        )


def _note_unread(document: Document) -> Unread | None:
    """What is kept of a body whose type nothing reads; None for a file in an archive, which costs no request."""
    etag = document.etag or ""
    if etag.startswith(ARCHIVE_ETAG):
        return None
    # Validators belong to the URL that answered, and a 304 names no canonical URL.
    has_own = not document.redirects and etag != CANONICAL_ETAG
    return Unread(
        mimetype=document.mimetype,
        digest=lifecycle.digest_unread(document.body),
        etag=document.etag if has_own else None,
        last_modified=document.last_modified if has_own else None,
    )


def build_text_rules(content: Content) -> TextRules:
    """What of the text of pages is indexed."""
    return TextRules(main=content.mode == "main", keep=content.keep, drop=content.drop)
