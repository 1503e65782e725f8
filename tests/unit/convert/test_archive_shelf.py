from __future__ import annotations

import asyncio
import errno
import gzip
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert import archive_shelf
from searchcrawl.convert.archive_shelf import ArchiveShelf, Fetched, Unpacked
from searchcrawl.exceptions import ConversionFailed, DiskFull
from searchcrawl.http.side_requests import SideRequestFailed
from tests.growth import assert_linear
from tests.office_files import make_zip

ZIP = make_zip({"a.txt": b"words"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_archives_when_too_much_is_kept_then_those_not_used_for_longest_are_fetched_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def fetch(url: str) -> Fetched:
        asked.append(url)
        return Fetched(200, ((b"ETag", b'"1"'),), ZIP)

    async def open_all() -> list[bytes | None]:
        shelf = ArchiveShelf(fetch)
        read = []
        for url in (
            "http://a.test/1.zip",
            "http://a.test/2.zip",
            "http://a.test/1.zip",
            "http://a.test/3.zip",
            "http://a.test/1.zip",
        ):
            opened = await shelf.open(url)
            assert isinstance(opened, Unpacked)
            read.append(opened.read("a.txt"))
        await shelf.close()
        return read

    assert asyncio.run(open_all()) == [b"words"] * 5
    assert asked == [f"http://a.test/{number}.zip" for number in (1, 2, 3)]
    asked.clear()
    monkeypatch.setattr(archive_shelf, "_MAX_KEPT_BYTES", 4)
    assert asyncio.run(open_all()) == [b"words"] * 5
    assert len(asked) > 3
    assert list(folder.iterdir()) == []


def test_archives_when_more_are_known_than_may_be_then_what_was_unpacked_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_shelf, "_MAX_KNOWN", 2)

    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), ZIP)

    async def open_many() -> int:
        shelf = ArchiveShelf(fetch)
        for number in range(5):
            await shelf.open(f"http://a.test/{number}.zip")
        await asyncio.to_thread(shelf._files.submit(int).result)
        left = len([path for path in folder.glob("*/*") if path.is_dir()])
        await shelf.close()
        return left

    assert asyncio.run(open_many()) == 2


def test_archives_when_many_small_ones_are_kept_then_each_counts_for_what_it_takes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_shelf, "_MAX_KEPT_BYTES", 64 << 10)

    async def fetch(url: str) -> Fetched:
        return Fetched(404, (), b"")

    async def note_many() -> int:
        shelf = ArchiveShelf(fetch)
        for number in range(10):
            shelf.note(f"http://a.test/{number}.zip", (), ZIP)
        await asyncio.to_thread(shelf._files.submit(int).result)
        left = len([path for path in folder.glob("*/*") if path.is_dir()])
        await shelf.close()
        return left

    assert asyncio.run(note_many()) == 4


def test_archives_when_there_are_many_then_each_costs_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(url: str) -> Fetched:
        raise AssertionError(url)

    async def unpack(shelf: ArchiveShelf, url: str, outermost: str | None) -> Unpacked:
        return Unpacked((), folder / "none", {}, 1)

    async def visit(count: int) -> None:
        shelf = ArchiveShelf(fetch)
        for number in range(count):
            shelf.note(f"http://a.test/{number}.zip", (), ZIP)
        for number in range(count):
            await shelf.open(f"http://a.test/{number}.zip")
        await shelf.close()

    monkeypatch.setattr(ArchiveShelf, "_open", unpack)
    monkeypatch.setattr(ArchiveShelf, "_write", lambda shelf, body: folder / "none" / "body")

    assert_linear(lambda count: asyncio.run(visit(count)), int, smallest=500, largest=8_000)


@pytest.mark.parametrize(
    "failure",
    [SideRequestFailed("time-out", code=Code.TIMEOUT, transient=True), Fetched(503, (), b""), Fetched(429, (), b"")],
)
def test_archive_when_a_failure_may_pass_then_the_next_file_asks_again(failure: Fetched | SideRequestFailed) -> None:
    answers: list[Fetched | SideRequestFailed] = [failure, Fetched(200, (), ZIP)]

    async def fetch(url: str) -> Fetched:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def open_twice() -> Unpacked | Fetched:
        shelf = ArchiveShelf(fetch)
        with suppress(SideRequestFailed):
            await shelf.open("http://a.test/1.zip")
        await asyncio.sleep(0)
        opened = await shelf.open("http://a.test/1.zip")
        await shelf.close()
        return opened

    assert isinstance(asyncio.run(open_twice()), Unpacked)


