"""The name of a file: the one that Content-Disposition gives it (RFC 6266, RFC 8187, RFC 2231 §3), or that in its URL.

What other names have than these RFCs allow, encoded words of mails and percent escapes, is read as Chromium reads it.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, a2b_qp
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from searchcrawl import urls
from searchcrawl.html.encoding import find_codec, find_encoding
from searchcrawl.html.page_text import collapse
from searchcrawl.items import Headers

_SPACE: Final = " \t"
#: A name and its value; a quoted string without an end takes all that follows, and says nothing.
_PARAMETER: Final = re.compile(
    r'([^;=]*+)(?>(?:=[ \t]*+(?:"((?>[^"\\]|\\.)*+)(?:(")[^;]*+|\\?\Z)|([^;]*+)))?)(?:;|\Z)', re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_EXTENDED: Final = re.compile(r"([^']+)'[^']*'((?:[^%]|%[0-9A-Fa-f]{2})*)")
#: Those that RFC 8187 knows; for the name of a file all others of the web do.
_OF_PARAMETERS: Final = frozenset({"utf-8", "utf8", "iso-8859-1"})
_CONTINUED: Final = re.compile(r"filename\*(0|[1-9][0-9]{0,2})(\*?)")
#: A charset and a language before the first part of a name, in the parts of which bytes may be escaped.
_FIRST_PART: Final = re.compile(r"([^']*)'[^']*'")
_ENCODED_WORD: Final = re.compile(r"=\?([^?\s*]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?\s]*)\?=")
_BETWEEN_WORDS: Final = re.compile(r"(?<=\?=)[ \t]+(?==\?)")
_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
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
        """The name of the file: from ``filename*``, ``filename``, or its parts (RFC 2231); None without."""
        extended = _decode_extended(self.parameters.get("filename*", ""))
        return extended or _decode_plain(self.parameters.get("filename", "")) or _join_parts(self.parameters) or None


def parse_disposition(value: str) -> Disposition:
    """Reads the value of a header as browsers do: a broken parameter is ignored; never raises."""
    kind, _, rest = value[:_MAX_CHARACTERS].partition(";")
    sent: dict[str, str] = {}
    decoded: dict[str, str] = {}
    for name, text, quoted in _read_parameters(rest):
        if name in sent:
            continue
        sent[name] = text
        if name.endswith("*") and not quoted and text.partition("'")[0].lower() in _OF_PARAMETERS:
            read = _decode_extended(text)
            if read is not None:
                decoded[name[:-1]] = read
    return Disposition(kind.strip(_SPACE).lower(), sent | decoded)


def _read_parameters(text: str) -> Iterator[tuple[str, str, bool]]:
    """Of each parameter its name, its value, and whether the value was quoted."""
    for match in _PARAMETER.finditer(text):
        name, quoted, closed, plain = match.groups()
        if closed:
            yield name.strip(_SPACE).lower(), _ESCAPED.sub(r"\1", quoted), True
        elif plain is not None:
            yield name.strip(_SPACE).lower(), plain.strip(_SPACE), False


def _decode_extended(text: str) -> str | None:
    """Decodes ``charset'language'percent-encoded``; None for an unknown charset or a broken value."""
    match = _EXTENDED.fullmatch(text)
    return None if match is None else _decode_bytes(unquote_to_bytes(match[2]), match[1])


def _decode_bytes(raw: bytes, charset: str) -> str | None:
    encoding = find_encoding(charset)
    if encoding is None:
        return None
    # RFC 8187 names this one, and means what it says; others are those of the web.
    codec = "latin-1" if charset.lower() == "iso-8859-1" else find_codec(encoding)
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def _decode_plain(text: str) -> str:
    """A plain value, in which there may be encoded words (RFC 2047) or percent escapes of UTF-8."""
    if "=?" in text:
        text = _ENCODED_WORD.sub(_decode_word, _BETWEEN_WORDS.sub("", text))
    if _PERCENT.search(text) is None:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def _decode_word(word: re.Match[str]) -> str:
    charset, coding, text = word.groups()
    try:
        raw = a2b_base64(text, strict_mode=True) if coding in "bB" else a2b_qp(text, header=True)
    except ValueError:
        return word[0]
    decoded = _decode_bytes(raw, charset)
    return word[0] if decoded is None else decoded


def _join_parts(parameters: Mapping[str, str]) -> str:
    """Joins ``filename*0``, ``filename*1*`` … up to the first number that is missing."""
    parts: dict[int, tuple[str, bool]] = {}
    for name, value in parameters.items():
        match = _CONTINUED.fullmatch(name)
        # A value that was decoded by itself is there without the star as well: that of the first part has the charset.
        if match and (match[2] or int(match[1]) not in parts):
            parts[int(match[1])] = value, bool(match[2])
    first, is_extended = parts.get(0, ("", False))
    declared = _FIRST_PART.match(first) if is_extended else None
    if declared is not None:
        parts[0] = first[declared.end() :], True
    joined = bytearray()
    encoding = (find_encoding(declared[1]) if declared is not None else None) or "utf-8"
    codec = find_codec(encoding)
    for number in range(len(parts)):
        if number not in parts:
            break
        text, is_escaped = parts[number]
        joined += unquote_to_bytes(text) if is_escaped and declared is not None else text.encode(codec, "replace")
    return joined.decode(codec, "replace")


def find_file_name(headers: Headers, url: str) -> str:
    """The name that Content-Disposition gives a file, or the last segment of ``url``; empty where neither does."""
    return find_sent_name(headers) or collapse(unquote(urls.last_name(url), errors="replace"))


def build_title(headers: Headers, url: str) -> str:
    """What a file without a title is called: its name, or its host where its path ends in a slash."""
    return find_file_name(headers, url) or urls.host(url)


def find_sent_name(headers: Headers) -> str:
    """The name in Content-Disposition, without folders; empty where there is none."""
    for name, value in headers:
        if name.lower() == b"content-disposition":
            sent = parse_disposition(_decode(value)).file_name
            return collapse(_FOLDER_END.split(sent)[-1]) if sent else ""
    return ""


def _decode(value: bytes) -> str:
    """The text of a header: servers send names in UTF-8, or in windows-1252, although headers are in ISO 8859-1."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return value.decode(encoding)
        except UnicodeDecodeError:
            continue
    return value.decode("latin-1")
