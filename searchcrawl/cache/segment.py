"""A segment of the document cache: WARC records, one after the other (docs: decisions/one-writer).

A page is two records, one after the other, each a gzip member: ``response`` with the answer of the server, and
``conversion`` with the extracted fields as JSON, which refers to the first. The body is stored decoded, so headers
that describe the transfer are renamed ``X-Crawler-…``. A large body is compressed and written in pieces.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import chain
from typing import Any

import orjson
from isal import isal_zlib

from searchcrawl import failpoints
from searchcrawl.bodies import Body, LargeBody, list_pieces
from searchcrawl.cache.storage import Storage
from searchcrawl.exceptions import CacheError
from searchcrawl.items import Place

GZIP = 16 + isal_zlib.MAX_WBITS
VERSION = b"WARC/1.1"
#: Ends a line of a head; ends a head, and a record.
BREAK = b"\r\n"
END = b"\r\n\r\n"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [one + other for one in _BASE32 for other in _BASE32]


def make_record_id() -> str:
    """A new WARC-Record-ID: a random UUID (RFC 9562 §5.4), made in a third of the time of the standard library."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}>"


def encode(headers: Mapping[str, str], block: bytes) -> bytes:
    """Builds one gzip member (level 1) with these headers, Content-Length and WARC-Block-Digest (sha1, base32)."""
    head = _build_head(headers, write_digest(begin_digest(block)), len(block))
    # It takes a quarter of the time of zlib at this level, and the result is no larger. One call, because each call
    # releases the interpreter lock.
    return isal_zlib.compress(b"".join((head, block, END)), 1, GZIP)


def _encode_large(headers: Mapping[str, str], http_head: bytes, body: LargeBody) -> Iterator[bytes]:
    """As ``encode``, in pieces, for a block of two parts."""
    digest = begin_digest(http_head)
    for piece in list_pieces(body):
        digest.update(piece)
    compressor = isal_zlib.compressobj(1, isal_zlib.DEFLATED, GZIP)
    head = _build_head(headers, write_digest(digest), len(http_head) + len(body))
    for piece in chain((head + http_head,), list_pieces(body), (END,)):
        if packed := compressor.compress(piece):
            yield packed
    yield compressor.flush()


def _build_head(headers: Mapping[str, str], digest: str, size: int) -> bytes:
    lines = [VERSION]
    lines += [f"{name}: {value}".encode() for name, value in headers.items()]
    lines += [f"WARC-Block-Digest: {digest}".encode("ascii"), b"Content-Length: %d" % size]
    return BREAK.join(lines) + END


def begin_digest(block: bytes = b"") -> hashlib._Hash:
    """The digest of a block, to be gone on with."""
    # WARC tools write and check sha1 in base32; it guards only against accidents.
    return hashlib.sha1(block, usedforsecurity=False)


def write_digest(digest: hashlib._Hash) -> str:
    """A digest as it stands in a record."""
    number = int.from_bytes(digest.digest())
    # In a third of the time of the standard library: two letters are ten of the 160 bits.
    return "sha1:" + "".join([_PAIRS[number >> shift & 1023] for shift in range(150, -1, -10)])


