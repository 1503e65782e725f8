"""Parses sitemaps: index, urlset, plain text, RSS and Atom, gzipped or not (sitemaps.org; X-R14).

It scans for tags and is no XML parser: many sitemaps are not well-formed, and a broken entry must not cost
the others. It knows the five entities of XML and character references, and no DTD: nothing is expanded or fetched.
"""

from __future__ import annotations

import calendar
import codecs
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import lru_cache
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.encoding import find_codec, find_encoding
from searchcrawl.http.content_coding import BrokenCoding, decode_in_pieces
from searchcrawl.items import SitemapUrl
from searchcrawl.kinds.web.sitemaps.scanner import FeedScanner, LineScanner, SitemapEntry, SitemapScanner

#: The limits of the protocol on one file; the rest is not read.
MAX_URLS: Final = 50_000
MAX_BYTES: Final = 50 * 1024 * 1024
BATCH_URLS: Final = 1000
_HEAD_BYTES: Final = 4096
_HEAD_CHARACTERS: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_ABSOLUTE: Final = re.compile(r"https?://", re.IGNORECASE).match
_REFERENCE: Final = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
#: The characters that str.strip() removes, and two without width.
_BLANK: Final = "".join(
    map(chr, (*range(9, 14), *range(0x2000, 0x200C), 0x20, 0x85, 0xA0, 0x2028, 0x2029, 0x3000, 0xFEFF))
)
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARED: Final = re.compile(rb"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)", re.ASCII)
#: The first element, and what may come before it.
_FIRST: Final = re.compile(
    r"<(?:([\w.-]+):)?(urlset|sitemapindex|url|sitemap|rss|rdf|feed)(?=[\s/>])([^<>]*)>", re.IGNORECASE
)
_NO_ELEMENT: Final = re.compile(r"\s+|<!--.*?-->|<\?[^>]*>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
#: A W3C datetime, of which all but the year may be missing.
_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[Tt ]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_MAX_DATE_CHARACTERS: Final = 64
_DAY: Final = timedelta(days=1)
_MS: Final = timedelta(milliseconds=1)


class SitemapKind(Enum):
    """The format of a sitemap."""

    #: other sitemaps
    INDEX = "index"
    URLSET = "urlset"
    #: one URL a line
    TEXT = "text"
    #: RSS or Atom
    FEED = "feed"


_KINDS: Final = {
    "urlset": SitemapKind.URLSET,
    "url": SitemapKind.URLSET,
    "sitemapindex": SitemapKind.INDEX,
    "sitemap": SitemapKind.INDEX,
}


class NotASitemap(Exception):
    """The body has none of the formats."""


class SitemapParser:
    """Parses one body; the memory for it does not grow with its size.

    ``url`` is its own, for references that are relative. ``codings`` are those of Content-Encoding, ``charset`` that of Content-Type; gzip is recognised by its first
    bytes. ``kind`` is set with the first batch. After the last batch ``skipped`` is the number of entries without
    a usable URL, ``note`` says why a part was not read, and ``whole`` whether all was read to the end of the list.
    """

    def __init__(
        self,
        body: bytes,
        *,
        url: str | None = None,
        codings: Sequence[str] = (),
        charset: str | None = None,
        routes: bool = False,
    ) -> None:
        self._body = body
        self._routes = routes
        self._url = url
        self._codings = list(codings)
        self._charset = charset
        self.kind: SitemapKind | None = None
        self.skipped = 0
        self.note = ""
        self.whole = False

    def batches(self) -> Iterator[list[SitemapUrl]]:
        """The entries, BATCH_URLS at a time, in the order of the file.

        Raises NotASitemap, or BrokenCoding where not even the beginning can be decoded.
        """
        count = 0
        batch: list[SitemapUrl] = []
        for entry in self._entries():
            listed = self._listed(entry)
            if count == MAX_URLS or self.skipped > MAX_URLS:
                self.note = f"more than {MAX_URLS} {'URLs' if listed else 'entries without a URL'}"
                self.whole = False
                break
            if listed is None:
                self.skipped += 1
                continue
            count += 1
            batch.append(listed)
            if len(batch) == BATCH_URLS:
                yield batch
                batch = []
        if batch:
            yield batch

    def _listed(self, entry: SitemapEntry) -> SitemapUrl | None:
        written = _unescape(entry.url).strip(_BLANK)
        other = _unescape(entry.other).strip(_BLANK)
        try:
            if _ABSOLUTE(written):
                url = urls.resolve(written, routes=self._routes)
            elif _ABSOLUTE(other):
                url = urls.resolve(other, routes=self._routes)
            else:
                url = self._resolve(written, entry.bases)
        except InvalidUrl:
            return None
        return SitemapUrl(url, parse_date_ms(_unescape(entry.date).strip(_BLANK)) if entry.date else None)

    def _resolve(self, written: str, bases: Sequence[str] | None) -> str:
        """The URL of a relative reference: feeds may have some, sitemaps may not (sitemaps.org; X-R14)."""
        if self._url is None or bases is None or not written:
            raise InvalidUrl("not absolute")
        start = self._url
        for base in bases:
            start = urls.resolve(_unescape(base).strip(_BLANK), start)
        return urls.resolve(written, start, routes=self._routes)

    def _entries(self) -> Iterator[SitemapEntry]:
        texts = self._texts()
        head = ""
        for text in texts:
            head += text
            if len(head) >= _HEAD_CHARACTERS:
                break
        scanner = self._scanner(head)
        yield from scanner.feed(head)
        for text in texts:
            yield from scanner.feed(text)
        yield from scanner.finish()
        self.whole = scanner.ended and not self.note

    def _scanner(self, head: str) -> LineScanner | FeedScanner | SitemapScanner:
        start = head.lstrip(_BLANK)
        # If no tag comes first, a server may have put its own messages before it.
        match = _FIRST.match(start, _skip_prolog(start)) if start.startswith("<") else _FIRST.search(start)
        if match is None:
            if "<" not in start and any(_ABSOLUTE(line.strip(_BLANK)) for line in start.splitlines()):
                self.kind = SitemapKind.TEXT
                return LineScanner()
            raise NotASitemap(f"no sitemap: {start[:80]!r}" if start else "no sitemap: empty")
        prefix, name, attributes = match.groups()
        self.kind = _KINDS.get(name.lower(), SitemapKind.FEED)
        if self.kind is SitemapKind.FEED:
            return FeedScanner(name.lower(), prefix, attributes)
        return SitemapScanner(name, prefix, attributes)

    def _texts(self) -> Iterator[str]:
        """The text in pieces; it ends with a note where the body cannot be decoded."""
        decoder: codecs.IncrementalDecoder | None = None
        size = 0
        pieces = self._pieces()
        try:
            for piece in pieces:
                size += len(piece)
                if decoder is None:
                    decoder = codecs.getincrementaldecoder(_find_codec(piece, self._charset))("replace")
                if size > MAX_BYTES:
                    self.note = f"more than {MAX_BYTES} bytes"
                    yield decoder.decode(piece[: len(piece) - (size - MAX_BYTES)])
                    return
                yield decoder.decode(piece)
        except BrokenCoding as error:
            if decoder is None:
                raise
            self.note = str(error)

    def _pieces(self) -> Iterator[bytes]:
        """The body in pieces, without its codings; a gzipped file may be sent with a content coding besides."""
        body = self._body
        for coding in reversed(self._codings[-1:]):
            pieces = decode_in_pieces(body, coding)
            first = next(pieces, b"")
            if not first.startswith(_GZIP):
                yield first
                yield from pieces
                return
            body = _join(first, pieces)
        if body.startswith(_GZIP):
            yield from decode_in_pieces(body, "gzip")
        else:
            view = memoryview(body)
            for start in range(0, len(body), _HEAD_CHARACTERS):
                yield bytes(view[start : start + _HEAD_CHARACTERS])


def _join(first: bytes, pieces: Iterator[bytes]) -> bytes:
    found = bytearray(first)
    for piece in pieces:
        found += piece
        if len(found) > MAX_BYTES:
            break
    return bytes(found)


def _skip_prolog(text: str) -> int:
    position = 0
    while match := _NO_ELEMENT.match(text, position):
        position = match.end()
    return position


def _find_codec(first: bytes, charset: str | None) -> str:
    """The codec of a file by its first bytes: of its byte order mark, its declaration, its header, or UTF-8."""
    for mark, codec in _BOMS:
        if first.startswith(mark):
            return codec
    declared = _DECLARED.match(first[:_HEAD_BYTES])
    for label in (declared[1].decode("ascii") if declared else None, charset):
        encoding = find_encoding(label) if label else None
        # A declaration that can be read as ASCII is not in UTF-16, whatever it says.
        if encoding and not encoding.startswith("utf-16"):
            return find_codec(encoding)
    return "utf-8"


def _unescape(text: str) -> str:
    return _REFERENCE.sub(_unescape_one, text) if "&" in text else text


def _unescape_one(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    if name:
        return _NAMED[name]
    number = int(decimal) if decimal else int(hexadecimal, 16)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return "\ufffd"
    return chr(number)


@lru_cache(maxsize=4096)
def parse_date_ms(text: str) -> int | None:
    """A lastmod, updated, date or pubDate in ms since 1970 (W3C datetime, RFC 822); None where it cannot be read.

    A date without a time is the end of that day, month or year in UTC: the page may have changed at any hour, and
    a moment that is too late only costs a request. A time without a zone is UTC.
    """
    text = text.strip()[:_MAX_DATE_CHARACTERS]
    match = _W3C.fullmatch(text)
    try:
        return clock.to_ms(_parse_w3c(match) if match else _parse_rfc822(text))
    except (ValueError, OverflowError, TypeError):
        return None


def _parse_w3c(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if hour is None:
        last_month = int(month or 12)
        last_day = int(day) if day else calendar.monthrange(int(year), last_month)[1]
        return datetime(int(year), last_month, last_day, tzinfo=UTC) + _DAY - _MS
    # A leap second and the 24th hour mean the second and the day after.
    start = datetime(int(year), int(month), int(day), tzinfo=_parse_zone(zone))
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 60:
        raise ValueError("no time of a day")
    milliseconds = int((fraction or "0").ljust(3, "0")[:3])
    return start + timedelta(hours=int(hour), minutes=int(minute), seconds=int(second or 0), milliseconds=milliseconds)


def _parse_zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(-offset if text[0] == "-" else offset)


def _parse_rfc822(text: str) -> datetime:
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
