"""Which converter reads a body: by its bytes, its header and its name (B9, 908, 1009)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from searchcrawl.bodies import Body
from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import ARCHIVE
from searchcrawl.convert.converter import Converter
from searchcrawl.convert.detection import RTF, begins_like_binary, begins_like_container, detect, is_rtf, refutes
from searchcrawl.convert.document_converter import BY_ENDING, BY_TYPE, DOCUMENTS, MARKUP
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.pdf_converter import PDF
from searchcrawl.convert.text_converter import CSV, JSON, TEXT
from searchcrawl.convert.xml_converter import XML
from searchcrawl.exceptions import DocumentError, NoConverter
from searchcrawl.html.content_type import join_content_type, parse_content_type
from searchcrawl.html.encoding import find_encoding
from searchcrawl.html.file_name import find_file_name
from searchcrawl.items import Headers
from searchcrawl.sources.secrets import redact

#: Every format that can be read; the first one that recognises a body of unknown type reads it.
CONVERTERS: Final = (PDF, HTML, XML, DOCUMENTS, MARKUP, JSON, CSV, TEXT, ARCHIVE)

_SAYS_NOTHING: Final = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "unknown/unknown", "application/unknown",
     "application/x-download", "application/force-download", "application/download"}
)  # fmt: skip
_PLAIN: Final = "text/plain"
#: Types that tell by their ending how they are written.
_SUFFIXES: Final = (("+xml", XML), ("+json", JSON))
_HEAD_BYTES: Final = 4_096
_BINARY: Final = bytes(set(range(0x20)) - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B})
_MAX_BINARY_SHARE: Final = 0.02


class Registry:
    """The converters of a run: those of a user go before ours."""

    def __init__(self, own: Iterable[Converter] = ()) -> None:
        own = tuple(own)
        self._by_type = {mimetype: each for each in (*CONVERTERS, *own) for mimetype in each.mime_types}
        self._user_types = frozenset(mimetype for each in own for mimetype in each.mime_types)

    def find_mimetype(self, body: Body, headers: Headers, url: str = "") -> str:
        """The type of a body.

        What its bytes are beyond doubt, a header that says another binary type is not believed. A header that says text
        is; a body that can be none is refused (``choose``). Where the header says nothing, the bytes count, then the name of the
        file.
        """
        essence = parse_content_type(join_content_type(headers)).essence
        if essence not in self._by_type and essence not in BY_TYPE:
            # A server may send back what it was sent.
            essence = redact(essence)
        if essence in self._user_types:
            return essence
        found = detect(body)
        if essence in _SAYS_NOTHING:
            return found or self._recognise(body, headers, url) or essence or "application/octet-stream"
        if found is None:
            # Tables and reports that programs write for Excel and Word often are HTML.
            known = self._by_type.get(essence)
            is_page = known is not None and not known.is_text and known is not XML and _is_page(body)
            return HTML.mime_types[0] if is_page else essence
        if self._is_text(essence):
            return RTF if essence == _PLAIN and is_rtf(body) else essence
        if essence in BY_TYPE and BY_TYPE[essence] is BY_TYPE.get(found):
            return essence
        readable = essence in self._by_type or found in self._by_type
        return found if readable and refutes(found, essence) else essence

    def choose(self, mimetype: str, body: Body, headers: Headers) -> Converter:
        """The converter for a body of the type that ``find_mimetype`` found.

        Raises NoConverter (908), or DocumentError (1009) for binary data sent as text.
        """
        converter = self._find(mimetype)
        if converter is None:
            raise NoConverter(f"no converter for {mimetype}", code=Code.NO_CONVERTER)
        if converter.is_text and is_binary(body, headers):
            raise DocumentError(f"binary data sent as {mimetype}", code=Code.BINARY_AS_TEXT)
        return HTML if converter is XML and _is_page(body) else converter

    def reads_nothing(self, beginning: Body, headers: Headers, url: str) -> bool:
        """Whether nothing reads the type of a body (908), whatever comes after its beginning of 8 KiB."""
        return self._find(self.find_mimetype(beginning, headers, url)) is None and not begins_like_container(beginning)

    def _find(self, mimetype: str) -> Converter | None:
        found = self._by_type.get(mimetype)
        if found is None and mimetype.startswith("application/"):
            return next((converter for suffix, converter in _SUFFIXES if mimetype.endswith(suffix)), None)
        return found

    def _is_text(self, mimetype: str) -> bool:
        converter = self._find(mimetype)
        return mimetype.startswith("text/") if converter is None else converter.is_text

    def _recognise(self, body: Body, headers: Headers, url: str) -> str | None:
        """The type of a body that begins like no binary format and whose header says nothing."""
        ending = find_file_name(headers, url).rpartition(".")[2].lower() if url else ""
        named = self._find_own(ending) or BY_ENDING.get(ending)
        for converter in CONVERTERS:
            if converter.recognise is not None and converter.recognise(body):
                is_kind = converter is XML and named is not None and named.endswith("+xml")
                return named if is_kind else converter.mime_types[0]
        if named is not None:
            return named
        has_header = bool(parse_content_type(join_content_type(headers)).essence)
        return None if has_header or is_binary(body, headers) else _PLAIN

    def _find_own(self, ending: str) -> str | None:
        """The type of a user's converter that is called like a file's ending (``image/vnd.djvu`` for ``djvu``)."""
        return next(
            (each for each in sorted(self._user_types) if ending and each.rpartition("/")[2].split(".")[-1] == ending),
            None,
        )


def is_binary(body: Body, headers: Headers) -> bool:
    """Whether a body can be no text: it begins as none does, or has too many control bytes.

    A single NUL makes no page binary. UTF-16 is text, if a BOM or the header says so.
    """
    if begins_like_binary(body):
        return True
    head = body[:_HEAD_BYTES]
    controls = len(head) - len(head.translate(None, _BINARY))
    if controls <= len(head) * _MAX_BINARY_SHARE:
        return False
    charset = find_encoding(parse_content_type(join_content_type(headers)).charset or "")
    return not head.startswith((b"\xff\xfe", b"\xfe\xff")) and charset not in {"utf-16le", "utf-16be"}


def _is_page(body: Body) -> bool:
    return HTML.recognise is not None and HTML.recognise(body)
