"""Pages of a source for commands of Scrapy: visited as a crawl visits them, and stored nowhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcessBase
from scrapy.exceptions import UsageError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from searchcrawl import urls
from searchcrawl.cli.leaving import leaving_at_signals
from searchcrawl.cli.output import error_lines, guard_output, print_note
from searchcrawl.codes import describe_code
from searchcrawl.exceptions import ConfigurationError, SearchcrawlError
from searchcrawl.exit_codes import Exit
from searchcrawl.items import Document, Outcome
from searchcrawl.items import Headers as Pairs
from searchcrawl.operations.dry_run import DryRun, build_dry_run
from searchcrawl.queries.page import describe_page
from searchcrawl.sources.loading import find_project, load_project, load_source
from searchcrawl.sources.stored_modes import apply_umask
from searchcrawl.spiders.page_spider import visit_page
from searchcrawl.store.opening import use_store

#: Undone in the body.
_CODING = b"Content-Encoding"


@contextmanager
def open_dry_run(name: str) -> Iterator[DryRun]:
    """A run of the source that stores nothing; what is wrong with source or page is an error of usage for Scrapy."""
    try:
        project = load_project(find_project())
        apply_umask(project)
        with use_store(project) as database:
            run = build_dry_run(project, load_source(project, name), database)
            run.rewriting.open(name)
            with closing(run.rewriting):
                yield run
    except SearchcrawlError as error:
        raise UsageError("; ".join(error_lines(error)), print_help=False) from error


def require_asyncio(process: CrawlerProcessBase | None) -> AsyncCrawlerProcess:
    """The process that crawls; raises ConfigurationError where it is of a reactor on which no source is crawled."""
    if not isinstance(process, AsyncCrawlerProcess):
        raise ConfigurationError("settings", "TWISTED_REACTOR", "must be the asyncio reactor")
    return process


def find_identity(run: DryRun, typed: str) -> str:
    """The URL that somebody typed, as the source writes it; raises InvalidUrl."""
    return run.rewriting.normalise(urls.resolve_typed(typed, routes=run.source.scope.hash_routes)).url


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
    return make_response(document.base_url, document.headers, document.body, asked=document.claim.url)


def make_response(url: str, pairs: Pairs, body: bytes, *, asked: str, status: int = 200) -> Response:
    headers = Headers()
    for name, value in pairs:
        if name.title() != _CODING:
            headers.appendlist(name, value)
    kind = responsetypes.from_args(headers=headers, url=url, body=body)
    return kind(url, status=status, headers=headers, body=body, request=Request(asked))
