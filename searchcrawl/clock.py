"""The only module that reads the time: aware UTC for what is stored, monotonic for what is measured, and that of the machine for leases."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

DAY_MS: Final = 86_400_000
#: Where the system has no such clock: the one that rests while the machine sleeps.
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: So far a clock may be ahead, or its zone unknown.
_AHEAD: Final = timedelta(days=1)
#: The last moment that all time zones can show.
_LATEST: Final = datetime(9999, 12, 30, tzinfo=UTC)


def now() -> datetime:
    """The present, aware, in UTC."""
    return datetime.now(UTC)


def now_ms() -> int:
    """The present in milliseconds since 1970, as the store keeps times."""
    return time.time_ns() // 1_000_000


def monotonic() -> float:
    """Seconds that never go back, for durations and pauses within a process."""
    return time.monotonic()


def boot_ms() -> int:
    """Milliseconds since the machine was started, its sleep included: nobody can set it, all processes have the same."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000


def to_ms(moment: datetime) -> int:
    """An aware moment in milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def cap_ms(moment: datetime) -> int:
    """The same of a moment that somebody else gives, such as ``datetime.max``; raises TypeError where it has no time zone."""
    return to_ms(min(moment, _LATEST))


def from_ms(milliseconds: int) -> datetime:
    """The aware UTC moment of a stored time."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def iso(milliseconds: int | None) -> str | None:
    """A stored time as ISO 8601 in UTC with milliseconds and ``Z``, as answers show it."""
    if milliseconds is None:
        return None
    return from_ms(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_moment(text: str) -> datetime | None:
    """A date in ISO 8601, or of HTTP or a mail, in UTC where it names no zone; None for a text that is no date."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return None


def parse_pause(text: str, *, most_seconds: float) -> float | None:
    """The seconds from now, ``most_seconds`` at most, that a Retry-After header asks to wait; None for what is unusable.

    Both forms are read, seconds and a date (RFC 9110 §10.2.3).
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), most_seconds)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return min(max((moment - now()).total_seconds(), 0.0), most_seconds)


def from_http_date(text: str | None) -> datetime | None:
    """A Last-Modified value (RFC 9110 §5.6.7), from 1970 to now; None for what is no date."""
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
        # In UTC the last evening of the year 9999 may be after the end of the calendar.
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(moment, _EARLIEST), now())


def from_file_date(text: str | None) -> datetime | None:
    """A date that a file says of itself, in ISO 8601, until now; None for one that is before 1970 or in the future.

    Many programs write such dates where they know none.
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment, present = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment, now()
    return min(moment, present).astimezone(UTC) if _EARLIEST < moment < present + _AHEAD else None
