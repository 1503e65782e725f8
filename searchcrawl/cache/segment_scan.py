"""Reads what no row names any more: the URLs of the records in a part of a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from isal import isal_zlib

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import BASE_URL
from searchcrawl.exceptions import DamagedRecord

_GZIP: Final = 16 + isal_zlib.MAX_WBITS
_CHUNK_BYTES: Final = 1 << 20
#: The headers of a record are shorter, but for the URL.
_HEAD_BYTES: Final = 1 << 17
_HEAD_END: Final = b"\r\n\r\n"
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
        inflater, head = isal_zlib.decompressobj(_GZIP), bytearray()
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
    lines = head.partition(_HEAD_END)[0].split(b"\r\n")
    named = [(line, name) for line in lines for name in _NAMES if line[: len(name)].lower() == name]
    return [line[len(name) :].decode("utf-8", "replace") for line, name in named]
