"""Pages of a source for commands of Scrapy: visited as a crawl visits them, and stored nowhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, Final

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcessBase
from scrapy.exceptions import UsageError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from scrapy.shell import Shell
from scrapy.utils.defer import deferred_f_from_coro_f
from twisted.internet import threads

from searchcrawl import urls
from searchcrawl.bodies import read_whole
from searchcrawl.cache.opening import open_cache
from searchcrawl.cli.command import find_path
from searchcrawl.cli.leaving import leaving_at_signals
from searchcrawl.cli.output import error_lines, guard_output, print_note
from searchcrawl.cli.scrapy_commands import require_asyncio
from searchcrawl.codes import describe_code
from searchcrawl.documents.shown_document import show
from searchcrawl.exceptions import Exit, SearchcrawlError
from searchcrawl.frontier.scheduler import build_request
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.items import Headers as Pairs
from searchcrawl.operations import dry_run
from searchcrawl.operations.dry_run import DryRun
from searchcrawl.queries.page import describe_page
from searchcrawl.sources.loading import find_project, load_project, load_source
from searchcrawl.sources.stored_modes import apply_umask
from searchcrawl.spiders.page_spider import PageSpider, visit_page
from searchcrawl.spiders.spider_loader import build_spider_class
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.opening import use_store
from searchcrawl.store.urls import review_table, url_table

#: Undone in the body.
_CODING = b"Content-Encoding"
#: All rows are due by then.
_ALWAYS_MS: Final = 2**62
_HELP: Final = """\
Of the source, nothing of it is stored:
  fetch(url)    visit url with its login, headers, names and rules, and update what follows
  cached(url)   the same with the answer that the cache has, without a request
  response      the answer, for response.css() and response.xpath()
  document      what item pipelines and document services get
  stored        what would be stored: stored["fields"], stored["text"], stored["links"] with the rule that decides
