"""When a page is visited again: its interval, and what the dates of sitemaps are worth (D2, L5).

The interval is a duration, and only ever compared with durations: a clock that was set back or forward moves it by one
step at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from searchcrawl import clock

_MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * _MINUTE_MS
#: The longest gap after failures.
_MAX_FAILURE_GAP_MS: Final = 7 * clock.DAY_MS
_RUNS_PER_DOUBLING: Final = 3
#: A URL that is not to be requested yet is asked about again after so long at the latest: the clock may have been wrong.
LONGEST_OPENING_MS: Final = 31 * clock.DAY_MS
#: When rows are due that are visited once what lists them says that they differ: in the year 9000.
UNTIL_LISTED_MS: Final = 221_845_392_000_000
#: A date that is further ahead says nothing. It may be the end of tomorrow: the day after begins first in the east.
MOST_AHEAD_MS: Final = 2 * clock.DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How long pages wait for their next visit: ``every_ms``, or between two bounds where ``max_ms`` is not 0."""

    every_ms: int
    min_ms: int = 0
    max_ms: int = 0

    @classmethod
    def of_hours(cls, every: float, least: float, most: float) -> Intervals:
        """The intervals of the keys of ``[lifecycle]``; 0 as ``most`` is a fixed interval."""
        if not most:
            return cls(every_ms=round(every * HOUR_MS))
        # From 0 nothing grows.
        min_ms = max(round(least * HOUR_MS), _MINUTE_MS)
        return cls(every_ms=round(every * HOUR_MS), min_ms=min_ms, max_ms=max(round(most * HOUR_MS), min_ms))

    @property
    def are_adaptive(self) -> bool:
        """Whether each page has its own."""
        return self.max_ms > 0

    @property
    def are_set(self) -> bool:
        """Whether pages wait for longer than the next run."""
        return self.every_ms > 0 or self.are_adaptive

    @property
    def longest_ms(self) -> int:
        """How long a page waits at most whose visit did not fail."""
        return self.max_ms if self.are_adaptive else self.every_ms

    @property
    def after_failure_ms(self) -> int:
        """How long a page waits whose visit failed: a failure says nothing about how often it changes."""
        return self.min_ms if self.are_adaptive else self.every_ms

    def adapt(self, interval_ms: int | None, *, changed: bool | None, elapsed_ms: int | None) -> int | None:
        """The interval of a page after a visit; None where pages have none of their own.

        ``interval_ms`` is the one before, None: this page had none. ``changed`` None: the visit told nothing of it, as the
        first one, or one whose page is processed again for another reason. ``elapsed_ms`` is the time since the visit before.
        A change halves it. It grows by half if the page was the same for as long, less what ``find_slack_ms`` allows; after
        a shorter time, or if a clock went back meanwhile, that is no news.
        """
        if not self.are_adaptive:
            return None
        now_ms = self._bound(self.every_ms if interval_ms is None else interval_ms)
        if changed:
            return self._bound(now_ms // 2)
        if changed is False and elapsed_ms is not None and elapsed_ms >= now_ms - now_ms // 2:
            return self._bound(now_ms + now_ms // 2)
        return now_ms

    def _bound(self, interval_ms: int) -> int:
        return min(max(interval_ms, self.min_ms), self.max_ms)


def next_due_ms(settled_ms: int, *, interval_ms: int, failed_runs: int = 0) -> int:
    """The moment (ms since 1970) from which a row settled at ``settled_ms`` is due again.

    ``failed_runs`` is the number of runs in a row, this one included, in which it failed: each
    third doubles the gap, up to seven days. With 0 as ``interval_ms`` it is due in each run.
    """
    gap_ms, doublings = interval_ms, failed_runs // _RUNS_PER_DOUBLING
    if gap_ms > 0 and doublings > 0:
        gap_ms = max(gap_ms, min(gap_ms << min(doublings, 64), _MAX_FAILURE_GAP_MS))
    return settled_ms + gap_ms


def find_slack_ms(gap_ms: int, *, into_run_ms: int) -> int:
    """How much earlier than ``gap_ms`` after its visit a page is due: runs at the same time each day visit it in each.

    So the gap is counted from the beginning of the run (``into_run_ms`` before the visit), with a fiftieth of it for runs
    that begin a little earlier; a page waits for half the gap at least.
    """
    return min(max(into_run_ms, 0) + gap_ms // 50, gap_ms // 2)


class Word(StrEnum):
    """What a sitemap said of a page before a visit, by its lastmod."""

    #: it changed since the visit before
    CHANGED = "changed"
    #: it did not
    SAME = "same"


def read_lastmod(lastmod_ms: int | None, *, visited_ms: int | None, now_ms: int) -> Word | None:
    """What a lastmod says of the time since the last visit; None: nothing."""
    if lastmod_ms is None or visited_ms is None or lastmod_ms > now_ms + MOST_AHEAD_MS:
        return None
    return Word.CHANGED if lastmod_ms > visited_ms else Word.SAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a visit showed of the dates of a sitemap: what it said, and whether the page had changed."""

    sitemap_id: int
    said: Word
    changed: bool


def weigh(word: Word, *, changed: bool, lastmod_ms: int, visited_ms: int) -> bool:
    """Whether a visit proves anything.

    A date without a time is the end of its day (``sitemaps.formats``): a page that was visited on that day may have
    changed before the visit, so that only a change that was seen proves something.
    """
    return (
        changed or word is Word.SAME or lastmod_ms - visited_ms >= clock.DAY_MS or (lastmod_ms + 1) % clock.DAY_MS != 0
    )
