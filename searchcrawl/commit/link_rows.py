"""What the links of a group change besides new rows: chains of redirects, display URLs, and sitemaps.

The writer thread calls it within the transaction of a group; the helper thread that opens the writer calls
``write_start_displays``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.answer_headers import find_display
from searchcrawl.codes import REDIRECTS, Code
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import Group
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Document, Outcome, SitemapEnd, SitemapPart
from searchcrawl.rules.rewriting import DisplayMap
from searchcrawl.store import sitemap_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import link_table, review_table, url_queries, url_table

#: How many display URLs are remembered as written.
_MAX_REMEMBERED: Final = 200_000
_UNKNOWN: Final = object()
#: The code of a sitemap that was read.
_READ: Final = 200


def is_redirect(item: Document | Outcome) -> bool:
    """Whether a visit ended with a redirect (301, 308 or meta refresh) whose target becomes a row of its own."""
    return isinstance(item, Outcome) and bool(item.links) and item.code in REDIRECTS


def cut_redirect_chains(
    transaction: Transaction, items: Sequence[Document | Outcome], *, source_id: int, max_redirects: int
) -> list[Document | Outcome]:
    """Ends a chain of redirects from row to row as a chain within one visit is ended.

    A visit does not see how long the chain that led to its row is. A redirect that closes a loop, or exceeds the limit,
    gets the code 963 and no target. All other visits are returned unchanged.
    """
    earlier: dict[str, str] = {}

    def leads_back(url: str, target: str) -> bool:
        """Whether the redirects that are known from ``target`` on lead to ``url``, those of items before included."""
        at: str | None = target
        for _ in range(max_redirects):
            if at is None or at == url:
                break
            at = earlier.get(at) or url_queries.find_redirect_target(transaction, source_id, at)
        return at == url

    def cut(item: Document | Outcome) -> Document | Outcome:
        """The item, or 963 in its place."""
        if not isinstance(item, Outcome) or not is_redirect(item):
            return item
        url, target = item.claim.url, item.links[0].url
        before = url_queries.find_redirects_before(transaction, item.claim.url_id, limit=max_redirects)
        # The pages of a loop may all have been found by links, and none by the redirect to it.
        looped = target in before or leads_back(url, target)
        if looped or len(before) >= max_redirects:
            return _end_chain(item, "redirect loop" if looped else f"more than {max_redirects} redirects")
        earlier[url] = target
        return item

    return [cut(item) for item in items]


def _end_chain(item: Outcome, reason: str) -> Outcome:
    return replace(
        item, code=Code.REDIRECT_LOOP, links=(), rule=None, error=f"{reason}, from page to page: {item.claim.url}"
    )


def update_depths(
    transaction: Transaction, items: Sequence[Document | Outcome], found: Sequence[FoundLinks]
) -> list[FoundLinks]:
    """Returns the links with the present depths of their pages: a depth may have become smaller during the visit."""
    claimed = {item.claim.url_id: item.claim.depth for item in items}
    depths = url_table.find_depths(transaction, [links.page_id for links in found if links.page_id is not None])
    return [
        links
        if links.page_id is None
        else links._replace(depth=links.depth - claimed[links.page_id] + depths[links.page_id])
        for links in found
    ]


def reopen_parts(transaction: Transaction, items: Sequence[Document | Outcome]) -> None:
    """Has the files of archives visited that have other bytes now, or are gone: nothing else lists them."""
    changed = [
        item.claim.url_id
        for item in items
        if (item.page is not None if isinstance(item, Document) else item.code == Code.NO_LONGER_LISTED)
    ]
    parts = link_table.load(transaction, changed)
    url_table.reopen(transaction, dict.fromkeys(part for found in parts.values() for part in found))


class DisplayChanges:
    """Writes the display URLs that rewriters set (K1) into the rows of the links; the last one counts.

    A helper thread makes it, the writer thread calls it. After the transaction ``note_commit()`` has to be called.
    """

    def __init__(self, source_id: int, display: DisplayMap) -> None:
        self._source_id = source_id
        self._display = display
        self._noted: dict[int, str | None] = {}
        self._written: dict[int, str | None] = {}

    def write(self, transaction: Transaction, found: Sequence[FoundLinks]) -> dict[int, int | None]:
        """Writes the display URLs of links; returns the new keys, by row id, of known rows that had another one."""
        said = {
            urls.key(link.url): link.display
            for one in found
            for link in (*one.links, *one.canonicals)
            if not link.nofollow
        }
        self._written = {key: shown for key, shown in said.items() if self._noted.get(key, _UNKNOWN) != shown}
        rows = review_table.find_displays(transaction, self._source_id, list(self._written))
        changed = [row for row in rows if row.display_url != self._written[row.key]]
        review_table.set_displays(transaction, {row.id: self._written[row.key] for row in changed})
        return {row.id: self._build_key(row.url, self._written[row.key]) for row in changed}

    def note_commit(self) -> None:
        """Remembers what the last call wrote."""
        if len(self._noted) > _MAX_REMEMBERED:
            self._noted.clear()
        self._noted.update(self._written)
        self._written = {}

    def _build_key(self, url: str, display: str | None) -> int | None:
        try:
            return urls.key(self._display.resolve(url, display))
        except InvalidUrl:
            # The next visit ends with 1010 and says why.
            return None


def write_start_displays(transaction: Transaction, source_id: int, found: FoundLinks, display: DisplayMap) -> None:
    """Writes the display URLs of the start URLs, and sends the documents again that had another one."""
    changed = DisplayChanges(source_id, display).write(transaction, [found])
    if changed:
        document_rows.write_documents(transaction, source_id, Group(displays=changed), {})
        url_table.reopen(transaction, document_table.send_again(transaction, list(changed)))


def write_said_displays(transaction: Transaction, items: Sequence[Document | Outcome]) -> None:
    """Writes the display URLs that the answers of documents say into their rows."""
    said = {
        item.claim.url_id: shown
        for item in items
        if isinstance(item, Document) and (shown := find_display(item.headers)) != item.claim.display_url
    }
    if said:
        review_table.set_displays(transaction, said)


@dataclass(slots=True)
class _Contents:
    """The ids of the URL rows and of the sitemaps that one sitemap lists, as far as it was read.

    ``others`` are those of its ``children`` that belong to another index, or to none.
    """

    sitemap_id: int
    rows: set[int] = field(default_factory=set)
    children: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)
    ended: bool = False

    def add(self, other: _Contents) -> None:
        self.rows |= other.rows
        self.children |= other.children
        self.others |= other.others


def _has_nothing(part: SitemapPart) -> bool:
    """Whether a part is the end of a sitemap of which nothing is known after it but that end."""
    end = part.end
    if end is None or end.whole or end.code == _READ or end.etag is not None or end.last_modified is not None:
        return False
    return not (part.urls or part.children or part.own_children)


class SitemapRows:
    """Writes the parts of sitemaps of one run.

    It remembers what the sitemaps that are being read list. At the end of each it knows which rows are no
    longer listed. After the transaction ``note_commit()`` has to be called; a transaction that failed may be
    tried again.
    """

    def __init__(self, source_id: int, run_id: int) -> None:
        self._source_id = source_id
        self._run_id = run_id
        self._reading: dict[str, _Contents] = {}
        self._written: dict[str, _Contents] = {}
        #: by sitemap: an index to which it does not belong, and that names it in this run
        self._naming: dict[int, int] = {}

    def write(
        self, transaction: Transaction, parts: Sequence[SitemapPart], find_row: Callable[[int], int | None]
    ) -> None:
        """Writes what the parts list; ``find_row`` returns the id of a URL row by key, None for a URL without one.

        Most hosts have no sitemap: the ends of those that cannot be read are written together.
        """
        self._written = {}
        for has_nothing, several in groupby(parts, _has_nothing):
            if has_nothing:
                self._end_without(transaction, list(several))
            else:
                for part in several:
                    self._write_part(transaction, part, find_row)

    def _end_without(self, transaction: Transaction, parts: Sequence[SitemapPart]) -> None:
        """Ends sitemaps of which nothing was read."""
        found = sitemap_table.find_or_add(transaction, self._source_id, [part.url for part in parts])
        sitemap_table.give_to(transaction, [found[part.url] for part in parts if part.is_root], None)
        guesses = [found[part.url] for part in parts if part.is_guess and not part.is_root]
        sitemap_table.take_from_foreign(transaction, guesses, None)
        ends = [(found[part.url], part.end, part.is_feed) for part in parts if part.end is not None]
        sitemap_table.end_unread(transaction, ends, run_id=self._run_id, now_ms=clock.now_ms())
        for part in parts:
            self._written.setdefault(part.url, _Contents(found[part.url])).ended = True

    def _write_part(self, transaction: Transaction, part: SitemapPart, find_row: Callable[[int], int | None]) -> None:
        (sitemap_id,) = sitemap_table.add(transaction, self._source_id, [part.url])
        contents = self._written.setdefault(part.url, _Contents(sitemap_id))
        found = [(find_row(urls.key(one.url)), one.lastmod_ms) for one in part.urls]
        lastmods = {row_id: lastmod_ms for row_id, lastmod_ms in found if row_id is not None}
        sitemap_table.list_urls(transaction, sitemap_id, lastmods)
        contents.rows.update(lastmods)
        self._write_children(transaction, part, contents)
        if part.end is not None:
            self._end(transaction, sitemap_id, part, part.end)
            contents.ended = True

    def note_commit(self) -> None:
        """Remembers what the last call wrote."""
        for url, contents in self._written.items():
            self._naming.update(dict.fromkeys(contents.others, contents.sitemap_id))
            if contents.ended:
                self._reading.pop(url, None)
            elif url in self._reading:
                self._reading[url].add(contents)
            else:
                self._reading[url] = contents
        self._written = {}

    def _write_children(self, transaction: Transaction, part: SitemapPart, contents: _Contents) -> None:
        if not part.children:
            return
        children = sitemap_table.add(transaction, self._source_id, part.children, parent_id=contents.sitemap_id)
        if part.own_children:
            own = sitemap_table.add(transaction, self._source_id, part.own_children)
            sitemap_table.take_from_foreign(transaction, own, contents.sitemap_id)
        contents.children.update(children)
        contents.others.update(sitemap_table.find_others(transaction, contents.sitemap_id, children))

    def _end(self, transaction: Transaction, sitemap_id: int, part: SitemapPart, end: SitemapEnd) -> None:
        if part.is_root:
            sitemap_table.give_to(transaction, [sitemap_id], None)
        elif part.is_guess:
            sitemap_table.take_from_foreign(transaction, [sitemap_id], None)
        contents = _Contents(sitemap_id)
        for one in (self._reading.get(part.url), self._written[part.url]):
            if one is not None:
                contents.add(one)
        if end.whole:
            sitemap_table.unlist_others(transaction, sitemap_id, contents.rows)
            self._forget_other_children(transaction, contents)
        if contents.others:
            # The store does not know that it names them: it has to say so each time.
            end = replace(end, etag=None, last_modified=None)
        sitemap_table.end(
            transaction, sitemap_id, end, run_id=self._run_id, now_ms=clock.now_ms(), is_feed=part.is_feed
        )

    def _forget_other_children(self, transaction: Transaction, contents: _Contents) -> None:
        """Gives what an index no longer names to another one that names it in this run; forgets the rest."""
        gone = sitemap_table.find_other_children(transaction, contents.sitemap_id, contents.children)
        if not gone:
            return
        naming = self._naming | {child: one.sitemap_id for one in self._written.values() for child in one.others}
        children_of = defaultdict(list)
        for child in gone:
            if child in naming:
                children_of[naming[child]].append(child)
        # An index that was forgotten meanwhile gets none.
        for index in sitemap_table.find_existing(transaction, list(children_of)):
            sitemap_table.give_to(transaction, children_of.pop(index), index)
        left = {child for children in children_of.values() for child in children}
        sitemap_table.forget(transaction, [child for child in gone if child not in naming or child in left])
