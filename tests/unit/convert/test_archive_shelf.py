from __future__ import annotations

import asyncio
import errno
import gzip
import random
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert import archive_shelf
from searchcrawl.convert.archive_shelf import ArchiveShelf, Fetched, Unpacked
from searchcrawl.exceptions import ConversionFailed, DiskFull
from searchcrawl.http.side_requests import SideRequestFailed
from tests.growth import assert_linear
from tests.office_files import make_zip

SITE = "http://a.test"
ZIP = make_zip({"a.txt": b"words"})
T = TypeVar("T")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def use(
    steps: Callable[[ArchiveShelf], Awaitable[T]],
    *answers: Fetched | Exception,
    asked: list[str] | None = None,
) -> T:
    """What the steps return with a shelf, which is closed then; ``answers`` are those of requests, the last one of all others."""
    left = list(answers or [Fetched(200, (), ZIP)])

    async def fetch(url: str) -> Fetched:
        if asked is not None:
            asked.append(url)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run() -> T:
        shelf = ArchiveShelf(fetch)
        try:
            return await steps(shelf)
        finally:
            await shelf.close()

    return asyncio.run(run())


async def read_words(shelf: ArchiveShelf, number: int = 1) -> bytes | None:
    opened = await shelf.open(f"{SITE}/{number}.zip")
    assert isinstance(opened, Unpacked)
    return opened.read("a.txt")


async def count(shelf: ArchiveShelf, folder: Path, pattern: str) -> int:
    """How many paths there are once all that is to be written and deleted was."""
    await asyncio.wrap_future(shelf._files.submit(int))
    return len(list(folder.glob(pattern)))


def test_archives_when_too_much_is_kept_then_those_not_used_for_longest_are_fetched_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def open_all(shelf: ArchiveShelf) -> list[bytes | None]:
        return [await read_words(shelf, number) for number in (1, 2, 1, 3, 1)]

    assert use(open_all, Fetched(200, ((b"ETag", b'"1"'),), ZIP), asked=asked) == [b"words"] * 5
    assert asked == [f"{SITE}/{number}.zip" for number in (1, 2, 3)]
    asked.clear()
    monkeypatch.setattr(archive_shelf, "_MAX_KEPT_BYTES", 4)
    assert use(open_all, asked=asked) == [b"words"] * 5
    assert len(asked) > 3
    assert list(folder.iterdir()) == []


def test_archives_when_more_are_known_than_may_be_then_what_was_unpacked_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_shelf, "_MAX_KNOWN", 2)

    async def open_many(shelf: ArchiveShelf) -> int:
        for number in range(5):
            await shelf.open(f"{SITE}/{number}.zip")
        return await count(shelf, folder, "*/*/")

    assert use(open_many) == 2


def test_archives_when_many_small_ones_are_kept_then_each_counts_for_what_it_takes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_shelf, "_MAX_KEPT_BYTES", 64 << 10)

    async def note_many(shelf: ArchiveShelf) -> int:
        for number in range(10):
            shelf.note(f"{SITE}/{number}.zip", (), ZIP)
        return await count(shelf, folder, "*/*/")

    assert use(note_many, Fetched(404, (), b"")) == 4


def test_archives_when_their_files_are_tiny_then_what_they_take_on_the_disk_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_shelf, "_MAX_KEPT_BYTES", 200_000)

    async def open_all(shelf: ArchiveShelf) -> int:
        for number in range(6):
            await shelf.open(f"{SITE}/{number}.zip")
        return await count(shelf, folder, "**/0")

    assert use(open_all, Fetched(200, (), make_zip({f"{number}.txt": b"x" for number in range(30)}))) <= 2


def test_archives_when_there_are_many_then_each_costs_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unpack(shelf: ArchiveShelf, url: str, outermost: str | None) -> Unpacked:
        return Unpacked((), folder / "none", {}, 1)

    async def visit(shelf: ArchiveShelf, count: int) -> None:
        for number in range(count):
            shelf.note(f"{SITE}/{number}.zip", (), ZIP)
        for number in range(count):
            await shelf.open(f"{SITE}/{number}.zip")

    monkeypatch.setattr(ArchiveShelf, "_open", unpack)
    monkeypatch.setattr(ArchiveShelf, "_write", lambda shelf, body: folder / "none" / "body")

    assert_linear(
        lambda count: use(lambda shelf: visit(shelf, count), AssertionError()), int, smallest=500, largest=8_000
    )


@pytest.mark.parametrize(
    "failure",
    [SideRequestFailed("time-out", code=Code.TIMEOUT, transient=True), Fetched(503, (), b""), Fetched(429, (), b"")],
)
def test_archive_when_a_failure_may_pass_then_the_next_file_asks_again(failure: Fetched | SideRequestFailed) -> None:
    async def open_twice(shelf: ArchiveShelf) -> bytes | None:
        with suppress(SideRequestFailed):
            await shelf.open(f"{SITE}/1.zip")
        await asyncio.sleep(0)
        return await read_words(shelf)

    assert use(open_twice, failure, Fetched(200, (), ZIP)) == b"words"


def test_archive_when_it_cannot_be_unpacked_then_nothing_of_it_is_left(folder: Path) -> None:
    body = gzip.compress(random.Random(1).randbytes(3 << 20))[:-9]

    async def open_broken(shelf: ArchiveShelf) -> list[Path]:
        with pytest.raises(ConversionFailed):
            await shelf.open(f"{SITE}/1.gz")
        return [path for path in folder.rglob("*") if path.is_dir() and path.parent != folder]

    assert use(open_broken, Fetched(200, (), body)) == []


def test_archive_when_its_disk_is_full_then_that_is_not_its_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_full_folder(shelf: ArchiveShelf) -> Path:
        made = folder / "full"
        made.mkdir()
        (made / "0").symlink_to("/dev/full")
        return made

    monkeypatch.setattr(ArchiveShelf, "_make_folder", make_full_folder)

    with pytest.raises(DiskFull, match=rf"{folder}: .*No space left on device"):
        use(read_words)
    assert list(folder.iterdir()) == []


def test_archive_when_no_folder_can_be_made_then_that_is_not_its_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))

    with pytest.raises(DiskFull, match="No such file or directory"):
        use(read_words)


def test_archive_in_an_archive_when_it_cannot_be_read_then_fails_and_is_not_gone() -> None:
    body = make_zip({"inner.zip": ZIP})
    at = body.index(b"PK\x01\x02") + 8
    body = body[:at] + b"\x01" + body[at + 1 :]

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        use(lambda shelf: shelf.open(f"{SITE}/1.zip!/inner.zip"), Fetched(200, (), body))


def test_archive_when_it_was_an_answer_of_the_run_then_is_not_fetched(folder: Path) -> None:
    async def open_noted(shelf: ArchiveShelf) -> bytes | None:
        shelf.note(f"{SITE}/1.zip", ((b"Content-Type", b"application/zip"),), ZIP)
        shelf.note(f"{SITE}/page", ((b"Content-Type", b"text/html"),), b"<p>")
        return await read_words(shelf)

    assert use(open_noted, AssertionError()) == b"words"
    assert list(folder.iterdir()) == []


def test_archive_when_its_answer_cannot_be_kept_then_is_fetched_once_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_the_disk(path: Path, body: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    async def open_noted(shelf: ArchiveShelf) -> bytes | None:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", fill_the_disk)
            shelf.note(f"{SITE}/1.zip", ((b"Content-Type", b"application/zip"),), ZIP)
            return await read_words(shelf)

    assert use(open_noted) == b"words"
    assert list(folder.iterdir()) == []
