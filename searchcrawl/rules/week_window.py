"""A time of the week: days, and two times of the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekWindow:
    """A time on ``days`` (0 is Monday) between two minutes of the day.

    A window whose end is not after its begin goes on over midnight, and belongs to the day on which it
    began. Where both are the same minute it lasts 24 hours.
    """

    days: frozenset[int]
    from_minute: int
    to_minute: int

    def covers(self, weekday: int, minute: int) -> bool:
        """Whether this minute of a day is in the window."""
        if self.from_minute < self.to_minute:
            return weekday in self.days and self.from_minute <= minute < self.to_minute
        began_today = weekday in self.days and minute >= self.from_minute
        return began_today or ((weekday - 1) % 7 in self.days and minute < self.to_minute)


def parse_days(text: str) -> frozenset[int]:
    """The numbers of the days in ``mon-fri`` or ``sat,sun`` (0 is Monday); ``sat-mon`` is Saturday to Monday."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin = WEEKDAYS.index(first)
        length = (WEEKDAYS.index(last or first) - begin) % 7 + 1
        found.update((begin + day) % 7 for day in range(length))
    return frozenset(found)


def parse_minute(text: str) -> int:
    """The minute of the day of a time such as ``08:30``."""
    hour, _, minute = text.partition(":")
    return (int(hour) * 60 + int(minute)) % _DAY_MINUTES
