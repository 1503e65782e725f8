"""Admission: makes URL rows of links, with their smallest depth, in the transaction of their group.

All links of a group are admitted in one call, never as requests (docs: decisions/links-are-not-requests).

Links that may not be followed get no rows, but one blob of each page that has any, so that ``explain`` can name them (L1).

Those that are refused for ``scope.max_urls``, or because they lead to hosts outside, cost no row: they are counted only.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Self

from searchcrawl import urls
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.clock import now_ms
from searchcrawl.codes import REDIRECTS, REFUSED, Code
from searchcrawl.failpoints import reach
from searchcrawl.items import Link
from searchcrawl.rules.boundary import MAX_URLS, Boundary, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.lifecycle import ORPHAN_RULE
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.run import Run
from searchcrawl.store import host_table
from searchcrawl.store.documents import anchor_table, document_table, duplicate_key_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import link_table, orphan_table, review_table, url_table
from searchcrawl.store.urls.link_table import BYTES, MOST_TARGETS, LinkTexts, Nofollow, Unfollowed
from searchcrawl.store.urls.url_table import KnownUrl, NewUrl, UrlPlace

#: How the rule begins in a row whose URL a rewriter discarded or changed.
_BY_REWRITERS: Final = ("rewrite[", "rewrite:")
#: In a row whose URL is no identity any more.
_BY_IDENTITY: Final = (*_BY_REWRITERS, "scope.strip_parameters:")


@dataclass(slots=True)
class WantedLink:
    """A URL to look up; ``links`` are those that need no row, and unless ``needs_row`` there are no others."""

    url: str
    depth: int
    referrer_id: int | None
    found_as: str | None = None
    display: str | None = None
    links: int = 0
    needs_row: bool = False
    refusal: str | None = None


def _may_be_allowed(place: UrlPlace) -> bool:
    """Whether a row was refused for its depth, or another rule of the boundary, and may be allowed where it is nearer."""
    is_identity = place.rule is None or not place.rule.startswith(_BY_IDENTITY)
    # The others are to be visited, and counted.
    return place.code in REFUSED and place.fetch_state == FetchState.SETTLED and is_identity


logger = logging.getLogger(__name__)


class FoundLinks(NamedTuple):
    """The links of one page, or of the start list (``page_id`` None); their URLs get ``depth``.

    ``canonicals`` are canonical links: they get the depth of the page itself, one less. ``discarded`` are the links
    that a rewriter discards (K1). ``is_normalised`` tells whether the ``links`` were rewritten already. ``referrer_id``
    is the row that led to the links, if that is not the page. With ``only_counted`` those of the ``links`` that lead to
    hosts outside, or are refused for ``scope.max_urls``, get no row. ``unfollowed`` are links that the page says are not
    to be followed, by ``nofollow``; those of ``links`` say so themselves. ``title`` is that of the page. ``refusals`` are rules
    by which URLs among the ``links`` are refused before any other is asked.
    """

    page_id: int | None
    depth: int
    links: Sequence[Link]
    canonicals: Sequence[Link] = ()
    discarded: Sequence[NormalisedUrl] = ()
    is_normalised: bool = False
    referrer_id: int | None = None
    only_counted: bool = False
    unfollowed: Sequence[Link] = ()
    nofollow: Nofollow = Nofollow.REL
    title: str = ""
    refusals: Mapping[str, str] | None = None


@dataclass(slots=True)
class _Group:
    """What one call of ``admit`` finds; it is remembered once the transaction is committed.

    ``new_hosts`` are the hosts with new rows to fetch, ``ids`` the row ids of all keys, ``depths`` the depths of the keys that were looked up or are new, ``said`` the
    texts of the links of each page by keys.
    """

    depths: dict[int, int] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    discarded: dict[int, int] = field(default_factory=dict)
    said: dict[int, LinkTexts] = field(default_factory=dict)
    new_hosts: set[int] = field(default_factory=set)
    discovered: int = 0
    notes_change: bool = False


#: A new row takes a kilobyte while it is written, and a page may have hundreds of thousands of links (X-R13).
_ROWS_AT_ONCE: Final = 10_000
_MAX_DISCARDED: Final = 100_000
#: How many overlong URLs of a group are logged; every one has its row.
_MAX_LOGGED: Final = 10


class Admission:
    """Admits links for one source; used by the writer thread, and by the helper thread that opens the writer.

    After the transaction ``note_commit()`` or ``note_rollback()`` has to be called.
    """

    def __init__(
        self, *, source_id: int, boundary: Boundary, max_urls: int, known_urls: int, traps: TrapWatch | None = None
    ) -> None:
        self._traps = traps
        self._source_id = source_id
        self._boundary = boundary
        #: keys of rows that rewriters discarded
        self._discarded: set[int] = set()
        self._max_urls = max_urls
        self._count = known_urls
        self._memory = UrlMemory()
        self._refused = RefusedLinks(source_id)
        self._unfollowed = UnfollowedLinks(source_id, boundary)
        #: whether a transaction of the run has noted that texts of links may be other ones
        self._noted_change = False
        self._group = _Group()
        #: rows above the first id up to the second are still to be looked at after an edit (commit.review)
        self.unreviewed: tuple[int, int] | None = None

    @classmethod
    def of_run(cls, run: Run, traps: TrapWatch | None = None) -> Self:
        """That of a run; raises StoreError."""
        most = run.source.scope.max_urls
        known = run.read(run_table.count_urls, run.source_id, without=REFUSED) if most else 0
        found = cls(source_id=run.source_id, boundary=run.boundary, max_urls=most, known_urls=known, traps=traps)
        if run.source.kind.is_listed:
            # What is listed comes once, and is compared with the table before.
            found._memory = UrlMemory(0)
        return found

    def admit(self, transaction: Transaction, found: Sequence[FoundLinks]) -> None:
        """Admits the links of a group of pages."""
        group = self._group = _Group()
        self._unfollowed.begin()
        pages, wanted = self._collect(found)
        known = url_table.find_known(transaction, self._source_id, list(wanted))
        nearer = []
        for row in known:
            group.ids[row.key] = row.id
            group.depths[row.key] = row.depth
            if wanted[row.key].depth < row.depth:
                nearer.append((row, wanted[row.key]))
        self._reopen_found(transaction, known, wanted)
        self._note_found(transaction, known, wanted)
        parked = [row.id for row in known if row.rule == ORPHAN_RULE]
        if parked:
            orphan_table.note_named(transaction, parked, due_ms=0)
        fresh = [(key, link) for key, link in wanted.items() if key not in group.ids]
        for start in range(0, len(fresh), _ROWS_AT_ONCE):
            self._add(transaction, dict(fresh[start : start + _ROWS_AT_ONCE]))
        self._add_discarded(transaction, found)
        self._refused.store(transaction)
        if self._traps is not None:
            self._traps.store(transaction)
        reach("links.mid")
        self._store_outlinks(transaction, pages)
        self._unfollowed.store(transaction, pages)
        for row, link in nearer:
            group.depths[row.key] = link.depth
        self._lower_depths(transaction, {row.id: link.depth for row, link in nearer})

    def row_of(self, key: int) -> int:
        """The row id of a URL, by key, that the last call of ``admit`` admitted or refused."""
        return self._group.ids[key]

    def find_row(self, key: int) -> int | None:
        """The same; None for a URL that was only counted."""
        return self._group.ids.get(key)

    def note_commit(self) -> Collection[int]:
        """Remembers the rows of the last call; returns the hosts that have new rows to fetch."""
        if self._traps is not None:
            self._traps.note_commit()
        for key, depth in self._group.depths.items():
            self._memory.add(key, self._group.ids[key], depth)
        self._refused.note_commit(self._group.depths)
        if len(self._discarded) > _MAX_DISCARDED:
            self._discarded.clear()
        self._discarded.update(self._group.discarded)
        self._noted_change |= self._group.notes_change
        new_hosts = self._group.new_hosts
        self._group = _Group()
        return new_hosts

    def note_rollback(self) -> None:
        """Forgets the rows of the last call."""
        if self._traps is not None:
            self._traps.note_rollback()
        self._refused.note_rollback()
        self._count -= self._group.discovered
        self._group = _Group()

    def _collect(self, found: Sequence[FoundLinks]) -> tuple[dict[int, list[int]], dict[int, WantedLink]]:
        """Collects the keys of each page's links by page id, and the links that have to be looked up by key."""
        pages: dict[int, list[int]] = {}
        wanted: dict[int, WantedLink] = {}
        for one in found:
            referrer_id, refused = one.page_id or one.referrer_id, list[str]()
            needs_row = not one.only_counted
            keys = self._collect_links(referrer_id, one.depth, one.links, wanted, needs_row=needs_row, refused=refused)
            if one.canonicals:
                keys += self._collect_links(
                    one.page_id, one.depth - 1, one.canonicals, wanted, needs_row=True, refused=[]
                )
            for url, refusal in (one.refusals or {}).items():
                wanted[urls.key(url)].refusal = refusal
            if one.page_id is not None:
                pages[one.page_id] = keys
                self._group.said[one.page_id] = _collect_texts(one, keys)
                self._unfollowed.note(one.page_id, refused, Nofollow.REL)
                self._unfollowed.note(one.page_id, [link.url for link in one.unfollowed], one.nofollow)
        for key in wanted:
            # One page of the group links to it at a depth that is known, another page at a smaller one.
            self._group.ids.pop(key, None)
        return pages, wanted

    def _collect_links(
        self,
        referrer_id: int | None,
        depth: int,
        links: Sequence[Link],
        wanted: dict[int, WantedLink],
        *,
        needs_row: bool,
        refused: list[str],
    ) -> list[int]:
        """The keys of links, those to look up added to ``wanted``; ``refused`` gets those that may not be followed."""
        keys: list[int] = []
        ids, find_within, count_known = self._group.ids, self._memory.find_within, self._refused.count_known
        for url, nofollow, display, found_as, _ in links:
            if nofollow:
                refused.append(url)
                continue
            key = urls.key(url)
            keys.append(key)
            row = find_within(key, depth)
            if row is not None:
                ids[key] = row
                continue
            if not needs_row and count_known(key):
                continue
            link = wanted.get(key)
            if link is None:
                link = wanted[key] = WantedLink(url, depth, referrer_id, found_as, display)
            elif depth < link.depth:
                link.depth = depth
            if needs_row:
                link.needs_row = True
            else:
                link.links += 1
        return keys

    def _reopen_found(
        self, transaction: Transaction, known: Sequence[KnownUrl], wanted: Mapping[int, WantedLink]
    ) -> None:
        """Makes rows due that rewriters had discarded or changed, and that an allowed link now leads to."""
        opened = {
            row.id: (wanted[row.key].found_as, wanted[row.key].display)
            for row in known
            if row.fetch_state == FetchState.SETTLED
            and row.rule is not None
            and row.rule.startswith(_BY_REWRITERS)
            and self.decide(wanted[row.key].url, wanted[row.key].depth).allowed
        }
        if opened:
            review_table.set_found_as(transaction, opened)
            url_table.reopen(transaction, opened)

    def _note_found(
        self, transaction: Transaction, known: Sequence[KnownUrl], wanted: Mapping[int, WantedLink]
    ) -> None:
        """Has known rows that edited rules were not applied to yet judged by the link that leads to them now."""
        if self.unreviewed is not None:
            first, last = self.unreviewed
            found = ((row, wanted[row.key].found_as) for row in known if first < row.id <= last)
            review_table.note_found_as(transaction, {row.id: now for row, now in found if now != row.found_as})

    def _add(self, transaction: Transaction, fresh: dict[int, WantedLink]) -> None:
        # Start URLs are requested whatever their pattern is.
        traps = self._traps if self._traps is not None and self._traps.active else None
        if traps is not None:
            traps.prepare(transaction, (link.url for link in fresh.values() if link.depth))
        decided = [
            (key, link, _refuse(link.refusal) or self._decide(link.url, link.depth, _find_limit(traps, link)))
            for key, link in fresh.items()
        ]
        decided = [one for one in decided if not self._count_only(*one)]
        names = {key: urls.host_and_port(link.url) for key, link, _ in decided}
        hosts = host_table.find_or_add(transaction, set(names.values()))
        rows = [
            NewUrl(
                key=key,
                url=link.url,
                host_id=hosts[names[key]],
                depth=link.depth,
                referrer_id=link.referrer_id,
                code=0 if decision.allowed else refusal_code(decision),
                rule=None if decision.allowed else decision.text,
                found_as=link.found_as,
                display_url=link.display,
                lap=self._place(link) if decision.allowed else 0,
            )
            for key, link, decision in decided
        ]
        self._group.ids.update(url_table.add(transaction, self._source_id, rows, now_ms()))
        self._group.depths.update({row.key: row.depth for row in rows})
        self._group.new_hosts.update(row.host_id for row in rows if not row.code)
        overlong = [row.url for row in rows if row.code == Code.MALFORMED_URL]
        for url in overlong[:_MAX_LOGGED]:
            logger.info("%d: refused, %d characters: %.200s…", Code.MALFORMED_URL, len(url), url)

    def _place(self, link: WantedLink) -> int:
        """The lap of a new URL, 0 for most; notes who named it."""
        if self._traps is None or not link.depth:
            return 0
        self._traps.note_named(link.url, link.referrer_id)
        return 0 if link.referrer_id is None else self._traps.find_lap(link.url)

    def _count_only(self, key: int, link: WantedLink, decision: Decision) -> bool:
        """Counts the links to a URL that is refused without a row; False for any other."""
        counted = not decision.allowed and not link.needs_row
        counted = counted and (decision.key == MAX_URLS or self._boundary.is_elsewhere(link.url))
        if counted:
            self._refused.count(key, link.url, decision.text, link.links)
        return counted

    def _add_discarded(self, transaction: Transaction, found: Sequence[FoundLinks]) -> None:
        """Adds rows for links that rewriters discard, so that ``explain`` can say why; known rows stay as they are."""
        wanted: dict[int, tuple[NormalisedUrl, FoundLinks]] = {}
        for one in found:
            for dropped in one.discarded:
                key = urls.key(dropped.url)
                if key in self._group.ids or key in self._discarded:
                    continue
                if one.only_counted and self._boundary.is_elsewhere(dropped.url):
                    self._refused.count(key, dropped.url, dropped.decision.text, 1)
                else:
                    wanted.setdefault(key, (dropped, one))
        if not wanted:
            return
        known = {row.key: row.id for row in url_table.find_known(transaction, self._source_id, list(wanted))}
        names = {key: urls.host_and_port(dropped.url) for key, (dropped, _) in wanted.items() if key not in known}
        hosts = host_table.find_or_add(transaction, set(names.values()))
        rows = [
            NewUrl(
                key=key,
                url=dropped.url,
                host_id=hosts[names[key]],
                depth=one.depth,
                referrer_id=one.page_id,
                code=dropped.code,
                rule=dropped.decision.text,
                error=dropped.error,
            )
            for key, (dropped, one) in wanted.items()
            if key not in known
        ]
        # These keys are not remembered with the others: another page may have a link to the same URL that is kept.
        self._group.discarded = known | url_table.add(transaction, self._source_id, rows, now_ms())

    def decide(self, url: str, depth: int) -> Decision:
        """Decides whether a URL may be visited, by the boundary, ``max_urls`` and traps; counts it if so.

        The number of URLs of its pattern is counted later, when the row is claimed.
        """
        return self._decide(url, depth, self._traps.find_cut if self._traps is not None and depth else None)

    def _decide(self, url: str, depth: int, trapped: Callable[[str], Decision | None] | None) -> Decision:
        decision = self._boundary.decide(url, depth)
        if not decision.allowed:
            return decision
        if self._max_urls and self._count >= self._max_urls:
            return Decision(False, str(self._max_urls), decision.file, MAX_URLS)
        refusal = trapped(url) if trapped is not None else None
        if refusal is not None:
            return refusal
        self._count += 1
        self._group.discovered += 1
        return decision

    def _store_outlinks(self, transaction: Transaction, pages: dict[int, list[int]]) -> None:
        ids = self._group.ids
        targets = {page: [ids[key] for key in keys if key in ids] for page, keys in pages.items()}
        said = {
            page: found._replace(texts={ids[key]: texts for key, texts in found.texts.items() if key in ids})
            for page, found in self._group.said.items()
        }
        # Most redirects lead where they led before.
        if not self._noted_change and link_table.is_new(transaction, targets, said):
            anchor_table.note_change(transaction, self._source_id)
            self._group.notes_change = True
        link_table.store(transaction, targets, said)

    def _lower_depths(self, transaction: Transaction, nearer: dict[int, int]) -> None:
        """Lowers the depth of rows that were found at a smaller depth, and of all rows that their pages lead to."""
        while nearer:
            places = url_table.find_places(transaction, list(nearer))
            nearer = {url_id: depth for url_id, depth in nearer.items() if depth < places[url_id].depth}
            url_table.lower_depths(transaction, nearer)
            url_table.reopen(transaction, document_table.send_again(transaction, list(nearer)))
            refused = [url_id for url_id in nearer if _may_be_allowed(places[url_id])]
            opened = [url_id for url_id in refused if self.decide(places[url_id].url, nearer[url_id]).allowed]
            url_table.reopen(transaction, opened)
            following: dict[int, int] = {}
            for page, targets in link_table.load(transaction, list(nearer)).items():
                # The target of a redirect has the depth of the redirect.
                step = 0 if places[page].code in REDIRECTS else 1
                for target in targets:
                    depth = nearer[page] + step
                    following[target] = min(depth, following.get(target, depth))
            for page, target in duplicate_key_table.find_canonical_targets(transaction, list(nearer)).items():
                following[target] = min(nearer[page], following.get(target, nearer[page]))
            nearer = following


