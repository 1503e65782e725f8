"""Decodes content codings within limits, and notices what is cut or broken (RFC 9110 §8.4; L6)."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Final

import brotli

from searchcrawl.bodies import Body, Spool, hold, read_whole
from searchcrawl.html.encoding import find_encoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: The value of Accept-Encoding, in the order of Scrapy's own list.
ACCEPTED: Final = b"gzip, deflate, br, zstd"
MAX_LAYERS: Final = 2
#: A decoded body of more than ``_RATIO_FROM_BYTES`` may be at most this many times as large as the body that was sent.
MAX_RATIO: Final = 1000
_RATIO_FROM_BYTES: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 256 * 1024
#: Decompressors get their input in pieces: each call copies the rest of its input, and each member the input after it.
_FED_BYTES: Final = 64 * 1024
#: The most members of gzip, or frames of zstd, in one body.
MAX_MEMBERS: Final = 10_000
#: What servers write although the body is not compressed, besides charsets: encodings of mail, and chunks, undone before.
_NOTHING: Final = frozenset({"", "identity", "none", "null", "binary", "7bit", "8bit", "chunked", "aws-chunked"})
#: RFC 9659: larger windows are not to be used over HTTP.
_ZSTD_WINDOW_LOG: Final = 23


class BrokenCoding(Exception):
    """The coded body is cut, fails its check, or has an unknown coding; ``cut`` if more may come."""

    def __init__(self, message: str, *, cut: bool = True) -> None:
        self.cut = cut
        super().__init__(message)


class DecodedTooLarge(Exception):
    """The decoded body exceeds a limit."""


def parse_codings(values: list[bytes]) -> list[str]:
    """The codings named by Content-Encoding headers, in the order in which they were applied.

    What is known to be no coding is left out. Other unknown names stay: a body that cannot be read is no page.
    """
    items = b",".join(values).decode("latin-1").lower().split(",")
    names = (item.partition(";")[0].strip() for item in items)
    # None, a charset, or a media type.
    return [
        name
        for name in names
        if name not in _NOTHING and "/" not in name and find_encoding(name.removeprefix("charset=")) is None
    ]


def decode_body(body: bytes, codings: list[str], *, max_bytes: int) -> bytes:
    """The body before ``codings`` were applied.

    Raises BrokenCoding, or DecodedTooLarge past ``max_bytes`` (0: no limit) or a ratio of 1000.
    """
    return read_whole(decode_large(body, codings, max_bytes=max_bytes, new_spool=hold))


def decode_large(body: Body, codings: list[str], *, max_bytes: int, new_spool: Callable[[], Spool]) -> Body:
    """As ``decode_body``, by way of spools; raises SpoolFailed as well."""
    _check_layers(codings)
    for coding in reversed(codings):
        if not body:
            return body
        body = _decode_one(body, coding, max_bytes=max_bytes, spool=new_spool())
    return body


def decode_prefix(body: bytes, codings: list[str], *, max_bytes: int) -> bytes:
    """At most ``max_bytes`` of the decoded body, as far as it can be decoded; raises BrokenCoding."""
    return read_whole(decode_large_prefix(body, codings, max_bytes=max_bytes, new_spool=hold))


def decode_large_prefix(body: Body, codings: list[str], *, max_bytes: int, new_spool: Callable[[], Spool]) -> Body:
    """As ``decode_prefix``, by way of spools; raises SpoolFailed as well."""
    _check_layers(codings)
    for coding in reversed(codings):
        if not body:
            return body
        spool = new_spool()
        try:
            for piece in decode_in_pieces(body, coding):
                spool.write(piece[: max_bytes - spool.size])
                if spool.size >= max_bytes:
                    break
        except BrokenCoding:
            if not spool.size:
                raise
        body = spool.finish()
    return body


def decode_in_pieces(body: Body, coding: str) -> Iterator[bytes]:
    """The body before one coding was applied, in pieces of bounded size, as far as it can be decoded.

    Raises BrokenCoding where it is unknown, at once, or cut or broken, after the pieces before; the caller keeps the limits.
    """
    decode = _DECODERS.get(coding)
    if decode is None:
        raise BrokenCoding(f"unknown content coding {coding[:40]!r}", cut=False)
    return decode(body)


def _check_layers(codings: list[str]) -> None:
    if len(codings) > MAX_LAYERS:
        raise BrokenCoding(f"{len(codings)} content codings", cut=False)


def _decode_one(body: Body, coding: str, *, max_bytes: int, spool: Spool) -> Body:
    for piece in decode_in_pieces(body, coding):
        size = spool.size + len(piece)
        if max_bytes and size > max_bytes:
            raise DecodedTooLarge(f"more than {max_bytes} bytes decoded from {len(body)} ({coding})")
        if size > _RATIO_FROM_BYTES and size > MAX_RATIO * len(body):
            raise DecodedTooLarge(f"more than {MAX_RATIO} times the {len(body)} bytes sent ({coding})")
        spool.write(piece)
    return spool.finish()


def _decode_members(
    body: Body, magic: bytes, decode: Callable[[Body, int], Generator[bytes, None, int]], name: str
) -> Iterator[bytes]:
    """Decodes one member after the other; ignores what follows the last one and is none, as browsers do."""
    position = 0
    for _ in range(MAX_MEMBERS):
        position = yield from decode(body, position)
        if not body.startswith(magic, position):
            return
    raise BrokenCoding(name, cut=False)


def _gzip(body: Body) -> Iterator[bytes]:
    def decode(body: Body, position: int) -> Generator[bytes, None, int]:
        return _inflate(zlib.decompressobj(16 + zlib.MAX_WBITS), body, position, "gzip")

    return _decode_members(body, b"\x1f\x8b", decode, f"gzip of more than {MAX_MEMBERS} members")


def _deflate(body: Body) -> Iterator[bytes]:
    """Decodes deflate with the zlib wrapper, as RFC 9110 says, or without it, as some servers send it."""
    head = body[:2]
    wrapped = len(head) == 2 and (head[0] & 0x0F) == 8 and int.from_bytes(head, "big") % 31 == 0
    wbits = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
    yield from _inflate(zlib.decompressobj(wbits), body, 0, "deflate")


def _inflate(stream: zlib._Decompress, body: Body, position: int, coding: str) -> Generator[bytes, None, int]:
    """What the stream at ``position`` holds; returns where it ends."""
    data = b""
    while not stream.eof:
        if not data:
            data = body[position : position + _FED_BYTES]
            position += len(data)
        try:
            piece = stream.decompress(data, _CHUNK_BYTES)
        except zlib.error as error:
            raise BrokenCoding(f"broken {coding}: {error}") from error
        if piece:
            yield piece
        elif not data:
            raise BrokenCoding(f"cut {coding}")
        data = stream.unconsumed_tail
    return position - len(stream.unused_data)


def _brotli(body: Body) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    position = 0
    while not stream.is_finished():
        data = body[position : position + _FED_BYTES] if stream.can_accept_more_data() else b""
        position += len(data)
        try:
            piece = stream.process(data, output_buffer_limit=_CHUNK_BYTES)
        except brotli.error as error:
            raise BrokenCoding(f"broken br: {error}") from error
        if piece:
            yield piece
        elif not data and stream.can_accept_more_data() and not stream.is_finished():
            raise BrokenCoding("cut br")


def _zstd(body: Body) -> Iterator[bytes]:
    return _decode_members(body, b"\x28\xb5\x2f\xfd", _zstd_frame, f"zstd of more than {MAX_MEMBERS} frames")


def _zstd_frame(body: Body, position: int) -> Generator[bytes, None, int]:
    """What the frame at ``position`` holds; returns where it ends."""
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})
    while not stream.eof:
        data = body[position : position + _FED_BYTES] if stream.needs_input else b""
        if not data and stream.needs_input:
            raise BrokenCoding("cut zstd")
        position += len(data)
        try:
            piece = stream.decompress(data, _CHUNK_BYTES)
        except zstd.ZstdError as error:
            raise BrokenCoding(f"broken zstd: {error}") from error
        if piece:
            yield piece
    return position - len(stream.unused_data)


_DECODERS: Final[Mapping[str, Callable[[Body], Iterator[bytes]]]] = {
    **dict.fromkeys(("gzip", "x-gzip"), _gzip),
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
