"""The item pipelines that decide what is indexed: before a body is read, and after (B8–B10, C6, A4, L5)."""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.file_name import find_file_name
from searchcrawl.items import Document, Outcome, Page, copy_with
from searchcrawl.rules import index_filter
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.index_filter import FetchedFacts, IndexFilter
from searchcrawl.rules.redirects import write_target
from searchcrawl.rules.rewriting import DisplayMap, Rewriting
from searchcrawl.run import Run
from searchcrawl.stages import stages_of


class FetchedFilterPipeline:
    """Notes the filter of ``[keep]`` that refuses a document by its type, size, age, URL or name.

    The document is not dropped: its links are followed, and it gets 952 once its page was read.
    """

    def __init__(self, rules: IndexFilter) -> None:
        self._rules = rules

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FetchedFilterPipeline:
        run = stages_of(crawler).get(Run)
        if not run.index_filter:
            raise NotConfigured
        return cls(run.index_filter)

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document):
            return item
        refusal = self._rules.find_refusal(self._collect_facts(item))
        return item if refusal is None else copy_with(item, refusal=refusal.text)

    def _collect_facts(self, document: Document) -> FetchedFacts:
        """The facts for the filters; a fact that no filter of this source needs is left out."""
        rules = self._rules
        return FetchedFacts(
            url=document.claim.url,
            name=find_file_name(document.headers, document.base_url) if rules.needs_name else "",
            mimetype=document.mimetype,
            size_bytes=len(document.body),
            modified_ms=index_filter.read_last_modified(document.last_modified) if rules.depends_on_time else None,
            fetched_ms=clock.to_ms(document.fetched_at),
        )


class PageFilterPipeline:
    """Gives each document that was read its code, its canonical URL and its display URL.

    A meta refresh to another URL ends the visit (953).
    """

    def __init__(
        self, *, boundary: Boundary, rewriting: Rewriting, rules: IndexFilter, display: DisplayMap | None = None
    ) -> None:
        self._boundary = boundary
        self._rewriting = rewriting
        self._display = display
        self._rules = rules

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageFilterPipeline:
        run = stages_of(crawler).get(Run)
        return cls(boundary=run.boundary, rewriting=run.rewriting, rules=run.index_filter, display=run.display)

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document) or item.page is None:
            return item
        return self._decide(item, item.page)

    def _decide(self, document: Document, page: Page) -> Document | Outcome:
        claim = document.claim
        decision = index_filter.decide(
            page,
            own_urls=(claim.url, document.base_url),
            boundary=self._boundary,
            rules=self._rules,
            depth=claim.depth,
            refusal=document.refusal,
            rewriting=self._rewriting,
        )
        code, rule, target = decision.code, decision.rule, decision.target
        if code == Code.META_REFRESH:
            links = () if target is None or rule is not None else (target,)
            error = None if target is None else write_target(target.url)
            return Outcome(claim=claim, code=code, rule=rule, error=error, links=links, redirects=document.redirects)
        # The Link header has precedence over the link element of the page.
        canonical = index_filter.find_canonical_link(
            document.canonical, page.canonical, own_url=claim.url, boundary=self._boundary, rewriting=self._rewriting
        )
        display_url = document.display_url
        if self._display is not None:
            try:
                display_url = self._display.resolve(claim.url, claim.display_url)
            except InvalidUrl as error:
                if code == 200:
                    code, rule = Code.INVALID_DISPLAY_URL, f"display: {error}"
        return copy_with(
            document,
            code=code,
            rule=rule,
            canonical=None if canonical is None else canonical.url,
            canonical_link=canonical,
            display_url=display_url,
        )
