"""The name of a file: the one that Content-Disposition gives it (RFC 6266, RFC 8187, RFC 2231 §3), or that in its URL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from searchcrawl.html.page_text import collapse
from searchcrawl.items import Headers
from searchcrawl.urls import parse

_SPACE: Final = " \t"
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_EXTENDED: Final = re.compile(r"([^']+)'[^']*'((?:[^%]|%[0-9A-Fa-f]{2})*)")
_CHARSETS: Final = {"utf-8": "utf-8", "utf8": "utf-8", "iso-8859-1": "latin-1"}
_CONTINUED: Final = re.compile(r"filename\*(0|[1-9][0-9]{0,2})(\*?)")
_FOLDER_END: Final = re.compile(r"[/\\]")
#: No name of a file needs more.
_MAX_CHARACTERS: Final = 8_192


class Disposition(NamedTuple):
    """``type`` in lower case; ``parameters`` by name in lower case, of parameters with the same name only the first.

    The value of ``name*`` is as it was sent; if it can be decoded, ``name`` has the decoded value.
    """

    type: str
    parameters: Mapping[str, str]

    @property
    def file_name(self) -> str | None:
        """The name of the file, as sent: from ``filename*``, ``filename``, or its parts (RFC 2231); None without."""
        return self.parameters.get("filename") or _join_parts(self.parameters) or None


def parse_disposition(value: str) -> Disposition:
    """Reads the value of a header as browsers do: a broken parameter is ignored; never raises."""
    kind, _, rest = value[:_MAX_CHARACTERS].partition(";")
    sent: dict[str, str] = {}
    decoded: dict[str, str] = {}
    for name, text, quoted in _read_parameters(rest):
        if name in sent:
            continue
        sent[name] = text
        if name.endswith("*") and not quoted:
            read = _decode_extended(text)
            if read is not None:
                decoded[name[:-1]] = read
    return Disposition(kind.strip(_SPACE).lower(), sent | decoded)


def _read_parameters(text: str) -> Iterator[tuple[str, str, bool]]:
    """Of each parameter its name, its value, and whether the value was quoted."""
    position = 0
    while position < len(text):
        equals, end = text.find("=", position), text.find(";", position)
        end = len(text) if end < 0 else end
        if not position <= equals < end:
            position = end + 1
            continue
        name = text[position:equals].strip(_SPACE).lower()
        start = equals + 1
        while start < len(text) and text[start] in _SPACE:
            start += 1
        if start < len(text) and text[start] == '"':
            value, position = _read_quoted(text, start + 1)
            if value is not None:
                yield name, value, True
        else:
            yield name, text[start:end].strip(_SPACE), False
            position = end + 1


def _read_quoted(text: str, start: int) -> tuple[str | None, int]:
    """The quoted string that begins at ``start`` (None where it has no end), and where the next parameter begins."""
    end = start
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        return None, end
    following = text.find(";", end)
    return _ESCAPED.sub(r"\1", text[start:end]), len(text) if following < 0 else following + 1


def _decode_extended(text: str) -> str | None:
    """Decodes ``charset'language'percent-encoded``; None for an unknown charset or a broken value."""
    match = _EXTENDED.fullmatch(text)
    charset = _CHARSETS.get(match[1].lower()) if match else None
    if match is None or charset is None:
        return None
    try:
        return unquote_to_bytes(match[2]).decode(charset)
    except UnicodeDecodeError:
        return None


def _join_parts(parameters: Mapping[str, str]) -> str:
    """Joins ``filename*0``, ``filename*1`` … up to the first number that is missing."""
    parts: dict[int, str] = {}
    for name, value in parameters.items():
        match = _CONTINUED.fullmatch(name)
        # A part with a star at its end is as it was sent; the decoded value has the name without the star.
        if match and not match[2]:
            parts[int(match[1])] = value
    joined: list[str] = []
    while len(joined) in parts:
        joined.append(parts[len(joined)])
    return "".join(joined)


def find_file_name(headers: Headers, url: str) -> str:
    """The name that Content-Disposition gives a file, or the last segment of ``url``; empty where neither does."""
    return find_sent_name(headers) or _read_last_segment(url)


def build_title(headers: Headers, url: str) -> str:
    """What a file without a title is called: its name, or its host where its path ends in a slash."""
    return find_file_name(headers, url) or parse(url).host


def find_sent_name(headers: Headers) -> str:
    """The name in Content-Disposition, without folders; empty where there is none."""
    for name, value in headers:
        if name.lower() == b"content-disposition":
            sent = parse_disposition(_decode(value)).file_name
            return collapse(_FOLDER_END.split(sent)[-1]) if sent else ""
    return ""


def _read_last_segment(url: str) -> str:
    return collapse(unquote(parse(url).path.rpartition("/")[2], errors="replace"))


def _decode(value: bytes) -> str:
    """The text of a header: servers send names in UTF-8, although headers are in ISO 8859-1."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