"""


@contextmanager
def open_dry_run(name: str) -> Iterator[DryRun]:
    """A run of the source that stores nothing; what is wrong with source or page is an error of usage for Scrapy."""
    try:
        project = load_project(find_project())
        apply_umask(project)
        with use_store(project) as database, dry_run.open_dry_run(project, load_source(project, name), database) as run:
            yield run
    except SearchcrawlError as error:
        raise UsageError("; ".join(error_lines(error)), print_help=False) from error


def find_identity(run: DryRun, typed: str) -> str:
    """The URL that somebody typed, as the source writes it; raises InvalidUrl."""
    return run.rewriting.normalise(urls.resolve_typed(find_path(typed), routes=run.source.scope.hash_routes)).url


def fetch_once(process: CrawlerProcessBase | None, name: str, typed: str) -> Response:
    """The answer to one URL, by the rules of the source; once in a process. Ends the process with 1 where there is none."""
    with open_dry_run(name) as run:
        return build_response(_visit(process, run, typed))


def describe_once(process: CrawlerProcessBase | None, name: str, typed: str) -> dict[str, Any]:
    """What ``test --json`` says of one URL; once in a process. Ends the process with 1 where there is no page."""
    with open_dry_run(name) as run:
        seen = _visit(process, run, typed)
        return describe_page(seen.claim.url, seen, run)


def _visit(process: CrawlerProcessBase | None, run: DryRun, typed: str) -> Document:
    guard_output()
    with leaving_at_signals():
        seen = visit_page(require_asyncio(process), run, find_identity(run, typed))
    if isinstance(seen, Outcome):
        # Scrapy has one error for commands, which is that of a wrong use.
        print_note(f"searchcrawl: {seen.claim.url}: {describe_end(seen)}")
        sys.exit(Exit.DIFFERENT)
    return seen


def describe_end(seen: Document | Outcome) -> str:
    """How a visit ended: its code in words, and the rule or the error."""
    reason = seen.rule or (seen.error if isinstance(seen, Outcome) else None)
    code = describe_code(int(seen.code))
    # The error of a status repeats it.
    return reason if reason and reason.startswith(code) else ": ".join(filter(None, [code, reason]))


def build_response(document: Document) -> Response:
    """The response that the document was read from, its codings undone."""
    return make_response(document.base_url, document.headers, read_whole(document.body), asked=document.claim.url)


def make_response(url: str, pairs: Pairs, body: bytes, *, asked: str, status: int = 200) -> Response:
    headers = Headers()
    for name, value in pairs:
        if name.title() != _CODING:
            headers.appendlist(name, value)
    kind = responsetypes.from_args(headers=headers, url=url, body=body)
    return kind(url, status=status, headers=headers, body=body, request=Request(asked))


class _Arrivals(list[Document | Outcome]):
    """What became of pages; the visit that waits for the next one is told."""

    awaited: asyncio.Future[Document | Outcome] | None = None

    def append(self, item: Document | Outcome) -> None:
        super().append(item)
        if self.awaited is not None and not self.awaited.done():
            self.awaited.set_result(item)


class _Pages:
    """Visits pages in the reactor, which runs in a thread of its own as long as the console is open."""

    def __init__(self, process: AsyncCrawlerProcess, run: DryRun) -> None:
        self.run = run
        self._process = process
        self._arrivals = _Arrivals()
        spider = build_spider_class(run.project, run.source, PageSpider)
        self.crawler: Crawler = process._create_crawler(spider)
        # The add-on reads the source of the spider, so this comes before the settings; Scrapy's shell does without.
        self.crawler.spider = self.crawler._create_spider(run=run, seen=self._arrivals, claim=None)
        self.crawler._apply_settings()
        self._thread = Thread(
            target=process.start,
            kwargs={"stop_after_crawl": False, "install_signal_handlers": False},
            daemon=True,
        )
        self._thread.start()
        self._call(self._open)

    def visit(self, url: str) -> Document | Outcome:
        """What becomes of an identity."""
        found: Document | Outcome = self._call(self._visit, url)
        return found

    def close(self) -> None:
        """Ends what a crawl opens: connections, workers, a browser."""
        engine: Any = self.crawler.engine
        self._call(engine.close_spider_async, reason="finished")

    def _call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        from twisted.internet import reactor  # it is chosen by the settings

        return threads.blockingCallFromThread(reactor, deferred_f_from_coro_f(function), *arguments, **named)

    async def _open(self) -> None:
        engine = self.crawler.engine = self.crawler._create_engine()
        self._engine_runs = asyncio.ensure_future(engine.start_async(_start_request_processing=False))
        await asyncio.sleep(0)
        await engine.open_spider_async(close_if_idle=False)

    async def _visit(self, url: str) -> Document | Outcome:
        spider: Any = self.crawler.spider
        engine: Any = self.crawler.engine
        self._arrivals.awaited = asyncio.get_running_loop().create_future()
        spider.claim = Claim(url_id=0, url=url, host_id=0, depth=0)
        host = urls.host_and_port(url)
        engine.crawl(build_request(spider.claim, host, callback=spider.handle_response, errback=spider.handle_failure))
        return await self._arrivals.awaited


class SourceShell(Shell):
    """Scrapy's shell, whose ``fetch`` visits pages as a crawl of the source does."""

    def __init__(self, process: AsyncCrawlerProcess, run: DryRun, code: str | None) -> None:
        self._pages = _Pages(process, run)
        super().__init__(self._pages.crawler, code=code)
        self.spider = self._pages.crawler.spider

    def close(self) -> None:
        self._pages.close()

    def fetch(self, request_or_url: Any, spider: Spider | None = None, redirect: bool = True, **kwargs: Any) -> None:
        """Visits a URL; of a request it is the URL that counts."""
        try:
            url = find_identity(self._pages.run, getattr(request_or_url, "url", request_or_url))
        except SearchcrawlError as error:
            print_note(f"searchcrawl: {error}")
            return
        seen = self._pages.visit(url)
        run = self._pages.run
        if run.shutdown.failure is not None:
            raise UsageError(str(run.shutdown.failure), print_help=False)
        print_note(f"{url}: {describe_end(seen)}")
        self._show(build_response(seen) if isinstance(seen, Document) else None, seen)

    def cached(self, url: str) -> None:
        """Shows the answer of the last good visit, from the cache."""
        run = self._pages.run
        try:
            identity = find_identity(run, url)
            response = read_cached(run, identity)
        except SearchcrawlError as error:
            print_note(f"searchcrawl: {error}")
            return
        if response is None:
            print_note(f"{identity}: the cache does not have it")
            return
        self._show(response, None)

    def _show(self, response: Response | None, seen: Document | Outcome | None) -> None:
        run = self._pages.run
        self.vars["stored"] = None if seen is None else describe_page(seen.claim.url, seen, run)
        page = seen.page if isinstance(seen, Document) else None
        self.vars["document"] = show(seen, page) if isinstance(seen, Document) and page is not None else None
        self.populate_vars(response, None if response is None else response.request, self.spider)

    def populate_vars(self, response: Any = None, request: Any = None, spider: Spider | None = None) -> None:
        self.vars.setdefault("document", None)
        self.vars.setdefault("stored", None)
        self.vars["cached"] = self.cached
        super().populate_vars(response, request, spider or self.spider)

    def get_help(self) -> str:
        return super().get_help() + "\n".join(f"[s] {line}" for line in _HELP.splitlines()) + "\n"


def read_cached(run: DryRun, url: str) -> Response | None:
    """The answer that the cache has of an identity; None for none. Raises StoreError, CacheError."""

    def find(transaction: Transaction) -> list[review_table.StoredAnswer]:
        known = url_table.find_known(transaction, run.source_id, [urls.key(url)])
        if not known:
            return []
        after = known[0].id - 1
        found = review_table.find_answers(transaction, run.source_id, after=after, limit=1, horizon_ms=_ALWAYS_MS)
        return [each for each in found if each.url_id == known[0].id]

    for answer in run.read(find):
        page = open_cache(run.project, run.source.name).read_page(answer.place, url=url)
        return make_response(
            page.base_url or page.url, page.headers, read_whole(page.body), asked=url, status=page.status
        )
    return None
