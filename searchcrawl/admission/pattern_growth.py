"""Whether a pattern of URLs grows by itself: what its pages name, beside how many of them are visited (L8, L12). Pure.

A finite set of pages ends: its pages name fewer and fewer new URLs of it. A trap makes its own pages: nearly each page of
it names a new one, however many were visited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

#: It grows as fast as it is visited: so many new URLs of it a page, by so large a share of its pages.
_NAMED_A_PAGE: Final = 0.9
_NAMING_SHARE: Final = 0.5
#: It makes its own pages if pages outside name no larger share of its new URLs.
_MOST_FROM_OUTSIDE: Final = 0.1
#: Pages have no text of their own if their mean share (``rules.own_text``) is below this.
BARE: Final = 0.05
#: The share 1 in its stored form, a byte.
_STORED_ONE: Final = 255


@dataclass(slots=True)
class Span:
    """What was seen while some pages of a pattern were visited."""

    #: pages that were visited
    pages: int = 0
    #: those of them that named a URL, of any pattern, which nobody had named before
    naming: int = 0
    #: new URLs of the pattern that were named, by any page
    named: int = 0
    #: those of them that were named by pages outside
    outside: int = 0

    @property
    def grew(self) -> bool:
        """Whether the pattern grew as fast as it was visited."""
        return self.naming >= _NAMING_SHARE * self.pages and self.named >= _NAMED_A_PAGE * self.pages

    @property
    def grew_by_itself(self) -> bool:
        """The same, and its own pages named what is new."""
        return self.grew and self.outside <= _MOST_FROM_OUTSIDE * self.named


@dataclass(slots=True)
class WatchedPattern:
    """What is known of a pattern; spans begin anew after so many pages."""

    pages: int = 0
    #: how many they were when it was written
    noted: int = 0
    #: the shares of own text of its last pages, each as a byte (255 is 1)
    shares: bytearray = field(default_factory=bytearray)
    span: Span = field(default_factory=Span)
    #: in so many spans in a row it grew, and grew by itself
    grown: int = 0
    grown_by_itself: int = 0
    #: its URLs are visited after all others: what was seen since
    last: Span | None = None
    #: so many of its URLs wait to be visited last
    queued: int = 0

    def add_share(self, share: float, *, most: int) -> None:
        """Notes a page with its share of own text; ``most`` shares are kept."""
        self.pages += 1
        self.shares.append(round(_STORED_ONE * share))
        del self.shares[:-most]

    def mean_of(self, last: int) -> float:
        """The mean share of the ``last`` pages, or of fewer; 1 if none is known."""
        shares: Sequence[int] = self.shares[-last:]
        return sum(shares) / (_STORED_ONE * len(shares)) if shares else 1.0

    def end_span(self) -> None:
        """Takes the span that is over into account, and begins another."""
        self.grown = self.grown + 1 if self.span.grew else 0
        self.grown_by_itself = self.grown_by_itself + 1 if self.span.grew_by_itself else 0
        self.span = Span()
