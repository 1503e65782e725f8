"""What the parts of sitemaps change in the store, within the transaction of their group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from searchcrawl import clock, urls
from searchcrawl.items import SitemapEnd, SitemapPart
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.sitemaps import sitemap_table
from searchcrawl.store.sitemaps.sitemap_table import Reading


@dataclass(slots=True)
class _Contents:
    """The ids of the URL rows and of the sitemaps that one sitemap lists, as far as it was read."""

    rows: set[int] = field(default_factory=set)
    children: set[int] = field(default_factory=set)
    ended: bool = False

    def add(self, other: _Contents) -> None:
        self.rows |= other.rows
        self.children |= other.children


class SitemapRows:
    """Writes the parts of one run; used by the writer thread alone.

    It remembers what the sitemaps that are being read list, so that at the end of each the rows
    that vanished from it are known. After the transaction ``committed()`` has to be called; one
    that failed may be tried again.
    """

    def __init__(self, source_id: int, run_id: int) -> None:
        self._source_id = source_id
        self._run_id = run_id
        self._reading: dict[str, _Contents] = {}
        self._written: dict[str, _Contents] = {}

    def write(self, transaction: Transaction, parts: Sequence[SitemapPart], row_of: Callable[[int], int]) -> None:
        """Notes what the parts list; ``row_of`` answers the id of a URL row by key."""
        self._written = {}
        for part in parts:
            (sitemap_id,) = sitemap_table.add(transaction, self._source_id, [part.url])
            contents = self._contents(part.url)
            lastmods = {row_of(urls.key(one.url)): one.lastmod_ms for one in part.urls}
            sitemap_table.list_urls(transaction, sitemap_id, lastmods)
            contents.rows.update(lastmods)
            contents.children.update(
                sitemap_table.add(transaction, self._source_id, part.children, parent_id=sitemap_id)
            )
            if part.end is not None:
                self._end(transaction, sitemap_id, part, part.end)
                contents.ended = True

    def committed(self) -> None:
        """Remembers what the last call wrote."""
        for url, contents in self._written.items():
            if contents.ended:
                self._reading.pop(url, None)
            elif url in self._reading:
                self._reading[url].add(contents)
            else:
                self._reading[url] = contents
        self._written = {}

    def _contents(self, url: str) -> _Contents:
        if url not in self._written:
            self._written[url] = _Contents()
        return self._written[url]

    def _end(self, transaction: Transaction, sitemap_id: int, part: SitemapPart, end: SitemapEnd) -> None:
        if end.whole:
            both = (self._reading.get(part.url), self._written[part.url])
            rows = set[int]().union(*(contents.rows for contents in both if contents))
            children = set[int]().union(*(contents.children for contents in both if contents))
            sitemap_table.unlist_others(transaction, sitemap_id, rows)
            sitemap_table.forget_other_children(transaction, sitemap_id, children)
        reading = Reading(code=end.code, error=end.error, etag=end.etag, last_modified=end.last_modified)
        sitemap_table.end(transaction, sitemap_id, reading, run_id=self._run_id, now_ms=clock.now_ms())
