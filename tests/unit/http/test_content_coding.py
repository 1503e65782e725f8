"""Content codings undone within limits; what is cut or broken is seen (X-D6, X-R1, X-R2)."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from collections.abc import Callable

import brotli
import pytest

from searchcrawl.http.content_coding import (
    BrokenCoding,
    DecodedTooLarge,
    decode_body,
    decode_in_pieces,
    decode_prefix,
    parse_codings,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MB = 1024 * 1024
PAGE = "".join(random.Random(5).choices("abcdefghij <>\n", k=40_000)).encode()
CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("body", [b"", b"x", PAGE, PAGE * 40], ids=["empty", "byte", "page", "large"])
def test_body_when_coded_then_comes_back(coding: str, body: bytes) -> None:
    assert decode_body(CODERS[coding](body), [coding], max_bytes=32 * MB) == body


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("missing", [1, 4, 9, 3000])
def test_body_when_its_end_is_missing_then_is_broken(coding: str, missing: int) -> None:
    coded = CODERS[coding](PAGE)

    with pytest.raises(BrokenCoding, check=lambda error: error.cut):
        decode_body(coded[:-missing], [coding], max_bytes=32 * MB)


@pytest.mark.parametrize("coding", CODERS)
def test_body_when_it_is_not_coded_at_all_then_is_broken(coding: str) -> None:
    with pytest.raises(BrokenCoding):
        decode_body(b"<html>plain</html>" * 30, [coding], max_bytes=32 * MB)


@pytest.mark.parametrize("position", [-1, -4, -5, -8, -2000])
def test_gzip_when_a_byte_is_wrong_then_is_broken(position: int) -> None:
    coded = bytearray(gzip.compress(PAGE))
    coded[position] ^= 0x55

    with pytest.raises(BrokenCoding):
        decode_body(bytes(coded), ["gzip"], max_bytes=32 * MB)


@pytest.mark.parametrize("coding", CODERS)
def test_body_when_larger_than_the_limit_then_is_too_large(coding: str) -> None:
    coded = CODERS[coding](PAGE * 40)

    with pytest.raises(DecodedTooLarge):
        decode_body(coded, [coding], max_bytes=len(PAGE) * 40 - 1)


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_bomb_when_under_the_limit_then_its_ratio_is_too_large(coding: str) -> None:
    with pytest.raises(DecodedTooLarge, match="1000 times"):
        decode_body(CODERS[coding](bytes(20 * MB)), [coding], max_bytes=32 * MB)


def test_gzip_when_of_several_members_with_zeros_behind_then_all_are_read() -> None:
    coded = gzip.compress(b"one ") + gzip.compress(b"two") + bytes(20)

    assert decode_body(coded, ["gzip"], max_bytes=100) == b"one two"


def test_gzip_when_second_member_is_cut_then_is_broken() -> None:
    with pytest.raises(BrokenCoding):
        decode_body(gzip.compress(b"one ") + gzip.compress(PAGE)[:-9], ["gzip"], max_bytes=MB)


def test_zstd_when_of_several_frames_then_all_are_read() -> None:
    assert decode_body(zstd.compress(b"one ") + zstd.compress(b"two"), ["zstd"], max_bytes=100) == b"one two"


def test_deflate_when_without_wrapper_then_is_read() -> None:
    assert decode_body(zlib.compress(PAGE, wbits=-15), ["deflate"], max_bytes=MB) == PAGE


def test_codings_when_two_then_both_are_undone_in_order() -> None:
    coded = brotli.compress(gzip.compress(PAGE))

    assert decode_body(coded, ["gzip", "br"], max_bytes=MB) == PAGE


@pytest.mark.parametrize("codings", [["gzip"] * 3, ["rot13"], ["gzip", "compress"]])
def test_codings_when_too_many_or_unknown_then_trying_again_is_useless(codings: list[str]) -> None:
    with pytest.raises(BrokenCoding, check=lambda error: not error.cut):
        decode_body(b"body", codings, max_bytes=MB)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"gzip"], ["gzip"]),
        ([b" GZIP , br"], ["gzip", "br"]),
        ([b"gzip", b"br"], ["gzip", "br"]),
        ([b"identity"], []),
        ([b"UTF-8"], []),
        ([b""], []),
        ([b"none, gzip,"], ["gzip"]),
        ([b"binary"], []),
        ([b"8bit"], []),
        ([b"7bit"], []),
        ([b"ISO-8859-1"], []),
        ([b"windows-1252, gzip"], ["gzip"]),
        ([b"charset=utf-8"], []),
        ([b"text/html; charset=utf-8"], []),
        ([b"aws-chunked"], []),
        ([b"aws-chunked,gzip"], ["gzip"]),
        ([b"chunked"], []),
        ([b"gzip;q=1"], ["gzip"]),
        ([b",", b" , ;"], []),
        ([b"rot13"], ["rot13"]),
        ([b"base64"], ["base64"]),
        ([b"compress"], ["compress"]),
        ([b"\xff"], ["\xff"]),
    ],
)
def test_headers_when_read_then_name_the_codings(values: list[bytes], expected: list[str]) -> None:
    assert parse_codings(values) == expected


def test_prefix_when_body_is_cut_then_gives_what_there_is() -> None:
    prefix = decode_prefix(gzip.compress(PAGE)[:-500], ["gzip"], max_bytes=1000)

    assert prefix == PAGE[:1000]


def test_prefix_when_nothing_can_be_read_then_is_broken() -> None:
    with pytest.raises(BrokenCoding):
        decode_prefix(b"no gzip", ["gzip"], max_bytes=1000)


@pytest.mark.parametrize(("coding", "empty"), [("gzip", gzip.compress(b"", mtime=0)), ("zstd", zstd.compress(b""))])
def test_r1_body_when_of_members_without_end_then_is_given_up_early(coding: str, empty: bytes) -> None:
    with pytest.raises(BrokenCoding, match="more than 10000", check=lambda error: not error.cut):
        decode_body(empty * 1_500_000, [coding], max_bytes=32 * MB)


@pytest.mark.parametrize("coding", CODERS)
def test_body_when_larger_than_what_is_fed_at_once_then_comes_back(coding: str) -> None:
    body = random.Random(7).randbytes(MB) + b"x" * MB

    assert decode_body(CODERS[coding](body), [coding], max_bytes=32 * MB) == body


def test_gzip_when_members_end_anywhere_then_all_are_read() -> None:
    parts = [random.Random(size).randbytes(size) for size in (65_519, 65_513, 1, 0, 200_000, 65_536)]

    assert decode_body(b"".join(map(gzip.compress, parts)), ["gzip"], max_bytes=MB) == b"".join(parts)


@pytest.mark.parametrize("codings", [["gzip"] * 3, ["rot13"]])
def test_prefix_when_codings_are_too_many_or_unknown_then_is_broken(codings: list[str]) -> None:
    with pytest.raises(BrokenCoding):
        decode_prefix(gzip.compress(gzip.compress(gzip.compress(PAGE))), codings, max_bytes=1000)


@pytest.mark.parametrize("codings", [["deflate"], ["deflate", "gzip"]])
def test_prefix_when_there_is_nothing_then_is_nothing(codings: list[str]) -> None:
    body = gzip.compress(b"") if "gzip" in codings else b""

    assert decode_prefix(body, codings, max_bytes=1000) == b""


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("body", [b"", b"\x78"])
def test_pieces_when_there_is_hardly_a_body_then_it_is_broken(coding: str, body: bytes) -> None:
    with pytest.raises(BrokenCoding):
        list(decode_in_pieces(body, coding))
