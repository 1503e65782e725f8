"""Ranges of numbers and moments in the embedded index.

The library has no ranges of its own in objects such as those of attributes; its query language has them for integers. So
``ranges`` keeps the numbers and moments of attributes as integers that sort as they do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import tantivy

from searchcrawl.index.ranges import Range
from searchcrawl.index_fields import DATES, FIRST_MOMENT, LAST_MOMENT, NUMBERS

#: The field with the integers, by ``find_key``.
RANGES: Final = "ranges"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ALL_BUT_SIGN: Final = (1 << 63) - 1
_LEAST: Final = -(1 << 63)


def find_key(field: str) -> str:
    """The key of an attribute's field, of letters and digits: all that the query language takes as it is."""
    return f"x{field.encode().hex()}"


def to_integer(value: float | datetime) -> int:
    """An integer of 64 bits that sorts as the number or the moment does."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    (bits,) = struct.unpack(">q", struct.pack(">d", value + 0.0))
    return int(bits) if bits >= 0 else int(bits) ^ _ALL_BUT_SIGN


def build_range(index: tantivy.Index, schema: tantivy.Schema, wanted: Range) -> tantivy.Query:
    """The documents with a value in the range; ``index`` is any of the schema."""
    if wanted.fault:
        return tantivy.Query.empty_query()
    if wanted.field in NUMBERS or wanted.field in DATES:
        return _build_of_field(schema, wanted)
    path = f"{RANGES}.{find_key(wanted.field)}"
    if wanted.low is None and wanted.high is None:
        return tantivy.Query.exists_query(path)
    low = "*" if wanted.low is None else to_integer(wanted.low)
    high = "*" if wanted.high is None else to_integer(wanted.high)
    return index.parse_query(f"{path}:[{low} TO {high}{'}' if wanted.is_below and high != '*' else ']'}")


def _build_of_field(schema: tantivy.Schema, wanted: Range) -> tantivy.Query:
    low, high = wanted.low, wanted.high
    if wanted.field in DATES:
        if (isinstance(low, datetime) and low >= LAST_MOMENT) or (isinstance(high, datetime) and high <= FIRST_MOMENT):
            return tantivy.Query.empty_query()
        # All values are between these two, and the library fails on moments far outside.
        low = None if isinstance(low, datetime) and low <= FIRST_MOMENT else low
        high = None if isinstance(high, datetime) and high >= LAST_MOMENT else high
    if low is None and high is None:
        return tantivy.Query.exists_query(wanted.field)
    kind = tantivy.FieldType.Date if wanted.field in DATES else tantivy.FieldType.Integer
    if kind == tantivy.FieldType.Integer:
        low = None if low is None else _to_long(math.ceil, low)
        high = None if high is None else _to_long(math.floor, high)
    if low is not None and high is not None and low > high:  # type: ignore[operator]  # both are of one kind
        return tantivy.Query.empty_query()
    below = wanted.is_below and high is not None
    return tantivy.Query.range_query(schema, wanted.field, kind, low, high, True, not below)


def _to_long(rounded: Any, value: Any) -> int:
    """The number as a whole one within 64 bits."""
    return max(_LEAST, min(_ALL_BUT_SIGN, int(rounded(value))))


def read_integers(kind: str, values: Iterable[Any], moments: Iterable[datetime | None]) -> Iterator[int]:
    """The integers of the values of an attribute; ``moments`` are those of a date."""
    if kind == "number":
        yield from (to_integer(float(value)) for value in values)
    elif kind == "date":
        yield from (to_integer(moment) for moment in moments if moment is not None)
