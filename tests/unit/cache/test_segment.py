from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastwarc import ArchiveIterator, GzipReader
from fastwarc.warc import conversion, response

from searchcrawl import failpoints
from searchcrawl.cache.document_cache import decode, decode_fields, decode_response
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.segment import (
    SegmentWriter,
    StoredPage,
    encode,
    make_record_id,
)
from searchcrawl.exceptions import CacheError, DamagedRecord, SegmentInUse
from searchcrawl.items import Place

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


def page(
    number: int = 1, *, body: bytes = b"<p>hello</p>", headers: tuple[tuple[bytes, bytes], ...] = ()
) -> StoredPage:
    return StoredPage(
        url=f"http://a.example/{number}",
        status=200,
        headers=headers,
        body=body,
        fetched_at=MOMENT,
        fields={"title": f"Page {number}", "content": "hello", "depth": number, "duplicates": ["http://b.example/"]},
    )


def read(path: Path, place: Place) -> StoredPage:
    data = path.read_bytes()
    middle = place.offset + place.response_bytes
    fields = decode_fields(data[middle : middle + place.fields_bytes])[1]
    return decode_response(data[place.offset : middle], fields=fields)


def open_writer(path: Path, *, committed_bytes: int) -> SegmentWriter:
    return SegmentWriter(SegmentFolder(path.parent), int(path.name.partition(".")[0]), committed_bytes=committed_bytes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "demo" / "00000007.warc.gz"


def any_body(chance: random.Random) -> bytes:
    kind = chance.randrange(5)
    if kind == 0:
        return b""
    if kind == 1:
        return b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n" * chance.randrange(1, 4)
    if kind == 2:
        return b"\x1f\x8b\x08\x00" * chance.randrange(1, 50) + b"\r\n\r\n"
    return chance.randbytes(chance.randrange(1, 5000))


def any_headers(chance: random.Random) -> tuple[tuple[bytes, bytes], ...]:
    names = [
        b"Content-Type",
        b"content-encoding",
        b"Transfer-Encoding",
        b"Content-Length",
        b"X-Crawler-Content-Length",
        b"Set-Cookie",
    ]
    values = [b"", b"gzip", b"a: b; c", b"caf\xe9 \xff", b"17"]
    return tuple((chance.choice(names), chance.choice(values)) for _ in range(chance.randrange(6)))


def same_headers(found: tuple[tuple[bytes, bytes], ...], wanted: tuple[tuple[bytes, bytes], ...]) -> bool:
    return [(name.lower(), value) for name, value in found] == [(name.lower(), value) for name, value in wanted]


def test_append_when_pages_are_of_any_kind_then_each_comes_back_by_its_place(path: Path) -> None:
    chance = random.Random(11)
    pages = [page(number, body=any_body(chance), headers=any_headers(chance)) for number in range(300)]
    pages.append(page(300, body=chance.randbytes(5_000_000)))
    writer = open_writer(path, committed_bytes=0)

    places = [writer.append(each) for each in pages]
    writer.sync()
    writer.close()

    for wanted, place in zip(pages, places, strict=True):
        found = read(path, place)
        assert same_headers(found.headers, wanted.headers)
        assert (found.url, found.status, found.body, found.fetched_at, found.fields) == (
            wanted.url,
            wanted.status,
            wanted.body,
            wanted.fetched_at,
            wanted.fields,
        )
    assert places[-1].offset + places[-1].response_bytes + places[-1].fields_bytes == path.stat().st_size


def test_append_when_the_file_is_read_as_an_archive_then_a_foreign_reader_finds_all_and_agrees_on_the_digests(
    path: Path,
) -> None:
    gzipped = ((b"Content-Type", b"text/html"), (b"Content-Encoding", b"gzip"), (b"Content-Length", b"9"))
    writer = open_writer(path, committed_bytes=0)
    for number in range(3):
        writer.append(page(number, headers=gzipped))
    writer.close()

    records = []
    for record in ArchiveIterator(GzipReader(str(path)), verify_digests=True):
        about = (record.headers["WARC-Target-URI"], record.record_date)
        headers = record.http_headers.to_dict() if record.is_http else None
        records.append((record.record_type, about, headers, record.reader.read()))

    assert [kind for kind, *_ in records] == [response, conversion] * 3
    assert [about for _, about, *_ in records[::2]] == [(f"http://a.example/{number}", MOMENT) for number in range(3)]
    assert records[0][2:] == (
        {
            "Content-Length": "12",
            "Content-Type": "text/html",
            "X-Crawler-Content-Encoding": "gzip",
            "X-Crawler-Content-Length": "9",
        },
        b"<p>hello</p>",
    )


def test_append_when_a_page_has_its_record_then_these_bytes_are_written_and_its_fields_refer_to_them(
    path: Path, tmp_path: Path
) -> None:
    writer = open_writer(path, committed_bytes=0)
    place = writer.append(page())
    writer.close()
    known = read(path, place)
    other = tmp_path / "demo" / "00000008.warc.gz"

    writer = open_writer(other, committed_bytes=0)
    place = writer.append(replace(known, fields={"title": "another"}))
    writer.close()

    again = read(other, place)
    assert (again.record, again.record_id) == (known.record, known.record_id)
    assert (again.body, again.fields) == (known.body, {"title": "another"})
    records = ArchiveIterator(GzipReader(str(other)), verify_digests=True)
    ids = [(record.headers["WARC-Record-ID"], record.headers.get("WARC-Refers-To")) for record in records]
    assert ids[0] == (known.record_id, None)
    assert ids[1][1] == known.record_id != ids[1][0]


def test_open_when_a_crash_left_more_than_was_committed_then_the_rest_is_cut_off(path: Path) -> None:
    first = open_writer(path, committed_bytes=0)
    kept = first.append(page(1))
    committed = first.position
    first.append(page(2))
    first.close()

    writer = open_writer(path, committed_bytes=committed)
    place = writer.append(page(3))
    writer.close()

    assert place.offset == committed
    assert [read(path, each).url for each in (kept, place)] == ["http://a.example/1", "http://a.example/3"]


@pytest.mark.parametrize("cut", [1, None])
def test_open_when_the_file_is_shorter_than_committed_then_it_is_refused_and_left_alone(
    path: Path, cut: int | None
) -> None:
    first = open_writer(path, committed_bytes=0)
    first.append(page())
    committed = first.position
    first.close()
    os.truncate(path, committed - cut if cut else 0)
    size = path.stat().st_size

    with pytest.raises(DamagedRecord, match="committed"):
        open_writer(path, committed_bytes=committed)

    assert path.stat().st_size == size


def test_open_when_a_committed_file_is_missing_then_it_is_refused_and_not_made(path: Path) -> None:
    with pytest.raises(DamagedRecord, match="missing"):
        open_writer(path, committed_bytes=1)

    assert not path.exists()


def test_open_when_the_folder_cannot_be_made_then_the_error_names_file_and_cause(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("a file", encoding="utf-8")

    with pytest.raises(CacheError, match=r"00000001\.warc\.gz: (File exists|Not a directory)"):
        open_writer(tmp_path / "demo" / "00000001.warc.gz", committed_bytes=0)


@pytest.mark.parametrize("failpoint", ["segment.append", "segment.append.mid"])
def test_append_when_the_disk_is_full_then_the_writer_can_go_on_where_the_last_whole_page_ended(
    path: Path, failpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_writer(path, committed_bytes=0)
    kept = writer.append(page(1))
    with monkeypatch.context() as full:
        full.setattr(failpoints, "_active", True)
        full.setattr(failpoints, "_wanted", (failpoint, 1, "enospc"))
        with pytest.raises(CacheError, match=r"00000007\.warc\.gz: .*" + failpoint):
            writer.append(page(2, body=os.urandom(9000)))

    place = writer.append(page(3))
    writer.sync()
    writer.close()

    assert [read(path, each).url for each in (kept, place)] == ["http://a.example/1", "http://a.example/3"]
    assert path.stat().st_size == writer.position


def test_append_when_a_field_is_not_json_then_nothing_is_written(path: Path) -> None:
    writer = open_writer(path, committed_bytes=0)
    wrong = StoredPage(url="http://a.example/", status=200, headers=(), body=b"", fetched_at=MOMENT, fields={"x": b"y"})

    with pytest.raises(TypeError):
        writer.append(wrong)

    assert path.stat().st_size == 0
    writer.close()


def test_open_when_another_writer_has_the_file_then_it_is_left_as_it_is(path: Path) -> None:
    first = open_writer(path, committed_bytes=0)
    kept = first.append(page(1))

    with pytest.raises(SegmentInUse, match=r"00000007\.warc\.gz: another process is writing to it"):
        open_writer(path, committed_bytes=0)

    assert read(path, kept).url == "http://a.example/1"
    first.close()
    open_writer(path, committed_bytes=0).close()


@pytest.mark.parametrize("failpoint", ["segment.append", "segment.append.mid", "segment.synced"])
def test_append_when_the_process_is_killed_midway_then_what_was_committed_is_whole(path: Path, failpoint: str) -> None:
    first = open_writer(path, committed_bytes=0)
    kept = first.append(page(1))
    first.sync()
    first.close()
    program = (
        "import sys, pathlib, datetime\n"
        "from searchcrawl.cache.folder import SegmentFolder\n"
        "from searchcrawl.cache.segment import SegmentWriter, StoredPage\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "writer = SegmentWriter(SegmentFolder(path.parent), 7, committed_bytes=int(sys.argv[2]))\n"
        "writer.append(StoredPage(url='http://a.example/2', status=200, headers=(), body=b'x',"
        " fetched_at=datetime.datetime.now(datetime.UTC), fields={}))\n"
        "writer.sync()\n"
    )
    environment = {**os.environ, "SEARCHCRAWL_FAILPOINT": failpoint}

    killed = subprocess.run(
        [sys.executable, "-c", program, str(path), str(first.position)], env=environment, check=False
    )
    writer = open_writer(path, committed_bytes=first.position)
    place = writer.append(page(3))
    writer.close()

    assert killed.returncode == -9
    assert [read(path, each).url for each in (kept, place)] == ["http://a.example/1", "http://a.example/3"]


def test_base_url_when_redirects_led_elsewhere_then_the_record_has_it(path: Path) -> None:
    with_base = replace(page(), base_url="http://a.example/moved/here")

    writer = open_writer(path, committed_bytes=0)
    with_of, without_of = writer.append(with_base), writer.append(page(2))
    writer.close()

    assert read(path, with_of) == with_base
    assert read(path, without_of).base_url is None


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
