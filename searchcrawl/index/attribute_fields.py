"""The fields of attributes in an index, ``NAME_s`` and so on, and how their values are asked for. Pure."""

from __future__ import annotations

import re
import struct
from typing import Final

#: string, text, number, date
SUFFIXES: Final = ("_s", "_t", "_l", "_dt")
DATES: Final = frozenset({"last_modified", "first_seen", "crawled_at"})

_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(_s|_t|_l|_dt)", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
_MOST_WHOLE: Final = 2**53
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1


def name_and_suffix(field: str) -> tuple[str, str] | None:
    """The attribute of a field, and its suffix; None where the field is not that of one."""
    match = None if field in DATES else _FIELD.fullmatch(field)
    return None if match is None else (match[1], match[2])


def number_of(text: str) -> float | None:
    """The number that a text is; None where it is none."""
    return float(text) if _NUMBER.fullmatch(text) else None


def sortable(number: float) -> str:
    """A number as 16 hexadecimal digits that sort as numbers do (the bits of IEEE 754).

    The embedded index keeps whole and other numbers apart, and so sorts neither.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return f"{bits ^ _SIGN if bits < _SIGN else bits ^ _ALL:016x}"


def number_from(digits: str) -> float:
    """The number of ``sortable``."""
    bits = int(digits, 16)
    (number,) = struct.unpack(">d", struct.pack(">Q", bits ^ _SIGN if bits >= _SIGN else bits ^ _ALL))
    return float(number)


def number_text(value: float) -> str:
    """A number as facets show it: without a fraction where it is a whole one."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < _MOST_WHOLE else repr(number)
