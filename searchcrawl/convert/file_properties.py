"""What old office files and RTF say of themselves, where the library that reads their text does not tell it."""

from __future__ import annotations

import io
import re
from typing import Final, NamedTuple

_HEAD_BYTES: Final = 65_536
#: The texts of the group about the document.
_RTF_VALUE: Final = re.compile(rb"\{\\(title|author|subject)\s([^{}]{1,4096})\}")
_RTF_PAGE: Final = re.compile(rb"\\ansicpg([0-9]{1,5})")
#: A character by its number, with one for programs that do not know it; bytes; and other words of the format.
_RTF_NUMBER: Final = re.compile(r"\\u(-?[0-9]{1,5}) ?(?:\\'[0-9a-fA-F]{2}|\?)?")
_RTF_BYTES: Final = re.compile(r"(?:\\'[0-9a-fA-F]{2})+")
_RTF_WORD: Final = re.compile(r"\\[a-zA-Z]{1,32}-?[0-9]{0,10} ?")
_UTF_8: Final = 65_001


class Properties(NamedTuple):
    """The values; dates are in ISO 8601. What a file does not say is empty."""

    title: str = ""
    author: str = ""
    subject: str = ""
    created: str = ""
    modified: str = ""


def read_ole_properties(body: bytes) -> Properties:
    """The summary of an OLE2 file; empty where it has none, or none that can be read."""
    # The process of the crawl itself never calls this function, so it never loads the library.
    import olefile  # noqa: PLC0415

    try:
        with olefile.OleFileIO(io.BytesIO(body)) as file:
            about = file.get_metadata()
    except (OSError, ValueError, IndexError, TypeError, KeyError, EOFError):
        return Properties()
    # The number is stored with a sign.
    page = (about.codepage or 1252) & 0xFFFF
    codec = "utf-8" if page == _UTF_8 else f"cp{page}"
    texts = [_decode(each, codec) for each in (about.title, about.author, about.subject)]
    dates = [each.isoformat() if each else "" for each in (about.create_time, about.last_saved_time)]
    return Properties(*texts, *dates)


def _decode(value: bytes | str | None, codec: str) -> str:
    if not isinstance(value, bytes):
        return value or ""
    try:
        return value.decode(codec, "replace").strip("\0")
    except LookupError:
        return value.decode("windows-1252", "replace").strip("\0")


def read_rtf_properties(body: bytes) -> Properties:
    """Title, author and subject in the beginning of an RTF file."""
    head = body[:_HEAD_BYTES]
    page = _RTF_PAGE.search(head)
    codec = f"cp{int(page[1])}" if page else "cp1252"
    found = {name.decode(): _decode_rtf(text.decode("latin-1"), codec) for name, text in _RTF_VALUE.findall(head)}
    return Properties(**found)


def _decode_rtf(text: str, codec: str) -> str:
    text = _RTF_NUMBER.sub(lambda match: chr(int(match[1]) % 65_536), text)
    text = _RTF_BYTES.sub(lambda match: _decode(bytes.fromhex(match[0].replace("\\'", "")), codec), text)
    # The numbers are those of UTF-16.
    return _RTF_WORD.sub("", text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
