"""Reads what is no ordinary HTML page: PDF, plain text, and pages too large for the reactor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Final

from scrapy.crawler import Crawler

from searchcrawl.convert.conversion_pool import ConversionPool
from searchcrawl.convert.file_name import sent_name
from searchcrawl.convert.judge import judged
from searchcrawl.convert.plain_text import convert_text
from searchcrawl.convert.registry import Converter
from searchcrawl.exceptions import DocumentError
from searchcrawl.html.links import MAX_LINKS
from searchcrawl.html.oversized import OVERSIZED_BYTES, OversizedParser
from searchcrawl.items import Document, Outcome, Page
from searchcrawl.run import Run

logger = logging.getLogger(__name__)

#: What may have no title but the name of its file.
_NAMED: Final = frozenset({Converter.PDF.value, Converter.TEXT.value})


@dataclass(slots=True)
class ConvertPipeline:
    """Fills the page of documents that name a converter; a failure ends the visit with its code."""

    crawler: Crawler
    _conversions: ConversionPool = field(default_factory=ConversionPool)
    _oversized: OversizedParser = field(default_factory=OversizedParser)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ConvertPipeline:
        return cls(crawler)

    async def process_item(self, item: object) -> object:
        if not isinstance(item, Document) or item.converter is None:
            return item
        run: Run = self.crawler.spider.run  # type: ignore[union-attr]  # our spiders have one
        try:
            page = await self._convert(item, run)
        except DocumentError as error:
            return Outcome(
                claim=item.claim, code=error.code, error=f"{error}: {item.base_url}", redirects=item.redirects
            )
        if len(page.links) >= MAX_LINKS:
            # Such pages are all oversized, and come by here.
            logger.warning("%s: no more than its first %d links are followed", item.base_url, MAX_LINKS)
            self.crawler.stats.inc_value("searchcrawl/pages_with_too_many_links")
        found = run.wires.sentinel(item, page) if run.wires.sentinel is not None else None
        if isinstance(found, Awaitable):
            found = await found
        return judged(item, page, run) if found is None else found

    async def close_spider(self) -> None:
        await asyncio.to_thread(self._conversions.close)
        await asyncio.to_thread(self._oversized.close)

    def _convert(self, document: Document, run: Run) -> Awaitable[Page]:
        fetch = run.source.fetch
        about: dict[str, Any] = {
            "url": document.base_url,
            "robots_headers": robots_tags(document.headers),
            "user_agent": run.source.robots.user_agent or run.project.user_agent,
        }
        if document.converter in _NAMED:
            about["name"] = sent_name(document.headers)
        if document.converter == Converter.PDF.value:
            return asyncio.wrap_future(self._conversions.submit(document.body, **about))
        about |= {"content_type": content_type(document.headers), "default_charset": fetch.default_charset}
        if document.converter == Converter.TEXT.value:
            if len(document.body) <= OVERSIZED_BYTES:
                return asyncio.to_thread(convert_text, document.body, **about)
            # What takes a thread seconds to split and join stops the reactor as well: the lock is one for all.
            return asyncio.wrap_future(self._conversions.submit_text(document.body, **about))
        wanted = run.attributes.wanted if run.attributes is not None else frozenset()
        return asyncio.wrap_future(self._oversized.submit(document.body, **about, wanted=wanted))


def content_type(headers: tuple[tuple[bytes, bytes], ...]) -> str:
    """The values of all Content-Type headers, joined as the Fetch standard reads them."""
    return ", ".join(value.decode("latin-1") for name, value in headers if name.lower() == b"content-type")


def robots_tags(headers: tuple[tuple[bytes, bytes], ...]) -> list[str]:
    """The values of all X-Robots-Tag headers."""
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"x-robots-tag"]
