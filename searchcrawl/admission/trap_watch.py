"""Watches the URL patterns of a source for traps: how much new text their pages bring, and how many URLs they have.

A pattern is a set of URLs that differ only in numbers, ids and parameter values (rules.traps). If the last pages of a
pattern brought almost no new text, the pattern is cut: its URLs that were never fetched are refused with 961 (L8, F5).
Files in archives are no trap: there are no more of them than one archive may have.
Links cost nothing as long as no pattern is cut or limited. The "ratio" is the new-content ratio of a page.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from searchcrawl.codes import NEVER_REQUESTED, REFUSED, Code
from searchcrawl.items import ARCHIVE_ETAG, Claim, Document, Outcome
from searchcrawl.rules.archives import list_archives
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.new_content import KnownLines, NewContent, PageText
from searchcrawl.rules.traps import Level, build_counted_pattern, find_cut, find_patterns
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import pattern_table
from searchcrawl.store.urls.pattern_table import StoredPattern

logger = logging.getLogger(__name__)

TRAP_AFTER: Final = "scope.trap_after"
MAX_URLS: Final = "scope.max_urls_per_pattern"
#: A pattern is cut if the mean ratio of its last pages is below this.
_CUT_RATIO: Final = 0.05
#: A pattern with a mean ratio of at least this is productive: it stays when a wider pattern is cut.
_PRODUCTIVE_RATIO: Final = 0.15
#: If a page has at least this ratio, the next _PAGES_PER_COMPARISON - 1 pages of its pattern are compared roughly.
_MOSTLY_NEW_RATIO: Final = 0.5
_PAGES_PER_COMPARISON: Final = 48
#: The ratio 1 in its stored form, a byte.
_STORED_ONE: Final = 255
#: The first pages of a pattern are also counted for the next wider pattern, the later ones are not. Their number is
#: ``trap_after`` divided by this, by the level of the wider pattern. Below the level HOST it is at least _LEAST_PART.
_LEAST_PART: Final = 5
_PART_OF: Final = {Level.FACETS: 8, Level.BRANCH: 8, Level.HOST: 20, Level.HOSTS: 20}
#: The first pages of a pattern are not compared: most patterns have no more. Their number is ``trap_after`` divided by
#: this.
_SKIPPED_PART: Final = 10
#: A host is cut only after this many times ``trap_after`` pages; its productive patterns stay.
_HOST_FACTOR: Final = 10
#: A host whose mean ratio is low is suspected. Its patterns are cut after fewer pages, but not after fewer than this.
_FEWEST_PAGES: Final = 10
_MAX_PATTERNS: Final = 20_000
#: The number of patterns whose text is kept in memory, at most half a megabyte each.
_MAX_WATCHED: Final = 128
_MAX_COUNTS: Final = 100_000
_MAX_WARNINGS: Final = 20


@dataclass(slots=True)
class _Pattern:
    """The number of pages of a pattern, and the ratios of the last ones."""

    pages: int = 0
    #: compares a page with earlier pages of the pattern; None while the pattern is not watched
    new_content: NewContent | None = None
    #: the ratios of the last pages, each as a byte (255 is 1), rounded up
    shares: bytearray = field(default_factory=bytearray)
    #: how many more pages are compared roughly before one is compared in full
    pages_until_comparison: int = 0

    @property
    def mean(self) -> float:
        """The mean ratio of the last pages; 1 if none is known."""
        return self.mean_of(len(self.shares))

    def mean_of(self, last: int) -> float:
        """The mean ratio of the ``last`` pages."""
        return sum(self.shares[-last:]) / (_STORED_ONE * last) if last else 1.0


class TrapWatch:
    """The patterns of one source in one run; a limit of 0 is none.

    ``prepare``, ``admit``, ``observe`` and ``store`` are called by the writer thread, or by the one that opens it; ``note_commit`` or
    ``note_rollback`` follows each transaction. ``refuse`` may be called by any thread, ``split_refused`` within any
    transaction that writes. ``open`` is called by the helper thread that opens the writer, ``recall``
    by ``explain`` too.
    """

    def __init__(self, source_id: int, *, trap_after: int, max_urls_per_pattern: int, file: str = "") -> None:
        self._source_id = source_id
        self._trap_after = trap_after
        self._max_urls = max_urls_per_pattern
        self._file = file
        self._known_lines = KnownLines()
        self._patterns: dict[str, _Pattern] = {}
        self._watched: OrderedDict[str, _Pattern] = OrderedDict()
        self._suspected_hosts: set[str] = set()
        self._cuts: set[str] = set()
        self._productive: set[str] = set()
        self._pending: dict[str, StoredPattern] = {}
        self._counts: dict[str, int] = {}
        self._counted: set[str] = set()
        # Patterns that have reached the limit of URLs since the last commit.
        self._full: set[str] = set()
        self._warned: set[str] = set()

    @property
    def active(self) -> bool:
        """Whether any URL may be refused."""
        return bool(self._cuts or self._max_urls)

    def open(self, transaction: Transaction, *, recount: bool = False) -> None:
        """Loads what earlier runs found, and forgets cuts that were made with other limits.

        With ``recount`` the URLs of each pattern are counted again.
        """
        for key, limit in ((TRAP_AFTER, self._trap_after), (MAX_URLS, self._max_urls)):
            pattern_table.forget_cuts(transaction, self._source_id, key=key, limit=limit)
        self.recall(transaction)
        if recount and self._max_urls:
            self._recount(transaction)

    def recall(self, transaction: Transaction) -> None:
        """Loads what earlier runs found, without writing; ignores cuts that were made with other limits."""
        if self._trap_after:
            for row in pattern_table.load(transaction, self._source_id, with_shares=True):
                self._load_pattern(row)

    def refuse(self, claim: Claim) -> Decision | None:
        """Returns why a row must not be requested, or None; start URLs and rows fetched before are allowed."""
        return self.find_cut(claim.url) if _is_new(claim) else None

    def find_cut(self, url: str) -> Decision | None:
        """Returns the refusal by the cut pattern that a URL belongs to; None if it belongs to none."""
        text = find_cut(url, self._cuts, self._productive) if self._cuts else None
        return None if text is None else Decision(False, text, self._file, TRAP_AFTER)

    def split_refused(
        self, transaction: Transaction, claims: Sequence[Claim]
    ) -> tuple[list[Claim], list[tuple[Claim, Decision]]]:
        """Splits claims into those that may be requested and those that may not, each with its refusal."""
        allowed, refused = [], []
        for claim in claims:
            decision = self.refuse(claim)
            if decision is None and self._max_urls and claim.code and _is_new(claim):
                # A URL that was refused before was not counted then.
                decision = self._count_claim(transaction, claim.url)
            if decision is None:
                allowed.append(claim)
            else:
                refused.append((claim, decision))
        return allowed, refused

    # Admission

    def prepare(self, transaction: Transaction, urls: Iterable[str]) -> None:
        """Loads how many URLs the patterns of ``urls`` have; to be called before ``admit`` for new URLs."""
        if self._max_urls:
            texts = {text for text in map(build_counted_pattern, urls) if text is not None} - self._counts.keys()
            self._counts |= pattern_table.count_urls(transaction, self._source_id, sorted(texts))

    def admit(self, url: str) -> Decision | None:
        """Counts a new URL; returns why it is refused, or None."""
        decision = self.find_cut(url)
        if decision is None and self._max_urls:
            text = build_counted_pattern(url)
            if text is not None:
                if self._counts[text] >= self._max_urls:
                    self._full.add(text)
                    return self._build_refusal(text)
                self._counts[text] += 1
                self._counted.add(text)
        return decision

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

    def observe(self, items: Sequence[Document | Outcome]) -> None:
        """Compares the pages of a group that were fetched for the first time."""
        if not self._trap_after:
            return
        for item in items:
            if (
                isinstance(item, Document)
                and item.page is not None
                and item.claim.fields_digest is None
                and not _is_in_archive(item)
            ):
                text = f"{item.page.title}\n{item.page.all_text}"
                self._observe_page(self._known_lines.add_page(item.claim.url, text, item.fields_digest))

    def _observe_page(self, page: PageText) -> None:
        patterns = find_patterns(page.url)
        suspected = any(name in self._suspected_hosts for level, name in patterns if level >= Level.HOST)
        skipped = 0 if suspected else self._trap_after // _SKIPPED_PART
        for number, (level, name) in enumerate(patterns, 1):
            if name in self._cuts or (name in self._pending and self._pending[name].cut):
                return
            pattern = self._find_or_add(name)
            pattern.pages += 1
            ratio = 0.0
            if pattern.pages > skipped:
                ratio = self._compare(name, pattern, page)
                self._decide(level, name, pattern, suspected=suspected)
            if level >= Level.HOST and ratio >= _MOSTLY_NEW_RATIO and number > 1:
                # The page also belongs to the narrower pattern before this one, so that one brings new text.
                self._note_productive(patterns[number - 2].text)
            if number < len(patterns) and pattern.pages > self._limit_part(patterns[number].level):
                return

    def _limit_part(self, level: Level) -> int:
        """How many pages of a narrower pattern are also counted for a wider one of this level."""
        part = self._trap_after // _PART_OF[level]
        return part if level >= Level.HOST else max(part, _LEAST_PART)

    def _compare(self, name: str, pattern: _Pattern, page: PageText) -> float:
        """The ratio of a page among the pages of the pattern."""
        if pattern.new_content is None:
            # The first page: later pages are compared with it.
            new_content = NewContent()
            new_content.measure(page)
            self._watch(name, pattern, new_content)
            return 1.0
        self._watched.move_to_end(name)
        ratio = pattern.new_content.measure(page, roughly=pattern.pages_until_comparison > 0)
        if ratio is None:
            pattern.pages_until_comparison -= 1
            ratio = pattern.shares[-1] / _STORED_ONE if pattern.shares else 1.0
        else:
            pattern.pages_until_comparison = _PAGES_PER_COMPARISON - 1 if ratio >= _MOSTLY_NEW_RATIO else 0
        pattern.shares.append(math.ceil(_STORED_ONE * ratio))
        del pattern.shares[: -self._trap_after]
        return ratio

    def _decide(self, level: Level, name: str, pattern: _Pattern, *, suspected: bool) -> None:
        """Decides after a page whether its pattern is cut, productive, or only watched further."""
        step = max(1, self._trap_after // _PART_OF[Level.FACETS])
        enough = self._trap_after
        if level >= Level.HOST:
            self._update_suspected_hosts(name, pattern)
            if pattern.pages < _HOST_FACTOR * self._trap_after:
                return
        elif suspected:
            enough = min(max(step, _FEWEST_PAGES), self._trap_after)
        if len(pattern.shares) >= enough and pattern.mean_of(enough) < _CUT_RATIO:
            self._note(name, pattern, cut=True)
            self._watched.pop(name, None)
            del self._patterns[name]
        elif len(pattern.shares) >= step and pattern.mean >= _PRODUCTIVE_RATIO:
            if name not in self._productive:
                self._note(name, pattern)
        elif pattern.pages % step == 0:
            self._note(name, pattern, whole=True)

    def _update_suspected_hosts(self, name: str, pattern: _Pattern) -> None:
        """Suspects a host while its mean ratio is low; its patterns are then cut after fewer pages."""
        if len(pattern.shares) == self._trap_after and pattern.mean < _CUT_RATIO:
            self._suspected_hosts.add(name)
        elif pattern.mean >= _PRODUCTIVE_RATIO:
            self._suspected_hosts.discard(name)

    def _note(self, name: str, pattern: _Pattern, *, cut: bool = False, whole: bool = False) -> None:
        new_content = pattern.new_content
        self._pending[name] = StoredPattern(
            text=name,
            pages=pattern.pages,
            new_permille=round(1000 * pattern.mean),
            cut=TRAP_AFTER if cut else None,
            cut_limit=self._trap_after if cut else None,
            shares=bytes(pattern.shares) if whole else None,
            runs=new_content.pack() if whole and new_content is not None else None,
        )

    def _find_or_add(self, name: str) -> _Pattern:
        pattern = self._patterns.get(name)
        if pattern is None:
            if len(self._patterns) >= _MAX_PATTERNS:
                self._drop_rare_patterns()
            pattern = self._patterns[name] = _Pattern()
        return pattern

    def _drop_rare_patterns(self) -> None:
        met_again = {name: pattern for name, pattern in self._patterns.items() if pattern.pages > 1}
        self._patterns = met_again if len(met_again) < _MAX_PATTERNS // 2 else dict(self._watched)

    def _watch(self, name: str, pattern: _Pattern, new_content: NewContent) -> None:
        if len(self._watched) >= _MAX_WATCHED:
            # A productive pattern is the first that is no longer watched.
            names = self._watched
            self._watched.pop(
                next((name for name in names if name in self._productive), next(iter(names)))
            ).new_content = None
        pattern.new_content = new_content
        self._watched[name] = pattern

    def _note_productive(self, name: str) -> None:
        if name not in self._productive and len(self._productive) < _MAX_PATTERNS:
            self._productive.add(name)

    def _load_pattern(self, row: StoredPattern) -> None:
        """A stored pattern is one of three: cut (with today's limit), with the ratios of its last pages, or productive."""
        if row.cut == TRAP_AFTER:
            if row.cut_limit == self._trap_after:
                self._cuts.add(row.text)
        elif row.shares is not None and row.runs is not None:
            pattern = self._find_or_add(row.text)
            pattern.pages = row.pages
            pattern.shares[:] = row.shares
            self._watch(row.text, pattern, NewContent(row.runs))
        elif row.new_permille >= 1000 * _PRODUCTIVE_RATIO:
            self._productive.add(row.text)

    # The transaction of a group

    def store(self, transaction: Transaction) -> None:
        """Writes what was found since the last commit."""
        pattern_table.store(transaction, self._source_id, list(self._pending.values()))
        pattern_table.set_counts(transaction, self._source_id, {text: self._counts[text] for text in self._counted})
        fresh = self._full - self._warned
        pattern_table.mark_full(transaction, self._source_id, fresh, key=MAX_URLS, limit=self._max_urls)

    def note_commit(self) -> None:
        """Applies what was committed: from now on, cut patterns refuse URLs."""
        for row in self._pending.values():
            if row.cut:
                self._cuts.add(row.text)
                self._productive.discard(row.text)
                _warn_of_trap(row)
            elif row.shares is None:
                self._note_productive(row.text)
            else:
                self._productive.discard(row.text)
        self._pending = {}
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

    def note_rollback(self) -> None:
        """Forgets what was counted since the last commit."""
        for text in self._counted:
            self._counts.pop(text, None)
        self._counted = set()
        self._full = set()


def _is_new(claim: Claim) -> bool:
    """Whether limits on traps apply to a row: it is no start URL, was never fetched, and has no document."""
    return claim.depth > 0 and claim.code in NEVER_REQUESTED and not claim.is_known


def _is_in_archive(document: Document) -> bool:
    # A server may send any ETag.
    was_read_from_one = (document.etag or "").startswith(ARCHIVE_ETAG)
    return bool(list_archives(document.claim.url, in_archive=was_read_from_one))


def _warn_of_trap(row: StoredPattern) -> None:
    logger.warning(
        "URL looping: %s is cut, its last %d pages brought %.1f %% new text (%s); URLs of it that were not fetched"
        " yet are refused (%d)",
        row.text,
        row.cut_limit,
        row.new_permille / 10,
        TRAP_AFTER,
        Code.TRAP_LIMIT,
    )
