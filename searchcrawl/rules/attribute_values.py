"""Makes typed values of search attributes from texts of pages and headers (A5). Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.answer_headers import list_values
from searchcrawl.index_fields import FIRST_MOMENT, LAST_MOMENT
from searchcrawl.kind import KINDS

#: The most values of an attribute in one document.
MAX_VALUES: Final = 256

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_SLASHED: Final = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2})(?![0-9])")
# Numbers are doubles in the index, which have every whole number up to this one.
_MOST_WHOLE: Final = 2**53

#: How the origins of values begin that a source says beside a document (``answer_headers``).
_OF_VALUES: Final = tuple(f"{kind.values}:" for kind in KINDS.values() if kind.values)

Value = str | int | float


class Mapped(NamedTuple):
    """An attribute and where it comes from: ``origin`` is ``meta:NAME``, ``jsonld:NAME``, ``header:NAME``, ``column:NAME`` or ``file:NAME``."""

    origin: str
    attribute: str
    type: str


class Reading(NamedTuple):
    """The values of each attribute, and the texts that cannot be read as its type, as (attribute, text)."""

    values: dict[str, tuple[Value, ...]]
    unreadable: list[tuple[str, str]]


class AttributeMap:
    """Which values of the pages and headers of a source become which attribute.

    ``attribute_origins`` are the places in pages. ``unreadable`` counts the values that were left out, by attribute.
    """

    def __init__(self, mapped: Iterable[Mapped], *, desc_fallback: bool = False) -> None:
        self.mapped = tuple(mapped)
        self.desc_fallback = desc_fallback
        origins = frozenset(each.origin for each in self.mapped)
        self._values = frozenset(each for each in origins if each.startswith(_OF_VALUES))
        self.attribute_origins = frozenset(each for each in origins - self._values if not each.startswith("header:"))
        self.unreadable: Counter[str] = Counter()
        self._headers = frozenset(
            each.origin.partition(":")[2].encode() for each in self.mapped if each.origin.startswith("header:")
        )

    def find_in_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> dict[str, list[str]]:
        """The values of the headers that are mapped, and the named values that are, by origin."""
        found: dict[str, list[str]] = {}
        for origin, text in list_values(headers) if self._values else ():
            if origin in self._values:
                found.setdefault(origin, []).append(text)
        if self._headers:
            for name, value in headers:
                lowered = name.lower()
                if lowered in self._headers:
                    found.setdefault(f"header:{lowered.decode('latin-1')}", []).append(_decode_header(value))
        return found

    def join_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """The values of the headers that are mapped, as one text for a digest; empty without any."""
        found = self.find_in_headers(headers)
        return repr(sorted(found.items())) if found else ""

    def read(self, found: Mapping[str, Sequence[str]]) -> Reading:
        """The values of all attributes; ``found`` has the texts by origin. Their order is that of the mapping."""
        values: dict[str, dict[Value, None]] = {}
        unreadable: list[tuple[str, str]] = []
        for origin, attribute, kind in self.mapped:
            for text in found.get(origin, ()):
                line = " ".join(text.split())
                if not line:
                    continue
                value = convert_value(line, kind)
                if value is None:
                    unreadable.append((attribute, line))
                elif len(values.setdefault(attribute, {})) < MAX_VALUES:
                    values[attribute].setdefault(value)
        return Reading({attribute: tuple(each) for attribute, each in values.items()}, unreadable)


def convert_value(text: str, kind: str) -> Value | None:
    """A text as a value of the type ``string``, ``text``, ``number`` or ``date`` (ISO 8601 in UTC), or None."""
    if kind == "number":
        return _parse_number(text)
    if kind == "date":
        moment = _parse_date(text)
        if moment is None:
            return None
        precision = "milliseconds" if moment.microsecond else "seconds"
        return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
    return text


def _parse_number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _MOST_WHOLE else number


def _parse_date(text: str) -> datetime | None:
    """Reads ISO 8601, also a year or a month alone or with slashes, or a date of HTTP or mail; UTC where it has no zone."""
    if (short := _YEAR_MONTH.fullmatch(text)) is not None:
        text = f"{short[1]}-{short[2] or '01'}-01"
    found = clock.parse_moment(_SLASHED.sub(r"\1-\2-\3", text, count=1))
    return found if found is not None and FIRST_MOMENT < found < LAST_MOMENT else None


def _decode_header(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
