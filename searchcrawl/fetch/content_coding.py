"""Undoes content codings within limits, and notices what is cut or broken (RFC 9110 §8.4; L6)."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: What we say we accept; in the order of Scrapy's own list.
ACCEPTED: Final = b"gzip, deflate, br, zstd"
MAX_LAYERS: Final = 2
#: Beyond ``_RATIO_FROM_BYTES`` decoded, a body may be this many times as large as what was sent.
MAX_RATIO: Final = 1000
_RATIO_FROM_BYTES: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 256 * 1024
#: Values that servers send although nothing was coded.
_NOTHING: Final = frozenset({"", "identity", "none", "utf-8", "utf8"})
#: RFC 9659: larger windows are not to be used over HTTP.
_ZSTD_WINDOW_LOG: Final = 23


class BrokenCoding(Exception):
    """The coded body is cut, fails its check, or has a coding that nobody knows; ``cut`` if more may come."""

    def __init__(self, message: str, *, cut: bool = True) -> None:
        self.cut = cut
        super().__init__(message)


class DecodedTooLarge(Exception):
    """The decoded body passes a limit."""


def codings_of(values: list[bytes]) -> list[str]:
    """The codings named by Content-Encoding headers, in the order in which they were applied."""
    names = b",".join(values).decode("latin-1").lower().split(",")
    return [name for name in (part.strip() for part in names) if name not in _NOTHING]


def undo(body: bytes, codings: list[str], *, max_bytes: int) -> bytes:
    """The body before ``codings`` were applied.

    Raises BrokenCoding, or DecodedTooLarge past ``max_bytes`` (0: no limit) or a ratio of 1000.
    """
    if len(codings) > MAX_LAYERS:
        raise BrokenCoding(f"{len(codings)} content codings", cut=False)
    for coding in reversed(codings):
        if not body:
            return body
        body = _undo_one(body, coding, max_bytes=max_bytes)
    return body


def undo_prefix(body: bytes, codings: list[str], *, max_bytes: int) -> bytes:
    """At most ``max_bytes`` of the decoded body, as far as it can be decoded."""
    for coding in reversed(codings[-MAX_LAYERS:]):
        pieces: list[bytes] = []
        size = 0
        try:
            for piece in _decoder(coding)(body):
                pieces.append(piece)
                size += len(piece)
                if size >= max_bytes:
                    break
        except BrokenCoding:
            if not pieces:
                raise
        body = b"".join(pieces)[:max_bytes]
    return body


def _undo_one(body: bytes, coding: str, *, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in _decoder(coding)(body):
        size += len(piece)
        if max_bytes and size > max_bytes:
            raise DecodedTooLarge(f"more than {max_bytes} bytes decoded from {len(body)} ({coding})")
        if size > _RATIO_FROM_BYTES and size > MAX_RATIO * len(body):
            raise DecodedTooLarge(f"more than {MAX_RATIO} times the {len(body)} bytes sent ({coding})")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _decoder(coding: str) -> Callable[[bytes], Iterator[bytes]]:
    if coding in {"gzip", "x-gzip"}:
        return _gzip
    if coding == "deflate":
        return _deflate
    if coding == "br":
        return _brotli
    if coding == "zstd":
        return _zstd
    raise BrokenCoding(f"unknown content coding {coding[:40]!r}", cut=False)


def _gzip(body: bytes) -> Iterator[bytes]:
    """Every member; what follows the last one is ignored, as browsers do."""
    while True:
        stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        yield from _inflate(stream, body, "gzip")
        body = stream.unused_data
        if not body.startswith(b"\x1f\x8b"):
            return


def _deflate(body: bytes) -> Iterator[bytes]:
    """With the zlib wrapper as RFC 9110 says, or without it as some servers send it."""
    wrapped = (body[0] & 0x0F) == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    wbits = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
    yield from _inflate(zlib.decompressobj(wbits), body, "deflate")


class _Inflating(Protocol):
    """zlib's decompressor, whose type has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def _inflate(stream: _Inflating, body: bytes, coding: str) -> Iterator[bytes]:
    data = body
    while not stream.eof:
        try:
            piece = stream.decompress(data, _CHUNK_BYTES)
        except zlib.error as error:
            raise BrokenCoding(f"broken {coding}: {error}") from error
        if piece:
            yield piece
        data = stream.unconsumed_tail
        if not data and not piece:
            break
    if not stream.eof:
        raise BrokenCoding(f"cut {coding}")


def _brotli(body: bytes) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    data = body
    while not stream.is_finished():
        try:
            piece = stream.process(data, output_buffer_limit=_CHUNK_BYTES)
        except brotli.error as error:
            raise BrokenCoding(f"broken br: {error}") from error
        if piece:
            yield piece
        data = b""
        if not piece and stream.can_accept_more_data():
            break
    if not stream.is_finished():
        raise BrokenCoding("cut br")


def _zstd(body: bytes) -> Iterator[bytes]:
    """Every frame; what follows the last one and is no frame is ignored."""
    while True:
        stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})
        data = body
        while not stream.eof:
            try:
                piece = stream.decompress(data, _CHUNK_BYTES)
            except zstd.ZstdError as error:
                raise BrokenCoding(f"broken zstd: {error}") from error
            if piece:
                yield piece
            data = b""
            if not piece and stream.needs_input:
                raise BrokenCoding("cut zstd")
        body = stream.unused_data
        if not body.startswith(b"\x28\xb5\x2f\xfd"):
            return