#: So the names of headers of the transfer begin in a record.
RENAMED = b"x-crawler-"
#: The WARC header of an answer that came from another URL than that of its page, after redirects.
BASE_URL = "X-Crawler-Base-URI"
#: Headers that do not describe the stored body.
_TRANSFER = frozenset({b"content-encoding", b"transfer-encoding", b"content-length"})
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_NO_BREAKS = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A page as the cache keeps it: the answer with its decoded body, and the extracted fields.

    ``fields`` may have all values that orjson can write; datetimes are read back as ISO 8601 text. ``base_url`` is the
    URL that gave the body where redirects led to another one than ``url``, else None. ``record`` is the response record
    as it is in a segment (empty where the body is large), and ``record_id`` its WARC-Record-ID: a page that has them is
    written with this record.
    """

    url: str
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: Body
    fetched_at: datetime
    fields: Mapping[str, Any]
    base_url: str | None = None
    record: bytes = field(default=b"", compare=False)
    record_id: str = field(default="", compare=False)


def encode_page(page: StoredPage) -> tuple[bytes | Iterator[bytes], bytes]:
    """Builds the two gzip members of a page, the first in pieces where the body is large.

    Raises TypeError where a field cannot be written as JSON.
    """
    response_id = page.record_id or make_record_id()
    about = {
        "WARC-Target-URI": page.url,
        "WARC-Date": page.fetched_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    response = {
        "WARC-Type": "response",
        "WARC-Record-ID": response_id,
        **about,
        **({BASE_URL: page.base_url} if page.base_url is not None else {}),
        "Content-Type": "application/http; msgtype=response",
    }
    fields = {
        "WARC-Type": "conversion",
        "WARC-Record-ID": make_record_id(),
        **about,
        "WARC-Refers-To": response_id,
        "Content-Type": "application/json",
    }
    fields_block = orjson.dumps(dict(page.fields), option=orjson.OPT_UTC_Z)
    return _encode_answer(page, response), encode(fields, fields_block)


def _encode_answer(page: StoredPage, headers: Mapping[str, str]) -> bytes | Iterator[bytes]:
    # To compress and to digest the same answer once more would take as long as all the rest.
    if page.record:
        return page.record
    if isinstance(page.body, bytes):
        return encode(headers, _build_http_head(page) + page.body)
    return _encode_large(headers, _build_http_head(page), page.body)


def _build_http_head(page: StoredPage) -> bytes:
    lines = [
        f"HTTP/1.1 {page.status} {_PHRASES.get(page.status, '')}".encode("ascii"),
        b"Content-Length: %d" % len(page.body),
    ]
    for name, value in page.headers:
        lower = name.lower()
        prefix = b"X-Crawler-" if lower in _TRANSFER or lower.startswith(RENAMED) else b""
        lines.append((prefix + name + b": " + value).translate(_NO_BREAKS))
    return BREAK.join(lines) + END


class SegmentWriter:
    """Appends pages to a segment; used by one thread.

    ``committed_bytes`` of it are committed in the table; bytes after them are cut off. Raises DamagedRecord
    where it is shorter or missing, SegmentInUse where another writer has it open, CacheError where it cannot
    be written. After a CacheError the writer can continue.
    """

    def __init__(self, storage: Storage, number: int, *, committed_bytes: int) -> None:
        self.number = number
        self._name = storage.show(number)
        self._position = committed_bytes
        self._torn = False
        with self._naming():
            self._segment = storage.open(number, committed_bytes)

    @property
    def position(self) -> int:
        """The offset after the last whole page."""
        return self._position

    def append(self, page: StoredPage) -> Place:
        """Appends a page; it is durable after ``sync``."""
        return self.append_records(*encode_page(page))

    def append_records(self, response: bytes | Iterable[bytes], fields: bytes) -> Place:
        """Appends the two records of a page (``encode_page``); they are durable after ``sync``."""
        with self._naming():
            failpoints.reach("segment.append")
            self._cut_failed_append()
            self._torn = True
            middle = self._write((response,) if isinstance(response, bytes) else response)
            failpoints.reach("segment.append.mid")
            self._segment.write(fields, middle)
        self._torn = False
        place = Place(self.number, self._position, middle - self._position, len(fields))
        self._position = middle + len(fields)
        return place

    def copy(self, records: Iterable[bytes]) -> int:
        """Appends the records of a page as they are in another segment, in pieces; returns the offset. Durable after ``sync``.

        Raises what ``records`` does: then nothing was appended.
        """
        with self._naming():
            self._cut_failed_append()
            self._torn = True
            end = self._write(records)
        self._torn = False
        place, self._position = self._position, end
        return place

    def _write(self, pieces: Iterable[bytes]) -> int:
        """Writes after all whole pages; returns where it ends."""
        end = self._position
        for piece in pieces:
            self._segment.write(piece, end)
            end += len(piece)
        return end

    def sync(self) -> None:
        """All appended pages survive a loss of power from now on."""
        with self._naming():
            self._cut_failed_append()
            self._segment.sync()
            failpoints.reach("segment.synced")

    def close(self) -> None:
        """Ends writing; may be called twice. Pages that were not synced are lost if the power fails."""
        self._segment.close()

    def _cut_failed_append(self) -> None:
        """Cuts off the part of a page that a failed append has written."""
        if self._torn:
            self._segment.cut(self._position)
            self._torn = False

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Names the segment in errors."""
        try:
            yield
        except OSError as error:
            raise CacheError(f"{self._name}: {error.strerror or error}") from error
