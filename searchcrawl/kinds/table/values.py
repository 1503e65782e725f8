"""What becomes of the values of columns: texts for documents and tokens, moments, names of principals. Pure.

All kinds of databases are asked to write dates, times, JSON and the like as texts themselves, so that nothing is lost that
Python has no value for (``0000-00-00``, ``infinity``). What a driver has no text of is written here: ``true`` and
``false``, numbers without an exponent where they have few digits, ``NaN`` and ``Infinity``, JSON for what is nested.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from email.utils import format_datetime
from typing import Any, Final

import xxhash

_DAY: Final = len("2024-01-31")
_DAY_SECONDS: Final = 86_400
#: Clocks of what writes rows differ a little, and a statement takes a while.
_YOUNG_SECONDS: Final = 2
#: A decimal number is written in full up to so many places.
_MOST_PLACES: Final = 40
_NO_CHARACTER: Final = "\ufffd"


def to_text(value: Any) -> str:
    """A value as one text, empty for null; characters that no document may have are replaced (U+FFFD)."""
    if isinstance(value, str):
        return clean(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, Decimal):
        return _write_decimal(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return clean(bytes(value).decode("utf-8", "replace"))
    if isinstance(value, list | tuple | dict):
        return clean(json.dumps(value, default=to_text, ensure_ascii=False))
    return clean(str(value))


def list_texts(value: Any) -> list[str]:
    """A value as the values of an attribute: those in an array, each by itself; nothing for null and for bytes."""
    if isinstance(value, list | tuple):
        return [to_text(each) for each in value if each is not None]
    if value is None or is_binary(value):
        return []
    return [to_text(value)]


def is_binary(value: Any) -> bool:
    """Whether a value is bytes, which are no text by themselves."""
    return isinstance(value, bytes | bytearray | memoryview)


def clean(text: str) -> str:
    """``text`` with U+FFFD in the place of NUL, of bytes that are no UTF-8, and of lone surrogates."""
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "replace").replace("\0", _NO_CHARACTER)


def _write_decimal(number: Decimal) -> str:
    exponent = number.as_tuple().exponent
    if isinstance(exponent, str):
        return str(number).replace("s", "")
    return f"{number:f}" if abs(exponent) <= _MOST_PLACES else str(number)


def list_principals(values: Iterable[Any]) -> tuple[str, ...] | None:
    """The principals in columns: the entries of an array, or of a text with commas or line ends between them.

    None where a value is no text: then nobody may see the row. A null has none.
    """
    found = dict[str, None]()
    for value in values:
        if value is None:
            continue
        entries = value if isinstance(value, list | tuple) else _split(value) if isinstance(value, str) else [None]
        for entry in entries:
            if not isinstance(entry, str) or clean(entry) != entry:
                return None
            if entry.strip():
                found.setdefault(entry.strip())
    return tuple(found)


def _split(text: str) -> list[str]:
    return text.replace("\n", ",").split(",")


def compute_digest(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """A digest of all values of each row, in 16 bytes; the order of columns does not matter to it."""
    order = sorted(range(len(columns)), key=columns.__getitem__)
    seed = xxhash.xxh3_64_intdigest(repr(sorted(columns)).encode("utf-8", "surrogatepass"))
    for row in rows:
        # The text of each value tells its type and where it ends.
        text = repr([row[number] for number in order])
        yield xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"), seed=seed)


def read_moment(text: str) -> datetime | None:
    """The moment that a text names in ISO 8601, in UTC where it says no zone; None for all others, and for ``infinity``."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def is_too_young(modified: Any, now: datetime) -> bool:
    """Whether another change may get the same moment: it names no part of a second, and that second is hardly over.

    ``now`` is by the clock of the database; of a number its seconds since 1970 are meant. What lies in the future by more
    than a day says nothing.
    """
    if isinstance(modified, int):
        return -_YOUNG_SECONDS <= modified - now.timestamp() <= _DAY_SECONDS
    found = read_moment(text := to_text(modified))
    if found is None or found.microsecond:
        return False
    granularity = _YOUNG_SECONDS if len(text) > _DAY else _DAY_SECONDS
    return -granularity <= (found - now).total_seconds() <= _DAY_SECONDS


def list_versions(rows: Iterable[Sequence[Any]], now: datetime) -> Iterator[bytes]:
    """What each row, of which the last column is that of its change, is compared by; empty where it is too young to tell."""
    # Most rows are older: their moments need not be read.
    years = {str(now.year + more) for more in (-1, 0, 1)}
    for row in rows:
        value = row[-1]
        may_be_young = not isinstance(value, str) or value[:4] in years
        is_young = may_be_young and is_too_young(value, now)
        yield b"" if is_young else repr(value).encode("utf-8", "surrogatepass")


def build_last_modified(value: Any) -> str | None:
    """The header of when a row was changed; None where its value says none. A moment without a zone is in UTC."""
    found = read_moment(to_text(value))
    try:
        return None if found is None else format_datetime(found.astimezone(UTC), usegmt=True)
    except OverflowError:
        # Before the year 1 or after 9999, once its zone is applied.
        return None
