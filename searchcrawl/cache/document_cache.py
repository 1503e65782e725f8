"""The cached pages of one source, read by place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson
from isal import isal_zlib

from searchcrawl import failpoints
from searchcrawl.bodies import INLINE_BYTES, PIECE_BYTES, Body, Spool
from searchcrawl.cache.segment import (
    BASE_URL,
    BREAK,
    END,
    GZIP,
    RENAMED,
    VERSION,
    SegmentWriter,
    StoredPage,
    begin_digest,
    write_digest,
)
from searchcrawl.cache.storage import Storage
from searchcrawl.exceptions import CacheError, DamagedRecord
from searchcrawl.items import Place

#: The headers of a record are shorter, but for the URL.
_HEAD_BYTES: Final = 1 << 17
#: A record of an answer that holds more has a large body.
_MOST_BYTES: Final = INLINE_BYTES + 2 * _HEAD_BYTES


class DocumentCache:
    """Reads pages by their place, also from the segment that is being written; safe for threads.

    A damaged record raises DamagedRecord, any other problem CacheError.
    """

    def __init__(self, storage: Storage, spools: Path) -> None:
        """``spools`` is the folder for large bodies that are read."""
        self.storage = storage
        self._spools = spools

    def open_writer(self, number: int, committed_bytes: int) -> SegmentWriter:
        """Opens a writer for segment ``number``, of which ``committed_bytes`` are committed in the table."""
        return SegmentWriter(self.storage, number, committed_bytes=committed_bytes)

    def read_fields(self, place: Place, *, url: str | None = None) -> dict[str, Any]:
        """Reads the fields of a page; raises DamagedRecord where ``url`` is given and the record is of another page."""
        member = self.read_bytes(place.segment, place.offset + place.response_bytes, place.fields_bytes)
        try:
            found, fields = decode_fields(member)
            _expect(found, url)
        except DamagedRecord as error:
            raise self._add_place(place, error) from error
        return fields

    def read_page(self, place: Place, *, url: str | None = None) -> StoredPage:
        """Reads a whole page; raises DamagedRecord where ``url`` is given and the record is of another page.

        A large body is read in pieces, and is on the disk; raises SpoolFailed where it cannot be put there.
        """
        if place.response_bytes > INLINE_BYTES:
            return self._read_large_page(place, url)
        members = self.read_bytes(place.segment, place.offset, place.response_bytes + place.fields_bytes)
        try:
            fields_url, fields = decode_fields(members[place.response_bytes :])
            page = decode_response(members[: place.response_bytes], fields=fields)
            if page is not None:
                _expect(fields_url, page.url)
                _expect(page.url, url)
        except DamagedRecord as error:
            raise self._add_place(place, error) from error
        return page or self._read_large_page(place, url)

    def _read_large_page(self, place: Place, url: str | None) -> StoredPage:
        fields = self.read_fields(place, url=url)
        pieces = self.read_pieces(place.segment, place.offset, place.response_bytes)
        try:
            page = decode_large_response(pieces, Spool(self._spools), fields=fields)
            _expect(page.url, url)
        except DamagedRecord as error:
            raise self._add_place(place, error) from error
        return page

    def read_bytes(self, number: int, offset: int, length: int) -> bytes:
        """Reads the records of a page as they are; raises DamagedRecord where they are not all there."""
        data = self.storage.read(number, offset, length)
        if len(data) < length:
            raise DamagedRecord(f"{self.storage.show(number)}: ends before byte {offset + length}")
        return data

    def read_pieces(self, number: int, offset: int, length: int) -> Iterator[bytes]:
        """As ``read_bytes``, in pieces of bounded size."""
        for at in range(offset, offset + length, PIECE_BYTES):
            yield self.read_bytes(number, at, min(PIECE_BYTES, offset + length - at))

    def delete(self, number: int) -> None:
        """Deletes a segment, if it is there."""
        try:
            self.storage.delete(number)
            failpoints.reach("cache.freed")
        except OSError as error:
            raise CacheError(f"{self.storage.show(number)}: {error.strerror or error}") from error

    def list_segments(self) -> Iterator[tuple[int, int]]:
        """Number and size in bytes of each segment, by rising number."""
        return self.storage.list()

    def close(self) -> None:
        """Closes what was kept open for reading; may be called twice."""
        self.storage.close()

    def _add_place(self, place: Place, error: DamagedRecord) -> DamagedRecord:
        return DamagedRecord(f"{self.storage.show(place.segment)} at byte {place.offset}: {error}")


def _expect(found: str, wanted: str | None) -> None:
    if wanted is not None and found != wanted:
        raise DamagedRecord(f"holds {found} instead of {wanted}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarcRecord:
    """A parsed record: its WARC headers by lower-case name, and its block."""

    headers: Mapping[str, str]
    block: bytes


def decode(member: bytes, *, record_type: str) -> WarcRecord:
    """Parses the record of one whole gzip member; raises DamagedRecord where a check fails.

    Checked are the gzip checksum, the length, the block digest and the record's type.
    """
    return _parse_record(_inflate(member, 0), record_type)


def _parse_record(data: bytes, record_type: str) -> WarcRecord:
    head, separator, rest = data.partition(END)
    headers = _parse_head(head, record_type, is_whole=bool(separator))
    block = rest[: -len(END)]
    _check_block(headers, len(block), begin_digest(block), is_ended=rest.endswith(END))
    return WarcRecord(headers=headers, block=block)


def _parse_head(head: bytes, record_type: str, *, is_whole: bool) -> dict[str, str]:
    version, *lines = head.split(BREAK)
    if version != VERSION or not is_whole:
        raise DamagedRecord("not a WARC record")
    headers = dict(_parse_header(line) for line in lines)
    if headers.get("warc-type") != record_type:
        raise DamagedRecord(f"a record of type {headers.get('warc-type')} where {record_type} was expected")
    return headers


def _check_block(headers: Mapping[str, str], size: int, digest: hashlib._Hash, *, is_ended: bool) -> None:
    if not is_ended or headers.get("content-length") != str(size):
        raise DamagedRecord(f"the block has {size} bytes, its header says {headers.get('content-length')}")
    if headers.get("warc-block-digest") != write_digest(digest):
        raise DamagedRecord("the block does not match its digest")


def _inflate(member: bytes, most: int) -> bytes:
    """What a gzip member holds; more than ``most`` bytes (0: any number) where that is more, and not all of it."""
    inflater = isal_zlib.decompressobj(GZIP)
    with _naming_breaks():
        data = inflater.decompress(member, most + 1 if most else 0)
    if most and len(data) > most:
        return data
    _check_end(inflater)
    return data


@contextmanager
def _naming_breaks() -> Iterator[None]:
    try:
        yield
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls the class an instance
        raise DamagedRecord(f"broken gzip member: {error}") from error


def _check_end(inflater: Any) -> None:
    if not inflater.eof or inflater.unused_data:
        raise DamagedRecord("the gzip member does not end where it should")


def _parse_header(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("utf-8", "replace").partition(": ")
    return name.lower(), value


def decode_response(member: bytes, *, fields: Mapping[str, Any]) -> StoredPage | None:
    """Parses the page of a response record; None where it is large. Raises DamagedRecord if the record is not complete."""
    data = _inflate(member, _MOST_BYTES)
    if len(data) > _MOST_BYTES:
        return None
    found = _parse_record(data, "response")
    head, _, body = found.block.partition(END)
    return _build_page(found.headers, head, body, fields, record=member)


def decode_large_response(pieces: Iterable[bytes], spool: Spool, *, fields: Mapping[str, Any]) -> StoredPage:
    """As ``decode_response`` for a record in pieces, whose body goes to ``spool``; raises SpoolFailed as well."""
    parts = _inflate_pieces(pieces)
    head, rest, is_whole = _take_head(b"", parts)
    headers = _parse_head(head, "response", is_whole=is_whole)
    http_head, rest, _ = _take_head(rest, parts)
    digest, size = begin_digest(http_head + END), len(http_head) + len(END)
    # What ends the record is no part of the block.
    for part in parts:
        rest += part
        taken, rest = rest[: -len(END)], rest[-len(END) :]
        digest.update(taken)
        spool.write(taken)
    _check_block(headers, size + spool.size, digest, is_ended=rest == END)
    return _build_page(headers, http_head, spool.finish(), fields)


def _take_head(begun: bytes, parts: Iterator[bytes]) -> tuple[bytes, bytes, bool]:
    """What stands before a blank line, what is after it so far, and whether there is such a line."""
    head = bytearray(begun)
    while END not in head and len(head) <= _HEAD_BYTES and (part := next(parts, None)) is not None:
        head += part
    found, separator, rest = bytes(head).partition(END)
    return found, rest, bool(separator)


def _inflate_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    inflater = isal_zlib.decompressobj(GZIP)
    for piece in pieces:
        rest, part = piece, b""
        # Where it gave as much as it may, it may have more.
        while rest or len(part) == PIECE_BYTES:
            with _naming_breaks():
                part = inflater.decompress(rest, PIECE_BYTES)
            rest = inflater.unconsumed_tail
            yield part
    _check_end(inflater)


def _build_page(
    headers: Mapping[str, str], http_head: bytes, body: Body, fields: Mapping[str, Any], *, record: bytes = b""
) -> StoredPage:
    try:
        status_line, _, *lines = http_head.split(BREAK)
        return StoredPage(
            url=headers["warc-target-uri"],
            status=int(status_line.split(b" ")[1]),
            headers=tuple(_restore_header(line) for line in lines),
            body=body,
            fetched_at=datetime.fromisoformat(headers["warc-date"]),
            fields=fields,
            base_url=headers.get(BASE_URL.lower()),
            record=record,
            record_id=headers["warc-record-id"],
        )
    except (ValueError, KeyError, IndexError) as error:
        raise DamagedRecord(f"not a stored answer: {error!r}") from error


def decode_fields(member: bytes) -> tuple[str, dict[str, Any]]:
    """Parses the URL and the fields of a conversion record; raises DamagedRecord if it is not complete."""
    found = decode(member, record_type="conversion")
    try:
        fields = orjson.loads(found.block)
    except orjson.JSONDecodeError as error:
        raise DamagedRecord(f"the fields are not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise DamagedRecord("the fields are not an object")
    return found.headers.get("warc-target-uri", ""), fields


def _restore_header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b": ")
    return (name[len(RENAMED) :] if name.lower().startswith(RENAMED) else name), value


#: Where the URLs of a record are: that of its page, and the one to which redirects led.
_NAMES: Final = (b"warc-target-uri: ", BASE_URL.lower().encode() + b": ")


def find_gaps(size: int, places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts of a segment of ``size`` bytes, as (begin, end), that are in none of ``places`` (offset, length)."""
    position = 0
    for offset, length in sorted(places):
        if offset > position:
            yield position, offset
        position = max(position, offset + length)
    if position < size:
        yield position, size


