"""Folders that survive a loss of power: which ones are synced, and what becomes of errors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from searchcrawl.durable import make_folder, sync_folder


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that are synced, in their order."""
    found: list[Path] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        found.append(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    return found


@pytest.mark.parametrize("deep", ["a", "a/b", "a/b/c/d"])
def test_make_when_folders_are_missing_then_the_one_above_each_is_synced(
    tmp_path: Path, synced: list[Path], deep: str
) -> None:
    folder = tmp_path / deep

    make_folder(folder)

    assert folder.is_dir()
    assert {*synced} == {each for each in folder.parents if tmp_path in (each, *each.parents)}


def test_make_when_the_folder_is_there_then_its_name_is_synced_all_the_same(tmp_path: Path, synced: list[Path]) -> None:
    make_folder(tmp_path)

    assert synced == [tmp_path.parent]


def test_make_when_a_file_has_the_name_then_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")


def test_make_folder_when_it_is_there_and_its_disk_became_read_only_then_it_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int) -> None:
        # As Linux does after it met an error of ext4.
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "fsync", refuse)

    make_folder(tmp_path)

    with pytest.raises(OSError, match="Read-only"):
        sync_folder(tmp_path)
