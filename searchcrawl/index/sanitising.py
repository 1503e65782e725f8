"""Makes values that an index can store, and reads and writes numbers and moments as texts (X-I9). Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Final

from searchcrawl.index.characters import unify
from searchcrawl.index.receiver import HIT_END, HIT_START
from searchcrawl.index_fields import is_text_field

#: The longest untokenised term of Lucene, in bytes.
MAX_TERM_BYTES: Final = 32_766

Scalar = str | int | float | bool

# XML 1.0 has no such characters (2.2).
_CONTROLS: Final = tuple(chr(code) for code in range(32) if chr(code) not in "\t\n\r")
_NONCHARACTERS: Final = ("\ufffe", "\uffff")
_UNWANTED_MARKS: Final = (HIT_START, HIT_END, *_NONCHARACTERS)
_UNWANTED_PATTERN: Final = re.compile("[" + re.escape("".join((*_CONTROLS, *_UNWANTED_MARKS))) + "\ud800-\udfff]")
_CONTROL_BYTES: Final = "".join(_CONTROLS).encode()
_SHORT: Final = 500
_MAX_LONG: Final = 2**63 - 1
_MAX_EXACT_INTEGER: Final = 2**53
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)


def clean_fields(fields: Mapping[str, object]) -> dict[str, Scalar | list[Scalar]]:
    """Fields as JSON can carry and an index can store them; those without a value are left out.

    Texts lose lone surrogates and characters that XML forbids, tokenised ones soft hyphens, and have composed accents;
    untokenised ones are cut at 32,766 bytes of UTF-8; times become ISO 8601 in UTC; NaN, infinities and numbers beyond 64 bits are dropped.
    """
    cleaned: dict[str, Scalar | list[Scalar]] = {}
    texts: dict[int, Scalar | None] = {}
    for name, value in fields.items():
        if isinstance(value, str) and len(value) >= _SHORT and is_text_field(name):
            # A document may have its content twice, once for the analysis by language: the same object is cleaned once.
            key = id(value)
            if key not in texts:
                texts[key] = clean_value(name, value)
            if (text := texts[key]) is not None:
                cleaned[name] = text
            continue
        if isinstance(value, (list, tuple, set, frozenset)):
            found = [kept for item in value if (kept := clean_value(name, item)) is not None]
            if found:
                cleaned[name] = found
        elif (single := clean_value(name, value)) is not None:
            cleaned[name] = single
    return cleaned


def clean_value(name: str, value: object) -> Scalar | None:
    """One value of the field ``name``; None if nothing of it can be stored."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return _clean_words(value) if is_text_field(name) else cut_bytes(clean_text(value), MAX_TERM_BYTES)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_MAX_LONG <= value <= _MAX_LONG else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date):
        return iso_utc(value)
    return None if value is None else clean_value(name, str(value))


def find_id_fault(document_id: str) -> str | None:
    """Why no index can take the id, or None. An empty id would be shared, and a long one is no term (X-I10)."""
    if not document_id.strip():
        return "the id is empty"
    if clean_text(document_id) != document_id:
        return "the id has characters that cannot be stored"
    if len(document_id.encode()) > MAX_TERM_BYTES:
        return f"the id is longer than {MAX_TERM_BYTES} bytes"
    return None


def clean_text(text: str) -> str:
    """The text without lone surrogates, control characters, non-characters and the marks of snippets."""
    if len(text) >= _SHORT and _encode_clean(text) is not None:
        return text
    return _UNWANTED_PATTERN.sub("", text)


def cut_bytes(text: str, max_bytes: int) -> str:
    """The longest beginning of the text with at most this many bytes of UTF-8."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode("utf-8")
    return text if len(encoded) <= max_bytes else encoded[:max_bytes].decode("utf-8", "ignore")


def iso_utc(moment: date) -> str:
    """A day or a moment as ISO 8601 in UTC with ``Z``; a moment without a zone is taken as UTC."""
    if not isinstance(moment, datetime):
        return f"{moment.isoformat()}T00:00:00Z"
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        aware = aware.astimezone(UTC)
    except OverflowError:
        # The first or last day of the calendar may leave it by its zone.
        aware = aware.replace(tzinfo=UTC)
    precision = "milliseconds" if aware.microsecond else "seconds"
    return aware.isoformat(timespec=precision).replace("+00:00", "Z")


def parse_number(text: str) -> float | None:
    """The number that a text is; None where it is none, or one that no index can store."""
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def format_number(value: float) -> str:
    """A number as facets show it: without a fraction where it is a whole one."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < _MAX_EXACT_INTEGER else repr(number)


def _clean_words(text: str) -> str:
    encoded = _encode_clean(text) if len(text) >= _SHORT else None
    return unify(clean_text(text)) if encoded is None else unify(text, encoded)


def _encode_clean(text: str) -> bytes | None:
    """A text in UTF-8; None where it has anything that is to be removed.

    In a long text, looking for all at once in its bytes takes a fiftieth of one pass of a regular expression.
    """
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        return None
    is_clean = len(raw.translate(None, _CONTROL_BYTES)) == len(raw) and not any(
        mark in text for mark in _UNWANTED_MARKS
    )
    return raw if is_clean else None
