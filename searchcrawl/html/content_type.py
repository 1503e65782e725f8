"""Reads Content-Type headers as browsers do (WHATWG MIME Sniffing, "parse a MIME type"; Fetch, "extract a MIME type")."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from searchcrawl.items import Headers

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
#: What stands between commas outside quoted strings (Fetch, "get, decode, and split").
_PART: Final = re.compile(r'((?>[^",]++|"(?>[^"\\]|\\.)*+(?:"|\\?\Z))*+)(?:,|\Z)', re.DOTALL)
#: A name and its value, quoted (a backslash may be the last character of all) or not.
_PARAMETER: Final = re.compile(
    r'[\t\n\r ]*+([^;=]*+)(?>(?:=(?:"((?>[^"\\]|\\.)*+)(\\?)(?:"|\Z)[^;]*+|([^;]*+)))?)(?:;|\Z)', re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_SPACE: Final = "\t\n\r "
#: The longest header that is read; no type needs more.
_MAX_CHARACTERS: Final = 4096


class ContentType(NamedTuple):
    """``essence`` is ``type/subtype`` in lower case or empty; ``charset`` a label as sent, or None."""

    essence: str = ""
    charset: str | None = None


def join_content_type(headers: Headers) -> str:
    """The values of all Content-Type headers as one text, as ``parse_content_type`` takes it."""
    return ", ".join(value.decode("latin-1") for name, value in headers if name.lower() == b"content-type")


@lru_cache(maxsize=512)
def parse_content_type(value: str) -> ContentType:
    """Reads the value of a Content-Type header; several headers are joined by ``, ``.

    The last valid type is taken; if it has no charset, it gets that of an earlier header with the same essence. A
    broken value gives an empty essence.
    """
    result = ContentType()
    for part in _PART.findall(value[:_MAX_CHARACTERS]):
        parsed = _parse_one(part)
        if not parsed.essence or parsed.essence == "*/*":
            continue
        if parsed.charset is None and parsed.essence == result.essence:
            parsed = result
        result = parsed
    return result


def _parse_one(value: str) -> ContentType:
    value = value.strip(_SPACE)
    essence, _, rest = value.partition(";")
    main, slash, sub = essence.rstrip(_SPACE).partition("/")
    if not slash or not _TOKEN.fullmatch(main) or not _TOKEN.fullmatch(sub):
        return ContentType()
    return ContentType(f"{main}/{sub}".lower(), _find_charset(rest))


def _find_charset(parameters: str) -> str | None:
    """The first valid ``charset`` among the parameters."""
    for match in _PARAMETER.finditer(parameters):
        name, quoted, cut, plain = match.groups()
        if name.lower() == "charset":
            value = (plain or "").rstrip(_SPACE) or None if quoted is None else _ESCAPED.sub(r"\1", quoted) + cut
            if value is not None and _VALUE.fullmatch(value):
                return value
    return None
