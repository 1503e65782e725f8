"""How many runs of a URL failed since its last good visit, by what failed (``[lifecycle]``; D5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

import orjson

from searchcrawl.codes import FailureKind

#: A page that stopped the crawler, or the worker that read it, so many times is set aside.
MOST_STOPS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How many runs failed, by FailureKind.

    ``last`` is what failed last, ``after_run`` the last completed run at that time: a run that ended early counts as
    one with those that continue it. ``stops`` is how many visits stopped the crawler, or the worker that read the page.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    last: str | None = None
    after_run: int | None = None
    stops: int = 0

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """What a row keeps; None for no failure."""
        return cls() if text is None else cls(**orjson.loads(text))

    def dump(self) -> str:
        """As a row keeps it."""
        kept = {"counts": self.counts, "last": self.last, "after_run": self.after_run}
        return orjson.dumps(kept | {"stops": self.stops} if self.stops else kept).decode()

    def is_of(self, after_run: int) -> bool:
        """Whether the last failure was in the run that follows the completed run ``after_run``."""
        return self.after_run == after_run

    def add(self, kind: FailureKind, *, after_run: int) -> Failures:
        """Adds a failed visit. A second one in the same run takes the place of the first."""
        counts = dict(self.counts)
        if self.last is not None and self.is_of(after_run):
            counts[self.last] -= 1
        counts[kind.value] = counts.get(kind.value, 0) + 1
        counts = {name: count for name, count in counts.items() if count}
        return replace(self, counts=counts, last=kind.value, after_run=after_run)

    def add_stop(self) -> Failures:
        """Adds a visit that stopped the crawler, or the worker that read the page."""
        return replace(self, stops=self.stops + 1)

    @property
    def is_set_aside(self) -> bool:
        """Whether the page has stopped too much to be tried again by itself (966)."""
        return self.stops >= MOST_STOPS


def has_stopped(failures: str | None) -> bool:
    """Whether a visit of the page stopped the crawler, or a worker, since its last good one; ``failures`` is what the row keeps."""
    return failures is not None and Failures.parse(failures).stops > 0


def is_confirmed(code: int, failures: str | None, *, remove_on: Collection[int], confirmations: int) -> bool:
    """Whether a status that removes was seen in enough runs; ``failures`` is what the row keeps. True for other codes."""
    if confirmations <= 1 or code not in remove_on:
        return True
    return Failures.parse(failures).counts.get(FailureKind.GONE.value, 0) >= confirmations
