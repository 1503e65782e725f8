from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from searchcrawl.convert import archive_shelf
from searchcrawl.convert.archive_shelf import ArchiveShelf, Fetched, Unpacked, make_locked_folder
from tests.office_files import make_zip

ZIP = make_zip({"a.txt": b"words"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folders_when_their_process_is_gone_then_are_deleted_and_others_stay(folder: Path) -> None:
    first, lock = make_locked_folder()
    second, other = make_locked_folder()
    assert {path.name for path in folder.iterdir()} == {first.name, second.name}

    lock.close()
    third, last = make_locked_folder()

    assert {path.name for path in folder.iterdir()} == {second.name, third.name}
    other.close()
    last.close()


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