def test_archive_when_it_cannot_be_unpacked_then_nothing_of_it_is_left(folder: Path) -> None:
    body = gzip.compress(random.Random(1).randbytes(3 << 20))[:-9]

    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), body)

    async def open_broken() -> list[Path]:
        shelf = ArchiveShelf(fetch)
        with pytest.raises(ConversionFailed):
            await shelf.open("http://a.test/1.gz")
        left = [path for path in folder.rglob("*") if path.is_dir() and path.parent != folder]
        await shelf.close()
        return left

    assert asyncio.run(open_broken()) == []


def test_archive_when_its_disk_is_full_then_that_is_not_its_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), ZIP)

    def make_full_folder(shelf: ArchiveShelf) -> Path:
        made = folder / "full"
        made.mkdir()
        (made / "0").symlink_to("/dev/full")
        return made

    async def open_archive() -> None:
        shelf = ArchiveShelf(fetch)
        try:
            await shelf.open("http://a.test/1.zip")
        finally:
            await shelf.close()

    monkeypatch.setattr(ArchiveShelf, "_make_folder", make_full_folder)

    with pytest.raises(DiskFull, match=rf"{folder}: .*No space left on device"):
        asyncio.run(open_archive())
    assert list(folder.iterdir()) == []


def test_archive_when_no_folder_can_be_made_then_that_is_not_its_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), ZIP)

    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))

    with pytest.raises(DiskFull, match="No such file or directory"):
        asyncio.run(ArchiveShelf(fetch).open("http://a.test/1.zip"))


def test_archive_in_an_archive_when_it_cannot_be_read_then_fails_and_is_not_gone(folder: Path) -> None:
    body = make_zip({"inner.zip": ZIP})
    at = body.index(b"PK\x01\x02") + 8
    body = body[:at] + b"\x01" + body[at + 1 :]

    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), body)

    async def open_inner() -> None:
        shelf = ArchiveShelf(fetch)
        try:
            await shelf.open("http://a.test/1.zip!/inner.zip")
        finally:
            await shelf.close()

    with pytest.raises(ConversionFailed) as caught:
        asyncio.run(open_inner())

    assert caught.value.code == Code.CONVERSION_FAILED


def test_archive_when_it_was_an_answer_of_the_run_then_is_not_fetched(folder: Path) -> None:
    async def fetch(url: str) -> Fetched:
        raise AssertionError(url)

    async def open_noted() -> bytes | None:
        shelf = ArchiveShelf(fetch)
        shelf.note("http://a.test/1.zip", ((b"Content-Type", b"application/zip"),), ZIP)
        shelf.note("http://a.test/page", ((b"Content-Type", b"text/html"),), b"<p>")
        opened = await shelf.open("http://a.test/1.zip")
        assert isinstance(opened, Unpacked)
        read = opened.read("a.txt")
        await shelf.close()
        return read

    assert asyncio.run(open_noted()) == b"words"
    assert list(folder.iterdir()) == []


def test_archive_when_its_answer_cannot_be_kept_then_is_fetched_once_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), ZIP)

    def fill_the_disk(path: Path, body: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    async def open_noted() -> bytes | None:
        shelf = ArchiveShelf(fetch)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", fill_the_disk)
            shelf.note("http://a.test/1.zip", ((b"Content-Type", b"application/zip"),), ZIP)
            opened = await shelf.open("http://a.test/1.zip")
        assert isinstance(opened, Unpacked)
        read = opened.read("a.txt")
        await shelf.close()
        return read

    assert asyncio.run(open_noted()) == b"words"
    assert list(folder.iterdir()) == []


def test_archives_when_their_files_are_tiny_then_what_they_take_on_the_disk_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_shelf, "_MAX_KEPT_BYTES", 200_000)
    body = make_zip({f"{number}.txt": b"x" for number in range(30)})

    async def fetch(url: str) -> Fetched:
        return Fetched(200, (), body)

    async def open_all() -> int:
        shelf = ArchiveShelf(fetch)
        for number in range(6):
            await shelf.open(f"http://a.test/{number}.zip")
        await asyncio.wrap_future(shelf._files.submit(lambda: None))
        left = [path for path in folder.rglob("0") if path.is_file()]
        await shelf.close()
        return len(left)

    assert asyncio.run(open_all()) <= 2
