"""Dates of sitemaps and feeds as milliseconds since 1970 (W3C datetime, RFC 822)."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from searchcrawl import clock

_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[Tt ]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_MAX_CHARACTERS: Final = 64
_DAY: Final = timedelta(days=1)
_MS: Final = timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def moment_ms(text: str) -> int | None:
    """The moment that a lastmod, updated, date or pubDate names; None for one that nobody can read.

    A date without a time is the end of that day, month or year in UTC: nobody knows at what hour
    the page changed, and too late a moment costs a request only. A time without a zone is UTC.
    """
    text = text.strip()[:_MAX_CHARACTERS]
    match = _W3C.fullmatch(text)
    try:
        return clock.to_ms(_w3c(match) if match else _rfc822(text))
    except (ValueError, OverflowError, TypeError):
        return None


def _w3c(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if hour is None:
        last_month = int(month or 12)
        last_day = int(day) if day else calendar.monthrange(int(year), last_month)[1]
        return datetime(int(year), last_month, last_day, tzinfo=UTC) + _DAY - _MS
    # A leap second, and the 24th hour, are those that follow.
    start = datetime(int(year), int(month), int(day), tzinfo=_zone(zone))
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 60:
        raise ValueError("no time of a day")
    milliseconds = int((fraction or "0").ljust(3, "0")[:3])
    return start + timedelta(hours=int(hour), minutes=int(minute), seconds=int(second or 0), milliseconds=milliseconds)


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(-offset if text[0] == "-" else offset)


def _rfc822(text: str) -> datetime:
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
