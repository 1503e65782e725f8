"""Links become rows: identity, boundary, smallest depth, in the transaction of their group.

A page's links are admitted in one call, never as requests (architecture, decision 12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from searchcrawl import urls
from searchcrawl.admission.seen import Seen
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.clock import now_ms
from searchcrawl.codes import REDIRECTS, REFUSED, Code
from searchcrawl.failpoints import passing
from searchcrawl.items import Link
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.hosts import host_table
from searchcrawl.store.urls import outlink_table, review_table, url_table
from searchcrawl.store.urls.url_table import KnownUrl, NewUrl

logger = logging.getLogger(__name__)


class Found(NamedTuple):
    """The links of one page (None: of the start list); targets get ``depth``.

    Those in ``near`` are as near as the page itself: one less. ``discarded`` are those that a rewriter
    discards (K1). ``links`` are as they were found unless ``is_normalised``. ``referrer_id`` is the row
    that led to them, where that is not the page.
    """

    page_id: int | None
    depth: int
    links: Sequence[Link]
    near: Sequence[Link] = ()
    discarded: Sequence[NormalisedUrl] = ()
    is_normalised: bool = False
    referrer_id: int | None = None


@dataclass(slots=True)
class _Wanted:
    url: str
    depth: int
    referrer_id: int | None
    found_as: str | None = None
    display: str | None = None


@dataclass(slots=True)
class _Group:
    """What one call learns; it is remembered once the transaction is committed.

    ``ids`` are the rows of all its keys, ``depths`` those of the keys that were looked up or are new.
    """

    depths: dict[int, int] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    discarded: dict[int, int] = field(default_factory=dict)
    discovered: int = 0
    rejected: int = 0


#: New rows take a kilobyte each while they are written: a page may have hundreds of thousands of links (X-R13).
_ROWS_AT_ONCE: Final = 10_000
_MAX_DISCARDED: Final = 100_000
#: Overlong URLs of one group that are logged; each has its row.
_MAX_LOGGED: Final = 10
#: How the rules of rows begin that rewriters gave up, or that a link was made into by edited ones.
_BY_REWRITERS: Final = ("rewrite[", "rewrite:")


class Admission:
    """Admits links for one source; used by the writer thread alone.

    After the transaction ``committed()`` or ``rolled_back()`` has to be called.
    """

    def __init__(
        self, *, source_id: int, boundary: Boundary, max_urls: int, known_urls: int, traps: TrapWatch | None = None
    ) -> None:
        self._traps = traps
        self._source_id = source_id
        self._boundary = boundary
        #: keys of rows that rewriters gave up
        self._discarded: set[int] = set()
        self._max_urls = max_urls
        self._count = known_urls
        self._seen = Seen()
        self._hosts: dict[str, int] = {}
        self._group = _Group()

    def admit(self, transaction: Transaction, found: Sequence[Found]) -> tuple[int, int]:
        """Admits the links of a group of pages; how many URLs are new, and how many were refused."""
        group = self._group = _Group()
        pages, wanted = self._wanted(found)
        known = url_table.known(transaction, self._source_id, list(wanted))
        nearer = []
        for row in known:
            group.ids[row.key] = row.id
            group.depths[row.key] = row.depth
            if wanted[row.key].depth < row.depth:
                nearer.append((row, wanted[row.key]))
        self._find_again(transaction, known, wanted)
        fresh = [(key, link) for key, link in wanted.items() if key not in group.ids]
        for start in range(0, len(fresh), _ROWS_AT_ONCE):
            self._add(transaction, dict(fresh[start : start + _ROWS_AT_ONCE]))
        self._discard(transaction, found)
        if self._traps is not None:
            self._traps.store(transaction)
        passing("links.mid")
        self._store_outlinks(transaction, pages)
        for row, link in nearer:
            group.depths[row.key] = link.depth
        self._come_nearer(transaction, {row.id: link.depth for row, link in nearer})
        return group.discovered, group.rejected

    def row_of(self, key: int) -> int:
        """The row of a URL that the last call admitted or refused, by key."""
        return self._group.ids[key]

    def committed(self) -> None:
        """Remembers the rows of the last call."""
        if self._traps is not None:
            self._traps.committed()
        for key, depth in self._group.depths.items():
            self._seen.learn(key, self._group.ids[key], depth)
        if len(self._discarded) > _MAX_DISCARDED:
            self._discarded.clear()
        self._discarded.update(self._group.discarded)
        self._group = _Group()

    def rolled_back(self) -> None:
        """Forgets the rows of the last call."""
        if self._traps is not None:
            self._traps.rolled_back()
        self._count -= self._group.discovered
        for name in self._group.hosts:
            self._hosts.pop(name, None)
        self._group = _Group()

    def _wanted(self, found: Sequence[Found]) -> tuple[dict[int, list[int]], dict[int, _Wanted]]:
        """The keys of each page's links, and those that have to be looked up."""
        pages: dict[int, list[int]] = {}
        wanted: dict[int, _Wanted] = {}
        for page_id, depth, links, near, _, _, referrer_id in found:
            keys = self._want(page_id or referrer_id, depth, links, wanted)
            if near:
                keys += self._want(page_id, depth - 1, near, wanted)
            if page_id is not None:
                pages[page_id] = keys
        for key in wanted:
            # Seen at a greater depth by one page of the group, asked for at a smaller one by another.
            self._group.ids.pop(key, None)
        return pages, wanted

    def _want(
        self, referrer_id: int | None, depth: int, links: Sequence[Link], wanted: dict[int, _Wanted]
    ) -> list[int]:
        keys: list[int] = []
        ids, row_within = self._group.ids, self._seen.row_within
        for url, nofollow, display, found_as in links:
            if nofollow:
                continue
            key = urls.key(url)
            keys.append(key)
            row = row_within(key, depth)
            if row is not None:
                ids[key] = row
            elif key not in wanted:
                wanted[key] = _Wanted(url, depth, referrer_id, found_as, display)
            elif depth < wanted[key].depth:
                wanted[key].depth = depth
        return keys

    def _add(self, transaction: Transaction, fresh: dict[int, _Wanted]) -> None:
        # Start URLs are asked for whatever is like them.
        traps = self._traps if self._traps is not None and self._traps.active else None
        if traps is not None:
            traps.prepare(transaction, (link.url for link in fresh.values() if link.depth))
        decided = [
            (key, link, self._decide(link.url, link.depth, traps.admit if traps is not None and link.depth else None))
            for key, link in fresh.items()
        ]
        names = {key: urls.host_and_port(link.url) for key, link, _ in decided}
        self._learn_hosts(transaction, set(names.values()))
        rows = [
            NewUrl(
                key=key,
                url=link.url,
                host_id=self._hosts[names[key]],
                depth=link.depth,
                referrer_id=link.referrer_id,
                code=0 if decision.allowed else refusal_code(decision),
                rule=None if decision.allowed else decision.text,
                found_as=link.found_as,
                display_url=link.display,
            )
            for key, link, decision in decided
        ]
        self._group.ids.update(url_table.add(transaction, self._source_id, rows, now_ms()))
        self._group.depths.update({row.key: row.depth for row in rows})
        refused = [row for row in rows if row.code]
        self._group.rejected += len(refused)
        overlong = [row.url for row in refused if row.code == Code.MALFORMED_URL]
        for url in overlong[:_MAX_LOGGED]:
            logger.info("%d: refused, %d characters: %.200s…", Code.MALFORMED_URL, len(url), url)

    def _learn_hosts(self, transaction: Transaction, names: set[str]) -> None:
        missing = names - self._hosts.keys()
        if len(self._hosts) > 50_000:
            self._hosts.clear()
            missing = names
        self._group.hosts |= missing
        self._hosts.update(host_table.find_or_add(transaction, missing))

    def _discard(self, transaction: Transaction, found: Sequence[Found]) -> None:
        """Rows for what rewriters give up, so that it can be asked why; what is known already stays what it is."""
        wanted: dict[int, tuple[NormalisedUrl, Found]] = {}
        for one in found:
            for dropped in one.discarded:
                key = urls.key(dropped.url)
                if key not in self._group.ids and key not in self._discarded:
                    wanted.setdefault(key, (dropped, one))
        if not wanted:
            return
        known = {row.key: row.id for row in url_table.known(transaction, self._source_id, list(wanted))}
        names = {key: urls.host_and_port(dropped.url) for key, (dropped, _) in wanted.items() if key not in known}
        self._learn_hosts(transaction, set(names.values()))
        rows = [
            NewUrl(
                key=key,
                url=dropped.url,
                host_id=self._hosts[names[key]],
                depth=one.depth,
                referrer_id=one.page_id,
                code=dropped.code,
                rule=dropped.decision.text,
                error=dropped.error,
            )
            for key, (dropped, one) in wanted.items()
            if key not in known
        ]
        # They are not remembered with the others: another page may lead there, and be believed.
        self._group.discarded = known | url_table.add(transaction, self._source_id, rows, now_ms())
        self._group.rejected += len(rows)

    def _find_again(self, transaction: Transaction, known: Sequence[KnownUrl], wanted: dict[int, _Wanted]) -> None:
        """Opens rows that rewriters had given up, or that had another URL, and that are found by a link that counts."""
        opened = {
            row.id: (wanted[row.key].found_as, wanted[row.key].display)
            for row in known
            if row.rule is not None
            and row.rule.startswith(_BY_REWRITERS)
            and self.decide(wanted[row.key].url, wanted[row.key].depth).allowed
        }
        if not opened:
            return
        review_table.find_again(transaction, opened)
        url_table.reopen(transaction, opened)

    def decide(self, url: str, depth: int) -> Decision:
        """Whether a URL may be visited: the boundary's word, ``max_urls`` and traps. What is allowed is counted.

        How many are alike is counted when it is claimed.
        """
        return self._decide(url, depth, self._traps.cutting if self._traps is not None and depth else None)

    def _decide(self, url: str, depth: int, trapped: Callable[[str], Decision | None] | None) -> Decision:
        decision = self._boundary.decide(url, depth)
        if not decision.allowed:
            return decision
        if self._max_urls and self._count >= self._max_urls:
            return Decision(False, str(self._max_urls), decision.file, "scope.max_urls")
        refusal = trapped(url) if trapped is not None else None
        if refusal is not None:
            return refusal
        self._count += 1
        self._group.discovered += 1
        return decision

    def _store_outlinks(self, transaction: Transaction, pages: dict[int, list[int]]) -> None:
        targets = {page: [self._group.ids[key] for key in keys] for page, keys in pages.items()}
        outlink_table.store(transaction, targets)

    def _come_nearer(self, transaction: Transaction, nearer: dict[int, int]) -> None:
        """Pages found again at a smaller depth: so are the pages they link to (decision 7)."""
        while nearer:
            places = url_table.addresses(transaction, list(nearer))
            nearer = {url_id: depth for url_id, depth in nearer.items() if depth < places[url_id][1]}
            url_table.lower_depths(transaction, nearer)
            url_table.reopen(transaction, document_table.send_again(transaction, list(nearer)))
            refused = [url_id for url_id in nearer if places[url_id][2] in REFUSED]
            opened = [url_id for url_id in refused if self.decide(places[url_id][0], nearer[url_id]).allowed]
            url_table.reopen(transaction, opened)
            following: dict[int, int] = {}
            for page, targets in outlink_table.load(transaction, list(nearer)).items():
                # The target of a redirect is no further away than the redirect.
                step = 0 if places[page][2] in REDIRECTS else 1
                for target in targets:
                    depth = nearer[page] + step
                    following[target] = min(depth, following.get(target, depth))
            for page, target in duplicate_key_table.find_canonical_targets(transaction, list(nearer)).items():
                following[target] = min(nearer[page], following.get(target, nearer[page]))
            nearer = following
