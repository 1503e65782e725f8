from __future__ import annotations

import gzip

import pytest

from searchcrawl.cache.segment import decode, encode, make_record_id
from searchcrawl.exceptions import DamagedRecord

HEADERS = {"WARC-Type": "conversion", "WARC-Target-URI": "http://a.example/ü"}


@pytest.mark.parametrize(
    "block", [b"", b"x", b"\r\n\r\n", b"WARC/1.1\r\n\r\n", gzip.compress(b"inner", mtime=0), bytes(range(256)) * 9]
)
def test_decode_when_a_record_was_encoded_then_headers_and_block_come_back(block: bytes) -> None:
    found = decode(encode(HEADERS, block), record_type="conversion")

    assert found.block == block
    assert found.headers["warc-target-uri"] == "http://a.example/ü"


def test_decode_when_any_byte_is_flipped_then_the_record_is_damaged_or_unchanged() -> None:
    member = encode(HEADERS, b"some text, some text, some more text")
    whole = decode(member, record_type="conversion")

    for position in range(len(member)):
        flipped = bytearray(member)
        flipped[position] ^= 0x10
        try:
            found = decode(bytes(flipped), record_type="conversion")
        except DamagedRecord:
            continue
        # Bits that mean nothing to us: time, level, system in the gzip header, and the fill of the last byte before
        # the trailer.
        assert 3 < position < 10 or position == len(member) - 9
        assert found == whole


def test_decode_when_the_member_is_cut_or_followed_by_more_then_it_is_damaged() -> None:
    member = encode(HEADERS, b"text")

    for wrong in (b"", member[:-1], member[: len(member) // 2], member + b"x", member + member):
        with pytest.raises(DamagedRecord):
            decode(wrong, record_type="conversion")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"WARC/1.1\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"WARC/1.1\r\nWARC-Type: conversion\r\n\r\ntext\r\n\r\n",
        b"WARC/1.1\r\nWARC-Type: conversion\r\nContent-Length: 4\r\n\r\ntext\r\n\r\n",
        b"WARC/1.1\r\nWARC-Type: conversion\r\nContent-Length: 9\r\n\r\ntext\r\n\r\n",
    ],
)
def test_decode_when_the_member_holds_something_else_then_it_is_damaged(content: bytes) -> None:
    with pytest.raises(DamagedRecord):
        decode(gzip.compress(content, mtime=0), record_type="conversion")


def test_decode_when_the_record_is_of_another_type_then_it_is_damaged() -> None:
    with pytest.raises(DamagedRecord, match="conversion where response"):
        decode(encode(HEADERS, b"text"), record_type="response")


def test_new_record_id_when_asked_twice_then_it_differs() -> None:
    assert make_record_id() != make_record_id()
