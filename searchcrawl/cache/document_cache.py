"""The cached pages of one source, read by place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from isal import isal_zlib

from searchcrawl import failpoints
from searchcrawl.cache.segment import (
    BASE_URL,
    BREAK,
    END,
    GZIP,
    RENAMED,
    VERSION,
    SegmentWriter,
    StoredPage,
    compute_digest,
)
from searchcrawl.cache.storage import Storage
from searchcrawl.exceptions import CacheError, DamagedRecord
from searchcrawl.items import Place


class DocumentCache:
    """Reads pages by their place, also from the segment that is being written; safe for threads.

    A damaged record raises DamagedRecord, any other problem CacheError.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

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
        """Reads a whole page; raises DamagedRecord where ``url`` is given and the record is of another page."""
        members = self.read_bytes(place.segment, place.offset, place.response_bytes + place.fields_bytes)
        try:
            fields_url, fields = decode_fields(members[place.response_bytes :])
            page = decode_response(members[: place.response_bytes], fields=fields)
            _expect(fields_url, page.url)
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
    head, separator, rest = _inflate(member).partition(END)
    version, *lines = head.split(BREAK)
    if version != VERSION or not separator:
        raise DamagedRecord("not a WARC record")
    headers = dict(_parse_header(line) for line in lines)
    block = rest[: -len(END)]
    if not rest.endswith(END) or headers.get("content-length") != str(len(block)):
        raise DamagedRecord(f"the block has {len(block)} bytes, its header says {headers.get('content-length')}")
    if headers.get("warc-block-digest") != compute_digest(block):
        raise DamagedRecord("the block does not match its digest")
    if headers.get("warc-type") != record_type:
        raise DamagedRecord(f"a record of type {headers.get('warc-type')} where {record_type} was expected")
    return WarcRecord(headers=headers, block=block)


def _inflate(member: bytes) -> bytes:
    inflater = isal_zlib.decompressobj(GZIP)
    try:
        data = inflater.decompress(member)
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls the class an instance
        raise DamagedRecord(f"broken gzip member: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise DamagedRecord("the gzip member does not end where it should")
    return data


def _parse_header(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("utf-8", "replace").partition(": ")
    return name.lower(), value


def decode_response(member: bytes, *, fields: Mapping[str, Any]) -> StoredPage:
    """Parses the page of a response record; raises DamagedRecord if the record is not complete."""
    found = decode(member, record_type="response")
    head, _, body = found.block.partition(END)
    try:
        status_line, _, *lines = head.split(BREAK)
        return StoredPage(
            url=found.headers["warc-target-uri"],
            status=int(status_line.split(b" ")[1]),
            headers=tuple(_restore_header(line) for line in lines),
            body=body,
            fetched_at=datetime.fromisoformat(found.headers["warc-date"]),
            fields=fields,
            base_url=found.headers.get(BASE_URL.lower()),
            record=member,
            record_id=found.headers["warc-record-id"],
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


_CHUNK_BYTES: Final = 1 << 20
#: The headers of a record are shorter, but for the URL.
_HEAD_BYTES: Final = 1 << 17
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
        chunks = (
            cache.read_bytes(number, start, min(_CHUNK_BYTES, end - start)) for start in range(begin, end, _CHUNK_BYTES)
        )
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
