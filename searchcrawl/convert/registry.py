"""Which converter reads a body: by its type, and by its first bytes where the header says no type (B9, 908, 1009)."""

from __future__ import annotations

from typing import Final

from searchcrawl.codes import Code
from searchcrawl.convert.converter import Converter
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.pdf_converter import PDF
from searchcrawl.convert.text_converter import TEXT
from searchcrawl.exceptions import DocumentError, NoConverter
from searchcrawl.html.content_type import join_content_type, parse_content_type
from searchcrawl.html.encoding import find_encoding
from searchcrawl.items import Headers

#: Every format that can be read; the first one that recognises a body of unknown type reads it.
CONVERTERS: Final = (PDF, HTML, TEXT)

_BY_MIME_TYPE: Final = {mime_type: converter for converter in CONVERTERS for mime_type in converter.mime_types}
_SAYS_NOTHING: Final = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "unknown/unknown", "application/unknown"}
)
#: The first bytes of binary formats.
_MAGIC: Final = (
    b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"\x7fELF", b"BZh",
    b"7z\xbc\xaf", b"Rar!\x1a", b"\xd0\xcf\x11\xe0", b"OggS", b"ID3", b"wOFF", b"wOF2", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd",
)  # fmt: skip
_HEAD_BYTES: Final = 4_096
_BINARY: Final = bytes(set(range(0x20)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B})
_MAX_BINARY_SHARE: Final = 0.02


def find_mimetype(body: bytes, headers: Headers) -> str:
    """The type of a body: the header's, or what its first bytes look like where the header says none."""
    essence = parse_content_type(join_content_type(headers)).essence
    if essence not in _SAYS_NOTHING:
        return essence
    for converter in CONVERTERS:
        if converter.recognise is not None and converter.recognise(body):
            return converter.mime_types[0]
    if not essence and not is_binary(body, headers):
        return "text/plain"
    return essence or "application/octet-stream"


def choose_converter(mimetype: str, body: bytes, headers: Headers) -> Converter:
    """The converter for a body of the type that ``find_mimetype`` found.

    Raises NoConverter (908), or DocumentError (1009) for binary data sent as text.
    """
    converter = _BY_MIME_TYPE.get(mimetype)
    if converter is None:
        raise NoConverter(f"no converter for {mimetype}", code=Code.NO_CONVERTER)
    if converter.is_text and is_binary(body, headers):
        raise DocumentError(f"binary data sent as {mimetype}", code=Code.BINARY_AS_TEXT)
    return converter


def is_binary(body: bytes, headers: Headers) -> bool:
    """Whether a body is no text: it begins like a known binary format, or has too many control bytes.

    A single NUL makes no page binary. UTF-16 is text, if a BOM or the header says so.
    """
    if body.startswith(_MAGIC):
        return True
    head = body[:_HEAD_BYTES]
    controls = len(head) - len(head.translate(None, _BINARY))
    if controls <= len(head) * _MAX_BINARY_SHARE:
        return False
    charset = find_encoding(parse_content_type(join_content_type(headers)).charset or "")
    return not body.startswith((b"\xff\xfe", b"\xfe\xff")) and charset not in {"utf-16le", "utf-16be"}
