"""Reads what no row names any more: the URLs of the records in a part of a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from isal import isal_zlib

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.exceptions import DamagedRecord

_GZIP: Final = 16 + isal_zlib.MAX_WBITS
_CHUNK_BYTES: Final = 1 << 20
#: The headers of a record are shorter, but for the URL.
_HEAD_BYTES: Final = 1 << 17
_HEAD_END: Final = b"\r\n\r\n"
_TARGET: Final = b"warc-target-uri: "


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
        return any(url is None or is_meant(url) for url in _read_urls(chunks))
    except DamagedRecord:
        return True


def _read_urls(chunks: Iterator[bytes]) -> Iterator[str | None]:
    """The URL of each record; None for what is no whole record."""
    rest = b""
    while rest or (rest := next(chunks, b"")):
        inflater, head = isal_zlib.decompressobj(_GZIP), bytearray()
        while not inflater.eof:
            if not rest and not (rest := next(chunks, b"")):
                yield None
                return
            try:
                data = inflater.decompress(rest)
            except isal_zlib.error:  # type: ignore[misc]  # its stub calls the class an instance
                yield None
                return
            head += data[: max(0, _HEAD_BYTES - len(head))]
            rest = inflater.unused_data
        yield _read_target(bytes(head))


def _read_target(head: bytes) -> str | None:
    lines = head.partition(_HEAD_END)[0].split(b"\r\n")
    for line in lines:
        if line[: len(_TARGET)].lower() == _TARGET:
            return line[len(_TARGET) :].decode("utf-8", "replace")
    return None