def has_record_of(cache: DocumentCache, number: int, begin: int, end: int, is_meant: Callable[[str], bool]) -> bool:
    """Whether a part of a segment has a record of a URL that is meant, or bytes that cannot be read as records.

    Raises CacheError where the file cannot be opened.
    """
    try:
        chunks = cache.read_pieces(number, begin, end - begin)
        return any(not found or any(map(is_meant, found)) for found in _read_urls(chunks))
    except DamagedRecord:
        return True


def _read_urls(chunks: Iterator[bytes]) -> Iterator[list[str]]:
    """The URLs of each record; none for what is no whole record."""
    rest = b""
    while rest or (rest := next(chunks, b"")):
        inflater, head = isal_zlib.decompressobj(GZIP), bytearray()
        while not inflater.eof:
            if not rest and not (rest := next(chunks, b"")):
                yield []
                return
            try:
                data = inflater.decompress(rest)
            except isal_zlib.error:  # type: ignore[misc]  # its stub calls the class an instance
                yield []
                return
            head += data[: max(0, _HEAD_BYTES - len(head))]
            rest = inflater.unused_data
        yield _find_urls(bytes(head))


def _find_urls(head: bytes) -> list[str]:
    lines = head.partition(END)[0].split(b"\r\n")
    named = [(line, name) for line in lines for name in _NAMES if line[: len(name)].lower() == name]
    return [line[len(name) :].decode("utf-8", "replace") for line, name in named]
