"""Watches the patterns of a source's URLs: what pages of one bring that is new, and how many there are (L8, F5).

A pattern whose last pages brought next to nothing is cut: URLs of it that were never fetched are refused
(961). Where none is cut and none limited, a link costs nothing.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from searchcrawl.codes import NEVER_REQUESTED, REFUSED, Code
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.new_content import KnownLines, Novelty, PageText
from searchcrawl.rules.traps import Level, cut_by, patterns_of, values_pattern
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import pattern_table
from searchcrawl.store.urls.pattern_table import StoredPattern

logger = logging.getLogger(__name__)

TRAP_AFTER: Final = "scope.trap_after"
MAX_URLS: Final = "scope.max_urls_per_pattern"
#: A pattern is cut where its last pages brought less than this.
_LEAST_NEW: Final = 0.05
#: One that brings more than this is proven: cuts of wider patterns spare it.
_PROVEN: Final = 0.15
#: Of one that brings at least so much only every so many-th page is looked at in full.
_RICH: Final = 0.5
_PAGES_A_LOOK: Final = 48
_WHOLE: Final = 255
#: One page in so many of ``trap_after`` is what a pattern brings into the next wider one of a level at most.
_LEAST_PART: Final = 5
_PART_OF: Final = {Level.FACETS: 8, Level.BRANCH: 8, Level.HOST: 20, Level.HOSTS: 20}
#: The first pages of a pattern, this part of ``trap_after``, are not looked at: most patterns have no more.
_UNSEEN_PART: Final = 10
#: A host is cut as a whole, but for what is proven, after so many times ``trap_after`` pages of different parts.
_HOSTS_LAST: Final = 10
#: A part of a host that is suspected is cut by no fewer pages.
_FEWEST_PAGES: Final = 10
_MAX_PATTERNS: Final = 20_000
#: So many patterns are looked at at once, half a megabyte each at most.
_MAX_WATCHED: Final = 128
_MAX_COUNTS: Final = 100_000
_MAX_WARNINGS: Final = 20


@dataclass(slots=True)
class _Pattern:
    """How many pages came, and how much each of the last ones brought."""

    pages: int = 0
    novelty: Novelty | None = None
    #: each in 1/255, rounded up
    shares: bytearray = field(default_factory=bytearray)
    unasked: int = 0

    @property
    def mean(self) -> float:
        """How much the last pages brought, 1 where none is known."""
        return self.mean_of(len(self.shares))

    def mean_of(self, last: int) -> float:
        """The same of the ``last`` ones."""
        return sum(self.shares[-last:]) / (_WHOLE * last) if last else 1.0


class TrapWatch:
    """The patterns of one source in one run; limits of 0 are none.

    Admission and observing belong to the writer thread and its transactions: ``committed`` or
    ``rolled_back`` follows each. ``refusal`` may be asked by any thread, ``split_refused`` within any
    transaction that writes.
    """

    def __init__(self, source_id: int, *, trap_after: int, max_urls_per_pattern: int, file: str = "") -> None:
        self._source_id = source_id
        self._trap_after = trap_after
        self._max_urls = max_urls_per_pattern
        self._file = file
        self._known_lines = KnownLines()
        self._patterns: dict[str, _Pattern] = {}
        self._watched: OrderedDict[str, _Pattern] = OrderedDict()
        self._suspects: set[str] = set()
        self._cuts: set[str] = set()
        self._proven: set[str] = set()
        self._pending: dict[str, StoredPattern] = {}
        self._counts: dict[str, int] = {}
        self._counted: set[str] = set()
        self._full: set[str] = set()
        self._warned: set[str] = set()

    @property
    def active(self) -> bool:
        """Whether any URL may be refused."""
        return bool(self._cuts or self._max_urls)

    def open(self, transaction: Transaction, *, recount: bool = False) -> None:
        """Remembers what earlier runs learnt; what other limits cut is forgiven, and counted anew where asked."""
        for key, limit in ((TRAP_AFTER, self._trap_after), (MAX_URLS, self._max_urls)):
            pattern_table.forgive(transaction, self._source_id, key=key, limit=limit)
        self.recall(transaction)
        if recount and self._max_urls:
            self._recount(transaction)

    def recall(self, transaction: Transaction) -> None:
        """The same for one who only asks: nothing is written, and what another limit cut is passed over."""
        if self._trap_after:
            for row in pattern_table.all_of(transaction, self._source_id, evidence=True):
                self._recall(row)

    def refusal(self, claim: Claim) -> Decision | None:
        """Why a row is not to be requested; one that was fetched before, or is a start URL, always may be."""
        if not claim.depth or claim.code not in NEVER_REQUESTED:
            return None
        return self.cutting(claim.url)

    def cutting(self, url: str) -> Decision | None:
        """The cut that a URL falls under."""
        text = cut_by(url, self._cuts, self._proven) if self._cuts else None
        return None if text is None else Decision(False, text, self._file, TRAP_AFTER)

    def split_refused(
        self, transaction: Transaction, claims: Sequence[Claim]
    ) -> tuple[list[Claim], list[tuple[Claim, Decision]]]:
        """Splits claims into those that may be requested, and those that may not."""
        allowed, refused = [], []
        for claim in claims:
            decision = self.refusal(claim)
            if decision is None and self._max_urls and claim.code in NEVER_REQUESTED and claim.code and claim.depth:
                # It was refused once, and is counted only now.
                decision = self._counted_now(transaction, claim.url)
            if decision is None:
                allowed.append(claim)
            else:
                refused.append((claim, decision))
        return allowed, refused

    # Admission

    def prepare(self, transaction: Transaction, urls: Iterable[str]) -> None:
        """To be called before ``admit`` for new URLs."""
        if self._max_urls:
            texts = {text for text in map(values_pattern, urls) if text is not None} - self._counts.keys()
            self._counts |= pattern_table.counts(transaction, self._source_id, sorted(texts))

    def admit(self, url: str) -> Decision | None:
        """Counts a new URL, or says why it is refused."""
        decision = self.cutting(url)
        if decision is None and self._max_urls:
            text = values_pattern(url)
            if text is not None:
                if self._counts[text] >= self._max_urls:
                    self._full.add(text)
                    return self._over(text)
                self._counts[text] += 1
                self._counted.add(text)
        return decision

    def _over(self, text: str) -> Decision:
        return Decision(False, f"max_urls_per_pattern = {self._max_urls} of {text}", self._file, MAX_URLS)

    def _counted_now(self, transaction: Transaction, url: str) -> Decision | None:
        text = values_pattern(url)
        if text is None:
            return None
        number = pattern_table.counts(transaction, self._source_id, [text])[text]
        if number >= self._max_urls:
            pattern_table.name_full(transaction, self._source_id, [text], key=MAX_URLS, limit=self._max_urls)
            return self._over(text)
        pattern_table.set_counts(transaction, self._source_id, {text: number + 1})
        # The table knows it now.
        self._counts.pop(text, None)
        return None

    def _recount(self, transaction: Transaction) -> None:
        numbers: dict[str, int] = {}
        refused = sorted(REFUSED)
        for url in pattern_table.admitted(transaction, self._source_id, without=refused):
            text = values_pattern(url)
            if text is not None:
                numbers[text] = numbers.get(text, 0) + 1
        pattern_table.forget_counts(transaction, self._source_id)
        pattern_table.set_counts(transaction, self._source_id, numbers)

    # Observing

    def observe(self, items: Sequence[Document | Outcome]) -> None:
        """Looks at the pages of a group that were fetched for the first time."""
        if not self._trap_after:
            return
        for item in items:
            if isinstance(item, Document) and item.page is not None and item.claim.fields_digest is None:
                text = f"{item.page.title}\n{item.page.text}"
                self._observe(self._known_lines.read(item.claim.url, text, item.fields_digest))

    def _observe(self, page: PageText) -> None:
        patterns = patterns_of(page.url)
        suspected = any(name in self._suspects for level, name in patterns if level >= Level.HOST)
        unseen = 0 if suspected else self._trap_after // _UNSEEN_PART
        for number, (level, name) in enumerate(patterns, 1):
            if name in self._cuts or (name in self._pending and self._pending[name].cut):
                return
            pattern = self._pattern(name)
            pattern.pages += 1
            share = 0.0
            if pattern.pages > unseen:
                share = self._look(name, pattern, page)
                self._judge(level, name, pattern, suspected=suspected)
            if level >= Level.HOST and share >= _RICH and number > 1:
                # Somebody below it has something to say.
                self._prove(patterns[number - 2].text)
            if number < len(patterns) and pattern.pages > self._part_of(patterns[number].level):
                return

    def _part_of(self, level: Level) -> int:
        """So many pages does a pattern bring into a wider one of that level."""
        part = self._trap_after // _PART_OF[level]
        return part if level >= Level.HOST else max(part, _LEAST_PART)

    def _look(self, name: str, pattern: _Pattern, page: PageText) -> float:
        """How much the page brought to the pattern."""
        if pattern.novelty is None:
            # The first page teaches what the others are compared with.
            novelty = Novelty()
            novelty.share(page)
            self._watch(name, pattern, novelty)
            return 1.0
        self._watched.move_to_end(name)
        share = pattern.novelty.share(page, roughly=pattern.unasked > 0)
        if share is None:
            pattern.unasked -= 1
            share = pattern.shares[-1] / _WHOLE if pattern.shares else 1.0
        else:
            pattern.unasked = _PAGES_A_LOOK - 1 if share >= _RICH else 0
        pattern.shares.append(math.ceil(_WHOLE * share))
        del pattern.shares[: -self._trap_after]
        return share

    def _judge(self, level: Level, name: str, pattern: _Pattern, *, suspected: bool) -> None:
        """Notes what has become known of a pattern by its latest page."""
        step = max(1, self._trap_after // _PART_OF[Level.FACETS])
        enough = self._trap_after
        if level >= Level.HOST:
            self._suspect(name, pattern)
            if pattern.pages < _HOSTS_LAST * self._trap_after:
                return
        elif suspected:
            enough = min(max(step, _FEWEST_PAGES), self._trap_after)
        if len(pattern.shares) >= enough and pattern.mean_of(enough) < _LEAST_NEW:
            self._note(name, pattern, cut=True)
            self._watched.pop(name, None)
            del self._patterns[name]
        elif len(pattern.shares) >= step and pattern.mean >= _PROVEN:
            if name not in self._proven:
                self._note(name, pattern)
        elif pattern.pages % step == 0:
            self._note(name, pattern, whole=True)

    def _suspect(self, name: str, pattern: _Pattern) -> None:
        """A host most of whose parts bring nothing: each part is then judged by fewer pages (a maze of words)."""
        if len(pattern.shares) == self._trap_after and pattern.mean < _LEAST_NEW:
            self._suspects.add(name)
        elif pattern.mean >= _PROVEN:
            self._suspects.discard(name)

    def _note(self, name: str, pattern: _Pattern, *, cut: bool = False, whole: bool = False) -> None:
        novelty = pattern.novelty
        self._pending[name] = StoredPattern(
            text=name,
            pages=pattern.pages,
            new_permille=round(1000 * pattern.mean),
            cut=TRAP_AFTER if cut else None,
            cut_limit=self._trap_after if cut else None,
            shares=bytes(pattern.shares) if whole else None,
            runs=novelty.packed() if whole and novelty is not None else None,
        )

    def _pattern(self, name: str) -> _Pattern:
        pattern = self._patterns.get(name)
        if pattern is None:
            if len(self._patterns) >= _MAX_PATTERNS:
                self._make_room()
            pattern = self._patterns[name] = _Pattern()
        return pattern

    def _make_room(self) -> None:
        met_again = {name: pattern for name, pattern in self._patterns.items() if pattern.pages > 1}
        self._patterns = met_again if len(met_again) < _MAX_PATTERNS // 2 else dict(self._watched)

    def _watch(self, name: str, pattern: _Pattern, novelty: Novelty) -> None:
        if len(self._watched) >= _MAX_WATCHED:
            # Those that are proven can wait.
            names = self._watched
            self._watched.pop(next((name for name in names if name in self._proven), next(iter(names)))).novelty = None
        pattern.novelty = novelty
        self._watched[name] = pattern

    def _prove(self, name: str) -> None:
        if name not in self._proven and len(self._proven) < _MAX_PATTERNS:
            self._proven.add(name)

    def _recall(self, row: StoredPattern) -> None:
        if row.cut == TRAP_AFTER:
            if row.cut_limit == self._trap_after:
                self._cuts.add(row.text)
        elif row.shares is not None and row.runs is not None:
            pattern = self._pattern(row.text)
            pattern.pages = row.pages
            pattern.shares[:] = row.shares
            self._watch(row.text, pattern, Novelty(row.runs))
        elif row.new_permille >= 1000 * _PROVEN:
            self._proven.add(row.text)

    # The transaction of a group

    def store(self, transaction: Transaction) -> None:
        """Writes what has become known."""
        pattern_table.store(transaction, self._source_id, list(self._pending.values()))
        pattern_table.set_counts(transaction, self._source_id, {text: self._counts[text] for text in self._counted})
        fresh = self._full - self._warned
        pattern_table.name_full(transaction, self._source_id, fresh, key=MAX_URLS, limit=self._max_urls)

    def committed(self) -> None:
        """What was written is in force."""
        for row in self._pending.values():
            if row.cut:
                self._cuts.add(row.text)
                self._proven.discard(row.text)
                _warn_of_trap(row)
            elif row.shares is None:
                self._prove(row.text)
            else:
                self._proven.discard(row.text)
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

    def rolled_back(self) -> None:
        """What was counted since the last commit was not written."""
        for text in self._counted:
            self._counts.pop(text, None)
        self._counted = set()
        self._full = set()


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
