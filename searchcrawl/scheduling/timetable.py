"""When a schedule is due: moments of ``cron`` or every so many minutes, and the time of the week for them (H1, H2).

Moments are milliseconds since 1970. What daylight saving time skips of ``cron`` is due right after the gap, and what
it repeats is due once, as Debian's cron has it; expressions with a star in minute or hour follow the clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import takewhile
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from searchcrawl import clock
from searchcrawl.rules.week_window import WeekWindow, parse_days, parse_minute
from searchcrawl.sources.schedule import Schedule, Window

_LOCAL_ZONE: Final = Path("/etc/localtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The moments of one schedule: those of ``cron`` in ``zone``, or one ``every_ms`` after the last."""

    cron: str | None
    every_ms: int
    window: WeekWindow | None
    zone: tzinfo

    def find_due(self, after_ms: int, now_ms: int) -> int | None:
        """The last moment after one, until now; None where there is none."""
        if self.cron is None:
            passed = (now_ms - after_ms) // self.every_ms
            return after_ms + passed * self.every_ms if passed > 0 else None
        # Moments are listed from some day on: all those of a year, each minute, would be many.
        for begin_ms in (max(after_ms, now_ms - clock.DAY_MS), after_ms):
            *_, last = None, *takewhile(lambda moment: moment <= now_ms, self._list(begin_ms))
            if last is not None:
                return last
        return None

    def find_next(self, after_ms: int) -> int:
        """The first moment after one, put off until a run may begin."""
        moment = after_ms + self.every_ms if self.cron is None else next(self._list(after_ms))
        return self.find_opening(moment)

    def find_opening(self, moment_ms: int) -> int:
        """The first moment from this one on at which a run may begin."""
        if self.window is None:
            return moment_ms
        local = clock.from_ms(moment_ms).astimezone(self.zone)
        if self.window.covers(local.weekday(), local.hour * 60 + local.minute):
            return moment_ms
        begin = time(*divmod(self.window.from_minute, 60), tzinfo=self.zone)
        days = (local.date() + timedelta(days=number) for number in range(9))
        openings = (datetime.combine(day, begin) for day in days if day.weekday() in self.window.days)
        return next(found for each in openings if (found := clock.to_ms(each)) >= moment_ms)

    def _list(self, after_ms: int) -> Iterator[int]:
        """The moments of ``cron`` after one."""
        # Only projects with schedules need it.
        from cronsim import CronSim  # noqa: PLC0415

        begin = clock.from_ms(after_ms).astimezone(self.zone)
        found = (clock.to_ms(each.astimezone(UTC)) for each in CronSim(self.cron or "", begin))
        # In an hour that comes twice it begins with the first one.
        return (moment for moment in found if moment > after_ms)


def build_timetable(schedule: Schedule) -> Timetable:
    """The timetable of a schedule; without ``timezone`` in the zone of the machine."""
    return Timetable(
        cron=schedule.cron,
        # However small: it is divided by.
        every_ms=max(round((schedule.every_minutes or 0) * 60_000), 1),
        window=None if schedule.window is None else _build_window(schedule.window),
        zone=ZoneInfo(schedule.timezone) if schedule.timezone else find_machine_zone(),
    )


def _build_window(window: Window) -> WeekWindow:
    begin, end = parse_minute(window.from_), parse_minute(window.to)
    return WeekWindow(days=parse_days(window.days), from_minute=begin, to_minute=end)


def find_machine_zone() -> tzinfo:
    """The time zone of the machine with its daylight saving time: that of ``TZ``, or of /etc/localtime."""
    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        if name:
            return ZoneInfo(name)
        with _LOCAL_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        # As it is now, whatever names it.
        return clock.now().astimezone().tzinfo or UTC
