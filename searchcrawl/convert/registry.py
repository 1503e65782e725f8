"""Which converter reads a body: by its type, and its first bytes where the type says nothing (B9, 908, 1009)."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from searchcrawl.codes import Code
from searchcrawl.exceptions import DocumentError, NoConverter
from searchcrawl.html.content_type import parse_content_type
from searchcrawl.html.encoding_labels import encoding_of


class Converter(Enum):
    """Who makes a page of a body."""

    #: html/page.py, or html/oversized.py for big bodies
    HTML = "html"
    #: convert/plain_text.py
    TEXT = "text"
    #: convert/conversion_pool.py
    PDF = "pdf"


_CONVERTERS: Final = {
    "text/html": Converter.HTML,
    "application/xhtml+xml": Converter.HTML,
    "text/plain": Converter.TEXT,
    "text/markdown": Converter.TEXT,
    "text/x-markdown": Converter.TEXT,
    "text/csv": Converter.TEXT,
    "application/pdf": Converter.PDF,
    "application/x-pdf": Converter.PDF,
}
_SAYS_NOTHING: Final = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "unknown/unknown", "application/unknown"}
)
_LOOKS_LIKE_HTML: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.{0,4000}?-->\s*|<\?xml[^>]{0,400}>\s*)*<(?:!doctype\s+html|(?:html|head|body|title)[\s>])",
    re.IGNORECASE | re.DOTALL,
)
#: How files of other formats begin; none of them is text.
_MAGIC: Final = (
    b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"\x7fELF", b"BZh",
    b"7z\xbc\xaf", b"Rar!\x1a", b"\xd0\xcf\x11\xe0", b"OggS", b"ID3", b"wOFF", b"wOF2", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd",
)  # fmt: skip
_PDF_WITHIN_BYTES: Final = 1_024
_LOOKED_AT_BYTES: Final = 4_096
_BINARY: Final = bytes(set(range(0x20)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B})
_MAX_BINARY_SHARE: Final = 0.02


def mimetype_of(body: bytes, *, content_type: str) -> str:
    """The type of a body: the header's, or what its first bytes look like where that says nothing."""
    essence = parse_content_type(content_type).essence
    if essence not in _SAYS_NOTHING:
        return essence
    if b"%PDF-" in body[:_PDF_WITHIN_BYTES]:
        return "application/pdf"
    if _LOOKS_LIKE_HTML.match(body[: 2 * _LOOKED_AT_BYTES]):
        return "text/html"
    if not essence and not looks_binary(body, content_type=content_type):
        return "text/plain"
    return essence or "application/octet-stream"


def converter_of(mimetype: str) -> Converter:
    """Who reads bodies of this type; raises NoConverter (908) where nobody does."""
    try:
        return _CONVERTERS[mimetype]
    except KeyError:
        raise NoConverter(f"no converter for {mimetype}", code=Code.NO_CONVERTER) from None


def choose_converter(mimetype: str, body: bytes, *, content_type: str) -> Converter:
    """Who reads a body of the type that ``mimetype_of`` gives it.

    Raises NoConverter (908), or DocumentError (1009) for binary data sent as text.
    """
    converter = converter_of(mimetype)
    if converter is not Converter.PDF and looks_binary(body, content_type=content_type):
        raise DocumentError(f"binary data sent as {mimetype}", code=Code.BINARY_AS_TEXT)
    return converter


def looks_binary(body: bytes, *, content_type: str) -> bool:
    """Whether a body is no text: it begins as a known format does, or has too many control bytes.

    A stray NUL makes no page binary. UTF-16 is text, where a BOM or the header says so.
    """
    if body.startswith(_MAGIC):
        return True
    head = body[:_LOOKED_AT_BYTES]
    controls = len(head) - len(head.translate(None, _BINARY))
    if controls <= len(head) * _MAX_BINARY_SHARE:
        return False
    charset = encoding_of(parse_content_type(content_type).charset or "")
    return not body.startswith((b"\xff\xfe", b"\xfe\xff")) and charset not in {"utf-16le", "utf-16be"}
