"""The delay between requests to a host, by hour and weekday (``fetch.windows``, C2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from searchcrawl.sources.fetch_table import FetchWindow
from searchcrawl.sources.schedule import WEEKDAYS

_DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayWindow:
    """A delay that is in force on ``days`` (0 is Monday) between two minutes of the day.

    A window whose end is not after its begin goes on over midnight, and belongs to the day on which it
    began. Where both are the same minute it lasts 24 hours.
    """

    days: frozenset[int]
    from_minute: int
    to_minute: int
    delay_seconds: float

    def covers(self, weekday: int, minute: int) -> bool:
        """Whether the window is in force at this minute of a day."""
        if self.from_minute < self.to_minute:
            return weekday in self.days and self.from_minute <= minute < self.to_minute
        began_today = weekday in self.days and minute >= self.from_minute
        return began_today or ((weekday - 1) % 7 in self.days and minute < self.to_minute)


class DelaySchedule:
    """The windows of a source. Where several are in force the longest delay counts, so their order does not matter.

    ``zone`` is the time zone of the windows; None means that of the machine.
    """

    def __init__(self, windows: Sequence[DelayWindow], *, zone: tzinfo | None, otherwise_seconds: float) -> None:
        self._windows = tuple(windows)
        self._zone = zone
        self._otherwise_seconds = otherwise_seconds

    def delay_seconds(self, moment: datetime) -> float:
        """The delay at an aware ``moment``."""
        local = moment.astimezone(self._zone)
        weekday, minute = local.weekday(), local.hour * 60 + local.minute
        delays = [window.delay_seconds for window in self._windows if window.covers(weekday, minute)]
        return max(delays, default=self._otherwise_seconds)


def build_delay_schedule(
    windows: Sequence[FetchWindow], zone: str | None, *, otherwise_seconds: float
) -> DelaySchedule | None:
    """The schedule of a source; None where one delay is always in force."""
    if not windows:
        return None
    plain = [
        DelayWindow(
            days=parse_days(window.days),
            from_minute=parse_minute(window.from_),
            to_minute=parse_minute(window.to),
            delay_seconds=window.delay_seconds,
        )
        for window in windows
    ]
    return DelaySchedule(plain, zone=ZoneInfo(zone) if zone else None, otherwise_seconds=otherwise_seconds)


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
