"""The delay between requests to a host, by hour and weekday (C2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayWindow:
    """A delay that counts on ``days`` (0 is Monday) between two minutes of the day.

    Where it ends no later than it begins it goes on over midnight, and belongs to the day on which it
    began: the same minute twice is 24 hours.
    """

    days: frozenset[int]
    from_minute: int
    to_minute: int
    delay_seconds: float

    def holds(self, weekday: int, minute: int) -> bool:
        """Whether it counts at this minute of a day."""
        if self.from_minute < self.to_minute:
            return weekday in self.days and self.from_minute <= minute < self.to_minute
        began_today = weekday in self.days and minute >= self.from_minute
        return began_today or ((weekday - 1) % 7 in self.days and minute < self.to_minute)


class DelayPlan:
    """The windows of a source; of several that hold the longest delay counts, so that their order does not matter.

    ``zone`` None is that of the machine.
    """

    def __init__(self, windows: Sequence[DelayWindow], *, zone: tzinfo | None, otherwise_seconds: float) -> None:
        self._windows = tuple(windows)
        self._zone = zone
        self._otherwise_seconds = otherwise_seconds

    def delay_seconds(self, moment: datetime) -> float:
        """The delay at an aware ``moment``."""
        local = moment.astimezone(self._zone)
        weekday, minute = local.weekday(), local.hour * 60 + local.minute
        delays = [window.delay_seconds for window in self._windows if window.holds(weekday, minute)]
        return max(delays, default=self._otherwise_seconds)


def days_of(text: str) -> frozenset[int]:
    """The days that ``mon-fri`` or ``sat,sun`` names, as numbers; ``sat-mon`` goes over the end of the week."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin = WEEKDAYS.index(first)
        length = (WEEKDAYS.index(last or first) - begin) % 7 + 1
        found.update((begin + day) % 7 for day in range(length))
    return frozenset(found)


def minute_of(text: str) -> int:
    """The minute of the day that ``08:30`` names."""
    hour, _, minute = text.partition(":")
    return (int(hour) * 60 + int(minute)) % _DAY_MINUTES
