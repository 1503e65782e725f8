"""The identity of a row: ``row://SOURCE/TABLE/KEY``, with a ``KEY`` for each column of the key.

A key is written so that its value and its type can be read from it again: ``17`` is a number and ``~t:17`` the same digits as
a text. A text is written as it is where nothing else is written so; other types have a letter, as in ``~b:00ff``. Two texts
that a collation takes for the same have two identities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes
from uuid import UUID

from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.listed import ListedRules
from searchcrawl.sources.config import Source

SCHEME: Final = "row"
#: What stands for the table where a source has a query.
QUERY: Final = "query"

_BEGIN: Final = f"{SCHEME}://"
#: A part that is one of these leads to the folder above, also where its dots are escaped (WHATWG URL §4.1).
_DOTS: Final = frozenset({".", ".."})
#: As long as databases write whole numbers: nothing longer is read as one.
_MOST_DIGITS: Final = 1_000

KeyValue = int | str | bytes | bool | Decimal | UUID | date | time


class NoKey(ValueError):
    """A value that cannot be part of a key; the text says why."""


class Row(NamedTuple):
    """What the identity of a row names."""

    source: str
    table: str
    key: tuple[KeyValue, ...]


def build_container(source: str, table: str) -> str:
    """The identity of a whole table: that of its rows begins with it."""
    return f"{_BEGIN}{source}/{_escape(table)}/"


def find_container(source: Source) -> str:
    """The identity of the table of a source."""
    return build_container(source.name, source.own.table or QUERY)


def build_rules(source: Source) -> ListedRules:
    """The rules of a source: all rows of its table. Raises ConfigurationError for a key that lacks."""
    table = source.own
    if missing := table.find_missing():
        alternative = {"table": ", or table.query", "text": ", or table.body"}.get(missing, "")
        raise ConfigurationError(source.path, f"table.{missing}", f"is required{alternative}")
    key = "table.table" if table.query is None else "table.query"
    return ListedRules([(find_container(source), table.table or QUERY)], roots_key=key, file=source.path)


def build_key(values: Sequence[Any]) -> str:
    """The end of the identity of a row with this key, as the driver has it; raises NoKey."""
    return "/".join(map(_write, values))


def parse_row(url: str) -> Row:
    """What an identity names; raises InvalidUrl for a text that is no identity of a row as it is written here."""
    parts = url.removeprefix(_BEGIN).split("/")
    try:
        if not url.startswith(_BEGIN) or len(parts) < 3:
            raise ValueError(url)
        key = tuple(_read(_unescape(part)) for part in parts[2:])
        row = Row(parts[0], _unescape(parts[1]), key)
        if build_container(row.source, row.table) + build_key(key) != url:
            raise ValueError(url)
    except (ValueError, InvalidOperation) as error:
        raise InvalidUrl(f"not the URL of a row: {url[:200]!r}") from error
    return row


def _write(value: Any) -> str:
    written = _WRITERS.get(type(value))
    if written is not None:
        return written(value)
    if value is None:
        raise NoKey("is null")
    if isinstance(value, float):
        # Not all databases find a row again by such a number.
        raise NoKey("is a floating-point number")
    raise NoKey(f"is of a type that no key may have ({type(value).__name__})")


def _write_text(text: str) -> str:
    typed = not text or text.startswith("~") or text in _DOTS or _is_number(text)
    return f"~t:{_escape(text)}" if typed else _escape(text)


def _write_decimal(number: Decimal) -> str:
    _, digits, exponent = number.as_tuple()
    if exponent == 0 and len(digits) < _MOST_DIGITS:
        # The same number as an int: which of them a driver makes depends on the declaration of the column.
        return str(int(number))
    return f"~n:{number}"


def _typed(letter: str, write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: f"~{letter}:{_escape(write(value))}"


_WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    int: str,
    str: _write_text,
    bool: _typed("o", lambda value: str(value).lower()),
    bytes: _typed("b", bytes.hex),
    bytearray: _typed("b", bytearray.hex),
    memoryview: _typed("b", memoryview.hex),
    Decimal: _write_decimal,
    UUID: _typed("u", str),
    datetime: _typed("s", datetime.isoformat),
    date: _typed("d", date.isoformat),
    time: _typed("h", time.isoformat),
}


def _read_bool(text: str) -> bool:
    return text == "true"


_READERS: Final[Mapping[str, Callable[[str], KeyValue]]] = {
    "t": str,
    "o": _read_bool,
    "b": bytes.fromhex,
    "n": Decimal,
    "u": UUID,
    "s": datetime.fromisoformat,
    "d": date.fromisoformat,
    "h": time.fromisoformat,
}


def _read(text: str) -> KeyValue:
    if text.startswith("~"):
        read = _READERS.get(text[1:2])
        if read is None or text[2:3] != ":":
            raise ValueError(text)
        return read(text[3:])
    return int(text) if len(text) <= _MOST_DIGITS and _is_number(text) else text


def _is_number(text: str) -> bool:
    """Whether a text is a whole number as it is written here."""
    digits = text.removeprefix("-")
    return digits.isdigit() and digits.isascii() and (digits[0] != "0" or text == "0")


def _escape(text: str) -> str:
    """``text`` for a part of a path. A byte that is no UTF-8 is there as it is, another lone surrogate as in UTF-16."""
    try:
        return quote(text, safe=":", errors="surrogateescape")
    except UnicodeEncodeError:
        return quote(text.encode("utf-8", "surrogatepass"), safe=":")


def _unescape(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")
