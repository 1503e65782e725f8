"""Reads Content-Type headers as browsers do (WHATWG MIME Sniffing, "parse a MIME type"; Fetch, "extract a MIME type")."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from searchcrawl.items import Headers

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_QUOTED: Final = re.compile(r'"((?>[^"\\]|\\.)*+)(\\?)("|\Z)', re.DOTALL)
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
    for part in _split(value[:_MAX_CHARACTERS]):
        parsed = _parse_one(part)
        if not parsed.essence or parsed.essence == "*/*":
            continue
        if parsed.charset is None and parsed.essence == result.essence:
            parsed = result
        result = parsed
    return result


def _split(value: str) -> list[str]:
    """Cuts at commas outside quoted strings (Fetch, "get, decode, and split")."""
    if "," not in value:
        return [value]
    parts: list[str] = []
    start = position = 0
    while position < len(value):
        if value[position] == '"':
            match = _QUOTED.match(value, position)
            position = match.end() if match else len(value)
            continue
        if value[position] == ",":
            parts.append(value[start:position])
            start = position + 1
        position += 1
    parts.append(value[start:])
    return parts


def _parse_one(value: str) -> ContentType:
    value = value.strip(_SPACE)
    essence, _, rest = value.partition(";")
    main, slash, sub = essence.rstrip(_SPACE).partition("/")
    if not slash or not _TOKEN.fullmatch(main) or not _TOKEN.fullmatch(sub):
        return ContentType()
    return ContentType(f"{main}/{sub}".lower(), _find_charset(rest))


def _find_charset(parameters: str) -> str | None:
    """The first valid ``charset`` among the parameters."""
    position = 0
    while position < len(parameters):
        while position < len(parameters) and parameters[position] in _SPACE:
            position += 1
        end = position
        while end < len(parameters) and parameters[end] not in ";=":
            end += 1
        name = parameters[position:end].lower()
        if end >= len(parameters) or parameters[end] == ";":
            position = end + 1
            continue
        value, position = _read_value(parameters, end + 1)
        if name == "charset" and value is not None and _VALUE.fullmatch(value):
            return value
    return None


def _read_value(parameters: str, position: int) -> tuple[str | None, int]:
    """The value that starts at ``position`` (None without one), and where the next parameter starts."""
    if position < len(parameters) and parameters[position] == '"':
        match = _QUOTED.match(parameters, position)
        if match is None:
            return None, len(parameters)
        after = parameters.find(";", match.end())
        text = re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL) + match[2]
        return text, len(parameters) if after < 0 else after + 1
    after = parameters.find(";", position)
    end = len(parameters) if after < 0 else after
    text = parameters[position:end].rstrip(_SPACE)
    return text or None, end + 1