def _refuse(refusal: str | None) -> Decision | None:
    """The decision of a rule that was asked already, as ``KEY: RULE``."""
    if refusal is None:
        return None
    key, _, rule = refusal.partition(": ")
    return Decision(False, rule, key=key)


def _find_limit(traps: TrapWatch | None, link: WantedLink) -> Callable[[str], Decision | None] | None:
    """What may refuse a link as one of a trap: nothing where a start list names it, less where a sitemap does."""
    if traps is None or not link.depth:
        return None
    return partial(traps.admit, listed=link.referrer_id is None)


def _collect_texts(found: FoundLinks, keys: Sequence[int]) -> LinkTexts:
    """The title of a page and the texts of its links, by key; the ``keys`` of those that are followed come first."""
    followed = (link for link in found.links if not link.nofollow)
    texts: dict[int, tuple[str, ...]] = {}
    for key, link in zip(keys, followed, strict=False):
        if link.texts:
            texts[key] = texts.get(key, ()) + link.texts
    return LinkTexts(found.title, texts)


_MAX_REMEMBERED: Final = 50_000


class RefusedLinks:
    """Counts refused links of a source by rule and host, and remembers their URLs: they cost no query again.

    After the transaction ``note_commit()`` or ``note_rollback()`` has to be called.
    """

    def __init__(self, source_id: int) -> None:
        self._source_id = source_id
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}
        self._known: dict[int, tuple[str, str]] = {}
        self._new: dict[int, tuple[str, str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def count_known(self, key: int) -> bool:
        """Counts a link to a URL that was refused before; False if it is not remembered."""
        pair = self._known.get(key)
        if pair is not None:
            self._counts[pair] += 1
        return pair is not None

    def count(self, key: int, url: str, rule: str, links: int) -> None:
        """Counts links to a URL that ``rule`` refuses; ``key`` is the URL's."""
        pair = (rule, urls.shown_host(url))
        self._new[key] = pair = self._pairs.setdefault(pair, pair)
        self._counts[pair] += links

    def store(self, transaction: Transaction) -> None:
        """Writes what was counted since the last commit."""
        link_table.add_refused(transaction, self._source_id, self._counts)

    def note_commit(self, with_rows: Iterable[int]) -> None:
        """Remembers the URLs of the last transaction, and forgets those that have a row, by key."""
        if len(self._known) > _MAX_REMEMBERED:
            self._known.clear()
            self._pairs.clear()
        self._known.update(self._new)
        for key in with_rows:
            self._known.pop(key, None)
        self.note_rollback()

    def note_rollback(self) -> None:
        """Forgets what the last transaction counted."""
        self._new = {}
        self._counts = Counter()


#: How many bits of a packed entry are the depth.
_DEPTH_BITS: Final = 16
_DEPTH_MASK: Final = (1 << _DEPTH_BITS) - 1


class UrlMemory:
    """A bounded memory of known URLs, so that known links cost no query (F1): key → row id and depth.

    It has two generations. When the young one is full it becomes the old one, and the old one is dropped. A URL that is
    looked up moves to the young one, so URLs that are not looked up are dropped. A URL takes about 130 bytes.

    Only committed rows may be added: if the transaction of a row was rolled back, links to its key would be lost.
    """

    def __init__(self, limit: int = 400_000) -> None:
        self._half = limit // 2
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def find_within(self, key: int, depth: int) -> int | None:
        """The row id; None if the URL is not remembered, or only with more than ``depth``."""
        packed = self._young.get(key)
        if packed is None:
            packed = self._old.get(key)
            if packed is None:
                return None
            self._keep(key, packed)
        return packed >> _DEPTH_BITS if packed & _DEPTH_MASK <= depth else None

    def add(self, key: int, url_id: int, depth: int) -> None:
        """Remembers a committed row."""
        self._keep(key, url_id << _DEPTH_BITS | min(depth, _DEPTH_MASK))

    def _keep(self, key: int, packed: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = packed


class UnfollowedLinks:
    """Collects such links of the pages of a source, group by group.

    Those to hosts outside are left out: the boundary refuses them in any case.
    """

    def __init__(self, source_id: int, boundary: Boundary) -> None:
        self._source_id = source_id
        self._boundary = boundary
        self._found: list[Unfollowed] = []
        #: how many bytes the table may still take, None if it was not asked yet; and whether it may have any links
        self._room: int | None = None
        self._any = False

    def begin(self) -> None:
        """Forgets what was collected: a group begins, or a transaction is repeated."""
        self._found = []

    def note(self, page_id: int, targets: Sequence[str], kind: Nofollow) -> None:
        """Notes the targets of links of a page that are not followed."""
        if not targets:
            return
        inside = (url for url in targets if not self._boundary.is_elsewhere(url))
        keys = [urls.key(url) for url in islice(inside, MOST_TARGETS)]
        if keys:
            cut = next(inside, None) is not None
            self._found.append(Unfollowed(page_id, kind, keys, cut))

    def store(self, transaction: Transaction, pages: Collection[int]) -> None:
        """Writes what was collected, in place of what is known of ``pages``, by id."""
        if self._room is None:
            size = link_table.measure_unfollowed(transaction, self._source_id)
            self._any, self._room = size is not None, link_table.MOST_BYTES - (size or 0)
        if self._any and pages:
            link_table.forget_unfollowed(transaction, list(pages))
        found = []
        for one in self._found:
            size = len(one.keys) * BYTES
            found.append(one if size <= self._room else one._replace(keys=(), cut=True))
            # What pages have no longer makes room for the next run.
            self._room -= size if size <= self._room else 0
        link_table.add_unfollowed(transaction, self._source_id, found)
        self._any |= bool(found)
