"""The delay between requests to a host, by hour and weekday (``fetch.windows``, C2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from searchcrawl.rules.week_window import WeekWindow, parse_days, parse_minute
from searchcrawl.sources.fetch_tables import FetchWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayWindow(WeekWindow):
    """A delay that is in force in a time of the week."""

    delay_seconds: float


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
