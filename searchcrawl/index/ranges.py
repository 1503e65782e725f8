"""Numbers and moments in a query: ``depth:1..3``, ``modified:2025-01..2025-06``, ``modified:2025``. Pure.

Either end of a range may be missing. A year, a month or a day is meant as a whole: the range up to 2025-06 ends with June.
So is a second, which is as fine as the embedded index compares moments.
Moments without a zone are of UTC.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from searchcrawl.index.sanitising import parse_number
from searchcrawl.index_fields import DATES, NUMBERS, attribute_type

_DAY: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?", re.ASCII)
_DOTS: Final = ".."


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values of a field from ``low`` to ``high``; None: from the first, to the last.

    ``is_below``: ``high`` itself is not meant. ``fault`` is what cannot be read: then no document is meant. ``typed`` is
    the text of the range, ``name`` what the field was called.
    """

    field: str
    name: str = dataclasses.field(default="", compare=False)
    low: float | datetime | None = None
    high: float | datetime | None = None
    is_below: bool = False
    fault: str = ""
    typed: str = ""


def is_ordered(field: str) -> bool:
    """Whether the values of a field are numbers or moments."""
    return field in NUMBERS or is_of_dates(field) or attribute_type(field) == "number"


def is_of_dates(field: str) -> bool:
    """Whether the values of a field are moments."""
    return field in DATES or attribute_type(field) == "date"


def read_range(field: str, text: str, *, name: str = "") -> Range:
    """The range of a text as it stands after the colon; of a single value that alone."""
    low, dots, high = text.strip().partition(_DOTS)
    high = high if dots else low
    read = _read_moment if is_of_dates(field) else _read_number
    try:
        first = read(low)[0] if low else None
        last, is_below = read(high)[1:] if high else (None, False)
    except ValueError as error:
        return Range(field=field, name=name, fault=str(error), typed=text)
    return Range(field=field, name=name, low=first, high=last, is_below=is_below, typed=text)


def _read_number(text: str) -> tuple[float, float, bool]:
    number = parse_number(text)
    if number is None:
        raise ValueError(f"{text!r} is no number")
    return number, number, False


def _read_moment(text: str) -> tuple[datetime, datetime, bool]:
    """The first moment of a text, the last one, and whether that one is just after it; raises ValueError."""
    try:
        match = _DAY.fullmatch(text)
        if match is None:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            moment = moment.replace(microsecond=0)
            return moment, moment + timedelta(seconds=1), True
        year, month, day = (int(part or 1) for part in match.groups())
        first = datetime(year, month, day, tzinfo=UTC)
        if match[3]:
            return first, first + timedelta(days=1), True
        return (
            first,
            datetime(year + (month == 12 or not match[2]), month % 12 + 1 if match[2] else 1, 1, tzinfo=UTC),
            True,
        )
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no date, as 2025-06-30, 2025-06 or 2025") from None
