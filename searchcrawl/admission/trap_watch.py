"""Watches the URL patterns of a source for traps: sets of pages that make their own pages without end (L8, L12, F5).

A pattern is a set of URLs that differ only in numbers, ids and parameter values (rules.traps). One that grows as fast as it
is visited is visited last, after all other URLs: that refuses nothing, and a finite set of pages ends by itself. If a
pattern goes on growing then, if its own pages alone name what is new, and if they hold no text of their own (rules.traps),
it is ended after ``scope.trap_after`` more pages: its URLs that were never fetched are refused with 961, and documents of its
pages without own text that no index has are withheld. Files in archives are no trap: there are no more of them than one
archive may have.

Whether a pattern grows by itself is told from what its pages name, beside how many of them are visited. A finite set of
pages ends: its pages name fewer and fewer new URLs of it. A trap makes its own pages: nearly each page of it names a new
one, however many were visited.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from searchcrawl.codes import NEVER_REQUESTED, REFUSED, Code
from searchcrawl.items import ARCHIVE_ETAG, Claim, Document, Outcome
from searchcrawl.rules.archives import list_archives
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.traps import (
    BARE,
    PRODUCTIVE_PAGES,
    WITH_TEXT,
    KnownText,
    Level,
    Pattern,
    Span,
    WatchedPattern,
    build_counted_pattern,
    find_among,
    find_pattern,
    find_patterns,
    is_of_hosts,
)
from searchcrawl.store.documents import document_queries
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import pattern_table
from searchcrawl.store.urls.pattern_table import StoredPattern

logger = logging.getLogger(__name__)

TRAP_AFTER: Final = "scope.trap_after"
MAX_URLS: Final = "scope.max_urls_per_pattern"
#: A span is ``trap_after`` pages divided by this.
_SPANS: Final = 8
#: After so many spans in which it grew, and whose pages had no text of their own, a pattern is visited last; after so many in
#: which it grew by itself whatever text they had.
_BARE_SPANS: Final = 2
_OWN_SPANS: Final = 4
#: A pattern of whole hosts needs so many times as many pages.
_HOST_FACTOR: Final = 2
#: A page with this share of own text has some, one with less has none.
_MOSTLY_OWN: Final = 0.5
#: URLs that are visited last wait in laps: so many of each pattern, then the next so many of each.
_LAP: Final = 32
#: Patterns without own text may take, all together, this share of the visits of a run, and at least so many times ``trap_after``;
#: then each is ended after a span of its own.
_SHARE_OF_RUN: Final = 0.2
_LEAST_FACTOR: Final = 2
#: So many URLs that are visited last may be under way even where fewer visits are left before a pattern is ended.
_FEWEST_AT_LAST: Final = 8
_UNLIMITED: Final = 1_000_000
_MAX_PATTERNS: Final = 20_000
_MAX_COUNTS: Final = 100_000
_MAX_WARNINGS: Final = 20


class _Visit(NamedTuple):
    """A page of the group that was fetched for the first time: its patterns, and its share of own text."""

    url_id: int
    patterns: list[Pattern]
    share: float


class TrapWatch:
    """The patterns of one source in one run; a limit of 0 is none.

    ``prepare``, ``admit``, ``observe`` and ``store`` are called by the writer thread, or by the one that opens it; ``note_commit`` or
    ``note_rollback`` follows each transaction. ``refuse`` may be called by any thread, ``split_claims`` within any
    transaction that writes; ``patterns_put_off`` and ``room_at_last`` may be read by any. ``open`` is called by the helper
    thread that opens the writer, ``recall`` by ``explain`` too.
    """

    def __init__(self, source_id: int, *, trap_after: int, max_urls_per_pattern: int, file: str = "") -> None:
        self._source_id = source_id
        self._trap_after = trap_after
        self._step = max(1, trap_after // _SPANS)
        self._max_urls = max_urls_per_pattern
        self._file = file
        self._known = KnownText()
        self._patterns: dict[str, WatchedPattern] = {}
        self._cuts: set[str] = set()
        self._last: set[str] = set()
        self._productive: set[str] = set()
        # Those that are productive or visited last: where a wider pattern is ended, they are judged by themselves.
        self._apart: set[str] = set()
        # Patterns of any page with text of its own: they are spared where a whole host is visited last.
        self._spared: set[str] = set()
        self._visits = self._visits_at_last = 0
        # Whether nothing else was left once: what came of a pattern before that says nothing of whether it goes on at last.
        self._has_begun_last = False
        self._group: list[_Visit] = []
        self._named: list[tuple[str, int | None]] = []
        self._pending: dict[str, StoredPattern] = {}
        self._withholds = False
        #: whether patterns were ended since the last commit, which ``store`` is to write
        self.has_ended = False
        #: so many URLs that are visited last may be under way: no more than visits are left before a pattern is ended
        self.room_at_last = self._most_at_last = max(trap_after, _FEWEST_AT_LAST) if trap_after else _UNLIMITED
        self._counts: dict[str, int] = {}
        self._counted: set[str] = set()
        #: rises with each pattern that is visited last from now on
        self.patterns_put_off = 0
        # Patterns that have reached the limit of URLs since the last commit.
        self._full: set[str] = set()
        self._warned: set[str] = set()

    @property
    def is_on(self) -> bool:
        """Whether patterns are watched."""
        return self._trap_after > 0

    @property
    def active(self) -> bool:
        """Whether any URL may be refused, or visited last."""
        return bool(self._cuts or self._last or self._max_urls)

    def open(self, transaction: Transaction, *, recount: bool = False) -> None:
        """Loads what earlier runs found, and forgets what was decided with other limits.

        With ``recount`` the URLs of each pattern are counted again.
        """
        for key, limit in ((TRAP_AFTER, self._trap_after), (MAX_URLS, self._max_urls)):
            pattern_table.forget_cuts(transaction, self._source_id, key=key, limit=limit)
        self.recall(transaction)
        self._withholds = bool(self._cuts)
        if recount and self._max_urls:
            self._recount(transaction)

    def recall(self, transaction: Transaction) -> None:
        """Loads what earlier runs found, without writing; ignores what was decided with other limits."""
        if self._trap_after:
            for row in pattern_table.load(transaction, self._source_id, with_shares=True):
                self._load_pattern(row)

    def refuse(self, claim: Claim) -> Decision | None:
        """Returns why a row must not be requested, or None; start URLs and rows fetched before are allowed."""
        return self.find_cut(claim.url) if _is_new(claim) else None

    def find_cut(self, url: str) -> Decision | None:
        """Returns the refusal by the ended pattern that a URL belongs to; None if it belongs to none."""
        text = find_pattern(url, self._cuts, self._apart, self._spared) if self._cuts else None
        return None if text is None else Decision(False, text, self._file, TRAP_AFTER)

    def find_last(self, url: str) -> str | None:
        """The pattern that a URL belongs to and whose URLs are visited last; None without one."""
        return find_pattern(url, self._last, self._productive, self._spared) if self._last else None

    def find_lap(self, url: str) -> int:
        """In which lap a new URL is visited, after all others; 0: it is not visited last."""
        text = self.find_last(url)
        if text is None:
            return 0
        # Called in another thread than that which adds patterns; those that are visited last are never dropped.
        pattern = self._patterns.get(text)
        if pattern is None:
            return 1
        pattern.queued += 1
        return 1 + pattern.queued // _LAP

    def split_claims(
        self, transaction: Transaction, claims: Sequence[Claim], *, at_last: bool
    ) -> tuple[list[Claim], list[tuple[Claim, Decision]], list[tuple[Claim, int]]]:
        """Splits claims into those that may be requested, those that may not, and those of a lap.

        The second have their refusals, the third their laps, unless they are claimed ``at_last``.
        """
        self._has_begun_last |= at_last
        allowed: list[Claim] = []
        refused: list[tuple[Claim, Decision]] = []
        last: list[tuple[Claim, int]] = []
        for claim in claims:
            decision = self.refuse(claim)
            if decision is None and self._max_urls and claim.code and _is_new(claim):
                # A URL that was refused before was not counted then.
                decision = self._count_claim(transaction, claim.url)
            if decision is not None:
                refused.append((claim, decision))
            elif not at_last and _is_new(claim) and (lap := self.find_lap(claim.url)):
                last.append((claim, lap))
            else:
                allowed.append(claim)
        return allowed, refused, last

    # Admission

    def prepare(self, transaction: Transaction, urls: Iterable[str]) -> None:
        """Loads how many URLs the patterns of ``urls`` have; to be called before ``admit`` for new URLs."""
        if self._max_urls:
            texts = {text for text in map(build_counted_pattern, urls) if text is not None} - self._counts.keys()
            self._counts |= pattern_table.count_urls(transaction, self._source_id, sorted(texts))

    def admit(self, url: str, *, listed: bool = False) -> Decision | None:
        """Counts a new URL; returns why it is refused, or None. ``listed``: no page names it, but a sitemap or a user."""
        decision = None if listed else self.find_cut(url)
        if decision is None and self._max_urls:
            text = build_counted_pattern(url)
            if text is not None:
                if self._counts[text] >= self._max_urls:
                    self._full.add(text)
                    return self._build_refusal(text)
                self._counts[text] += 1
                self._counted.add(text)
        return decision

    def note_named(self, url: str, referrer_id: int | None) -> None:
        """Notes a URL that nobody had named before, and the row of the page that names it."""
        if self._trap_after:
            self._named.append((url, referrer_id))

    def _build_refusal(self, text: str) -> Decision:
        return Decision(False, f"max_urls_per_pattern = {self._max_urls} of {text}", self._file, MAX_URLS)

    def _count_claim(self, transaction: Transaction, url: str) -> Decision | None:
        text = build_counted_pattern(url)
        if text is None:
            return None
        number = pattern_table.count_urls(transaction, self._source_id, [text])[text]
        if number >= self._max_urls:
            pattern_table.mark_full(transaction, self._source_id, [text], key=MAX_URLS, limit=self._max_urls)
            return self._build_refusal(text)
        pattern_table.set_counts(transaction, self._source_id, {text: number + 1})
        # The table has a newer number now than the memory.
        self._counts.pop(text, None)
        return None

    def _recount(self, transaction: Transaction) -> None:
        numbers: dict[str, int] = {}
        refused = sorted(REFUSED)
        for url in pattern_table.list_urls(transaction, self._source_id, without=refused):
            text = build_counted_pattern(url)
            if text is not None:
                numbers[text] = numbers.get(text, 0) + 1
        pattern_table.forget_counts(transaction, self._source_id)
        pattern_table.set_counts(transaction, self._source_id, numbers)

    # Observing

    def observe(self, items: Sequence[Document | Outcome]) -> Collection[int]:
        """Looks at the pages of a group that were fetched for the first time; the rows of those without text of their own."""
        self._group = []
        if not self._trap_after:
            return ()
        for item in items:
            if (
                isinstance(item, Document)
                and item.page is not None
                and item.claim.fields_digest is None
                and not _is_in_archive(item)
            ):
                url, page = item.claim.url, item.page
                share = self._known.measure(url, page.title, page.text, page.links)
                self._group.append(_Visit(item.claim.url_id, find_patterns(url), share))
        bare = [visit for visit in self._group if visit.share < WITH_TEXT]
        if self._cuts:
            # They were under way when their pattern was ended.
            self._withholds |= any(
                find_among(visit.patterns, self._cuts, self._apart, self._spared) is not None for visit in bare
            )
        return {visit.url_id for visit in bare}

    def take_withholding(self) -> bool:
        """Whether documents of ended patterns may be there that are to be withheld; False once it was asked."""
        found, self._withholds = self._withholds, False
        return found

    def _look_at_group(self) -> None:
        """Counts what was visited and named, and decides about the patterns for which that is enough."""
        if self._group:
            self.room_at_last = self._most_at_last
        visits = {visit.url_id for visit in self._group}
        named: dict[int, list[str]] = {}
        for url, referrer in self._named:
            if referrer in visits:
                named.setdefault(referrer, []).append(url)
            else:
                self._count_named(url, ())
        for visit in self._group:
            self._visits += 1
            found = named.get(visit.url_id, [])
            touched = self._count_visit(visit, bool(found))
            own = [text for _, text in visit.patterns]
            for url in found:
                self._count_named(url, own)
            for level, name in touched:
                # One of few pages may have been dropped meanwhile.
                if (pattern := self._patterns.get(name)) is not None:
                    self._decide(name, level, pattern)
        self._group, self._named = [], []

    def _count_visit(self, visit: _Visit, names_new: bool) -> list[Pattern]:
        """Counts a page for its patterns; returns those for which it counts."""
        counted: list[Pattern] = []
        at_last = find_among(visit.patterns, self._last, self._productive, self._spared)
        for level, name in visit.patterns:
            if name in self._cuts:
                break
            has_text = visit.share >= _MOSTLY_OWN and level < Level.HOST
            if has_text and len(self._spared) < _MAX_PATTERNS:
                self._spared.add(name)
            pattern = self._find_or_add(name)
            if pattern.last is not None and name != at_last:
                # A narrower pattern has text of its own: it is visited among all others.
                continue
            pattern.add_share(visit.share, most=self._trap_after)
            counted.append(Pattern(level, name))
            if at_last is None or (name == at_last and self._has_begun_last):
                span = pattern.last or pattern.span
                span.pages += 1
                span.naming += names_new
            if name == at_last:
                self._visits_at_last += self._has_begun_last and visit.share < WITH_TEXT
                break
        return counted

    def _count_named(self, url: str, referrer: Collection[str]) -> None:
        patterns = find_patterns(url)
        at_last = find_among(patterns, self._last, self._productive, self._spared)
        if at_last is not None and not self._has_begun_last:
            return
        for _, name in patterns:
            pattern = self._patterns.get(name)
            if pattern is None or (at_last is not None and name != at_last) or (at_last is None and pattern.last):
                continue
            span = pattern.last or pattern.span
            span.named += 1
            # What patterns that grow name of each other, they make together.
            span.outside += name not in referrer and not any(map(self._is_growing, referrer))

    def _is_growing(self, name: str) -> bool:
        pattern = self._patterns.get(name)
        return pattern is not None and (pattern.last is not None or pattern.grown >= _SPANS // 2)

    def _decide(self, name: str, level: Level, pattern: WatchedPattern) -> None:
        """Decides after a page whether a pattern is visited last, ended, productive, or only watched further."""
        if pattern.last is not None:
            self._decide_at_last(name, pattern, pattern.last)
            return
        has_text = pattern.pages >= PRODUCTIVE_PAGES and pattern.mean_of(self._trap_after) >= WITH_TEXT
        if has_text and level < Level.HOST and name not in self._productive:
            self._note(name, pattern)
        if pattern.span.pages < self._step:
            return
        pattern.end_span()
        spans = _BARE_SPANS * (_HOST_FACTOR if level >= Level.HOST else 1)
        is_bare = pattern.grown >= spans and pattern.mean_of(spans * self._step) < BARE
        makes_itself = level < Level.HOST and pattern.grown_by_itself >= _OWN_SPANS
        if is_bare or makes_itself:
            self._put_off(name, pattern)
        if pattern.grown:
            self._note(name, pattern)

    def _put_off(self, name: str, pattern: WatchedPattern) -> None:
        """Has a pattern be visited last from now on: it need not be written before, for it refuses nothing."""
        pattern.last = Span()
        self._add_to(self._last, name)
        self.patterns_put_off += 1
        logger.info("URL looping: %s names its own URLs as fast as it is visited: it is visited last", name)

    def _decide_at_last(self, name: str, pattern: WatchedPattern, span: Span) -> None:
        enough = self._trap_after
        left = max(_LEAST_FACTOR * self._trap_after, _SHARE_OF_RUN * self._visits) - self._visits_at_last
        if left < 0:
            enough = self._step
        if span.pages < enough:
            if left > 0 and span.grew_by_itself:
                self.room_at_last = max(_FEWEST_AT_LAST, min(self.room_at_last, enough - span.pages, int(left)))
            if pattern.pages - pattern.noted >= self._step:
                self._note(name, pattern)
            return
        if span.grew_by_itself and pattern.mean_of(self._trap_after) < BARE:
            self._note(name, pattern, cut=True)
        elif span.pages >= self._trap_after:
            pattern.last = Span()
            self._note(name, pattern)

    def _note(self, name: str, pattern: WatchedPattern, *, cut: bool = False) -> None:
        last, pattern.noted = pattern.last, pattern.pages
        self.has_ended |= cut
        self._pending[name] = StoredPattern(
            text=name,
            pages=pattern.pages,
            own_permille=round(1000 * pattern.mean_of(self._trap_after)),
            cut=TRAP_AFTER if cut else None,
            cut_limit=self._trap_after if cut or last is not None else None,
            shares=None if cut else bytes(pattern.shares),
            grown=pattern.grown,
            last_pages=None if last is None else last.pages,
            last_naming=0 if last is None else last.naming,
            last_named=0 if last is None else last.named,
            last_outside=0 if last is None else last.outside,
        )

    def _add_to(self, patterns: set[str], name: str) -> None:
        patterns.add(name)
        self._apart.add(name)

    def _find_or_add(self, name: str) -> WatchedPattern:
        pattern = self._patterns.get(name)
        if pattern is None:
            if len(self._patterns) >= _MAX_PATTERNS:
                self._drop_rare_patterns()
            pattern = self._patterns[name] = WatchedPattern()
        return pattern

    def _drop_rare_patterns(self) -> None:
        kept = {name: pattern for name, pattern in self._patterns.items() if pattern.pages > 1 or pattern.last}
        if len(kept) >= _MAX_PATTERNS // 2:
            kept = {name: pattern for name, pattern in kept.items() if pattern.grown or pattern.last}
        self._patterns = kept

    def _load_pattern(self, row: StoredPattern) -> None:
        if row.cut == TRAP_AFTER and row.cut_limit != self._trap_after:
            return
        if row.cut == TRAP_AFTER and is_of_hosts(row.text):
            # Another run may find pages there that are none of the trap: they are visited last, and it is judged anew.
            self._find_or_add(row.text).last = Span()
            self._add_to(self._last, row.text)
            return
        if row.cut == TRAP_AFTER:
            self._cuts.add(row.text)
            return
        if row.has_text:
            self._add_to(self._productive, row.text)
        if row.shares is None:
            return
        pattern = self._find_or_add(row.text)
        pattern.pages, pattern.grown = row.pages, row.grown
        pattern.shares[:] = row.shares
        if row.last_pages is not None and row.cut_limit == self._trap_after:
            pattern.last = Span(row.last_pages, row.last_naming, row.last_named, row.last_outside)
            self._add_to(self._last, row.text)

    # The transaction of a group

    def store(self, transaction: Transaction) -> None:
        """Writes what was found since the last commit."""
        pattern_table.store(transaction, self._source_id, list(self._pending.values()))
        pattern_table.set_counts(transaction, self._source_id, {text: self._counts[text] for text in self._counted})
        fresh = self._full - self._warned
        pattern_table.mark_full(transaction, self._source_id, fresh, key=MAX_URLS, limit=self._max_urls)

    def note_commit(self) -> None:
        """Applies what was committed: from now on ended patterns refuse URLs. Then looks at the pages of the group."""
        for row in self._pending.values():
            if row.cut:
                self._cuts.add(row.text)
                self._last.discard(row.text)
                self._productive.discard(row.text)
                self._apart.discard(row.text)
                self._patterns.pop(row.text, None)
                self._withholds = True
                logger.warning(
                    "URL looping: %s is ended: %s (%s); URLs of it that were not fetched yet are refused (%d)",
                    row.text,
                    row.describe(),
                    TRAP_AFTER,
                    Code.TRAP_LIMIT,
                )
                continue
            if row.has_text:
                self._add_to(self._productive, row.text)
        self._pending, self.has_ended = {}, False
        for text in sorted(self._full - self._warned):
            self._warned.add(text)
            if len(self._warned) <= _MAX_WARNINGS:
                logger.warning(
                    "URL looping: %s has %d URLs (%s); no more are requested", text, self._max_urls, MAX_URLS
                )
        self._full = set()
        self._counted = set()
        if len(self._counts) > _MAX_COUNTS:
            self._counts = {}
        self._look_at_group()

    def note_rollback(self) -> None:
        """Forgets what was counted since the last commit."""
        for text in self._counted:
            self._counts.pop(text, None)
        self._counted = set()
        self._full = set()
        self._named = []


def _is_new(claim: Claim) -> bool:
    """Whether limits on traps apply to a row: no start page or sitemap names it, it was never fetched, and has no document."""
    return claim.depth > 0 and claim.code in NEVER_REQUESTED and not claim.is_known and claim.sitemap_id is None


def _is_in_archive(document: Document) -> bool:
    # A server may send any ETag.
    was_read_from_one = (document.etag or "").startswith(ARCHIVE_ETAG)
    return bool(list_archives(document.claim.url, in_archive=was_read_from_one))


class TrappedDocument(NamedTuple):
    """The URL of a document without text of its own, and the ended pattern that it belongs to."""

    url: str
    pattern: str


def list_trapped(transaction: Transaction, source_id: int) -> Iterator[TrappedDocument]:
    """Lists them, by rising row id.

    Not those of patterns of whole hosts: what was spared of these is known to the run alone that ended them.
    """
    patterns = pattern_table.load(transaction, source_id)
    ended = {row.text for row in patterns if row.cut is not None and row.pages and not is_of_hosts(row.text)}
    apart = {row.text for row in patterns if row.has_text or (row.cut is None and row.last_pages is not None)}
    for url in document_queries.list_bare_indexed(transaction, source_id) if ended else ():
        text = find_pattern(url, ended, apart)
        if text is not None:
            yield TrappedDocument(url, text)
