"""Bodies on the disk read as those in memory do, and leave nothing behind."""

from __future__ import annotations

import hashlib
import os
import resource
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from searchcrawl.bodies import LargeBody, Spool, digest_body, list_pieces, open_body, read_body, read_whole
from searchcrawl.convert.registry import Registry
from searchcrawl.exceptions import SpoolFailed
from tests.office_files import make_docx, make_ole, make_zip

BYTES = bytes(range(256)) * 20_000


def keep(folder: Path, content: bytes = BYTES, *, inline_bytes: int = 1000) -> LargeBody:
    spool = Spool(folder, inline_bytes)
    for at in range(0, len(content), 70_000):
        spool.write(content[at : at + 70_000])
    body = spool.finish()
    assert isinstance(body, LargeBody)
    return body


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_body_when_no_larger_than_the_limit_then_stays_in_memory(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 6)
    spool.write(b"abc")
    spool.write(b"def")

    assert spool.finish() == b"abcdef"


def test_body_when_larger_then_reads_as_bytes_do(tmp_path: Path) -> None:
    body = keep(tmp_path)

    assert len(body) == len(BYTES)
    for part in (slice(10), slice(5, 300), slice(-20, None), slice(7, 3), slice(len(BYTES), None), slice(None)):
        assert body[part] == BYTES[part]
    assert body.startswith(BYTES[:9])
    assert body.startswith((b"x", BYTES[:9]))
    assert body.startswith(BYTES[300:320], 300)
    assert not body.startswith(b"x")
    assert b"".join(list_pieces(body)) == read_whole(body) == BYTES
    assert digest_body(body).digest() == hashlib.sha256(BYTES).digest()


def test_body_when_a_library_reads_it_then_seeks_in_it(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("noise", os.urandom(9 << 20))
        archive.writestr("word", "barometer")
    body = read_body(file)
    file.unlink()

    assert isinstance(body, LargeBody)
    with zipfile.ZipFile(open_body(body)) as archive:
        assert archive.read("word") == b"barometer"
        assert archive.testzip() is None
    assert Path(body.path).stat().st_size == len(body)


def test_body_when_it_is_on_the_disk_then_has_no_name_and_no_folder_is_made(tmp_path: Path) -> None:
    body = keep(tmp_path / "not" / "there")

    assert list(tmp_path.iterdir()) == []
    assert body[:3] == BYTES[:3]


def test_spool_when_the_disk_is_full_then_fails_with_the_folder_and_leaves_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1000)

    with files_of_at_most(100_000), pytest.raises(SpoolFailed, match=f"{tmp_path}: no large body can be put there"):
        spool.write(BYTES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        make_docx(b"<w>words</w>"),
        make_zip({"mimetype": b"application/epub+zip", "a": b"x" * 4_000}),
        make_ole({"WordDocument": b"x" * 5_000}),
        b"{\\rtf1 words}" + b"\0" * 100_000,
        b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n" + b"x" * 4_000,
        b"a text of words " * 1_000,
    ],
    ids=["docx", "epub", "doc", "rtf", "pdf", "text"],
)
def test_body_when_it_is_on_the_disk_then_has_the_type_that_it_has_in_memory(tmp_path: Path, content: bytes) -> None:
    body, registry = keep(tmp_path, content, inline_bytes=10), Registry()

    for said in (b"application/octet-stream", b"text/plain"):
        headers = ((b"Content-Type", said),)
        assert registry.find_mimetype(body, headers) == registry.find_mimetype(content, headers)
