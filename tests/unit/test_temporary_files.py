"""Records in a file without a name, read in their order and merged; private folders, and those that were left."""

from __future__ import annotations

import heapq
import os
import random
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.temporary_files import PartFile, PrivateFolder

_CHILD = "import sys; from searchcrawl.temporary_files import PrivateFolder as F; print(F(sys.argv[1]).path, flush=True); sys.stdin.read()"


@pytest.mark.parametrize("records", [0, 1, 1000, 2501])
def test_records_when_parts_are_merged_then_all_rise(records: int) -> None:
    parts = [
        sorted(b"\n\xff%d" % each for each in random.Random(seed).sample(range(10_000), records)) for seed in range(4)
    ]

    with closing(PartFile()) as file:
        for part in parts:
            file.add(iter(part))
        merged = list(heapq.merge(*file.parts()))
        in_order = list(file)

    assert merged == sorted(each for part in parts for each in part)
    assert in_order == [each for part in parts for each in part]
    assert len(file) == 4


def test_records_when_they_are_read_side_by_side_then_each_reader_sees_all(tmp_path: Path) -> None:
    numbers = [b"%d" % number for number in range(1500)]
    with closing(PartFile(tmp_path / "folder")) as file:
        file.add(numbers)
        one = iter(file)
        first = [next(one) for _ in range(1200)]
        file.add([b"last", b""])
        both = list(zip(file, file, strict=True))

        assert [*first, *one] == [*numbers, b"last", b""]
        assert both == [(each, each) for each in [*numbers, b"last", b""]]
        assert list((tmp_path / "folder").iterdir()) == []


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def names(shared: Path) -> set[str]:
    return {path.name for path in shared.iterdir()}


def make_and_be_killed(shared: Path, kind: str) -> Path:
    """A folder with content, of a process that is gone."""
    command = [sys.executable, "-c", _CHILD, kind]
    environment = {**os.environ, "TMPDIR": str(shared)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        made = Path(process.stdout.readline().strip())
        process.kill()
    (made / "content").mkdir()
    (made / "content" / "file").write_text("x")
    return made


def test_folder_when_it_is_made_then_only_its_user_can_enter_it_or_lock_it() -> None:
    folder = PrivateFolder("archives")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder.path, *folder.path.iterdir())}
    folder.remove()

    assert modes == {folder.path.name: 0o700, "lock": 0o600}


def test_folders_when_their_process_was_killed_then_the_next_of_their_kind_deletes_them(shared: Path) -> None:
    living, other = PrivateFolder("archives"), make_and_be_killed(shared, "browser")
    left = make_and_be_killed(shared, "archives")
    assert names(shared) == {living.path.name, other.name, left.name}

    made = PrivateFolder("archives")

    assert names(shared) == {living.path.name, other.name, made.path.name}
    living.remove()
    made.remove()
    assert names(shared) == {other.name}


def test_folder_when_it_is_removed_twice_then_that_is_no_error(shared: Path) -> None:
    folder = PrivateFolder("archives")

    folder.remove()
    folder.remove()

    assert names(shared) == set()


def test_folder_when_others_put_folders_into_folders_without_end_then_removing_it_is_no_error(shared: Path) -> None:
    folder = PrivateFolder("browser")
    handle = os.open(folder.path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=handle)
        below = os.open("deep", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    before = list(Path("/proc/self/fd").iterdir())

    folder.remove()
    PrivateFolder("browser").remove()

    assert len(list(Path("/proc/self/fd").iterdir())) < len(before)
    # What deletes the folders of tests would fail with it.
    subprocess.run(["rm", "-rf", str(shared)], check=True)


def test_folder_when_others_cannot_be_listed_then_is_made_all_the_same(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object) -> object:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        folder = PrivateFolder("archives")

    assert folder.path.is_dir()
    folder.remove()


def test_folder_when_it_cannot_be_made_then_raises(monkeypatch: pytest.MonkeyPatch, shared: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(shared / "none"))

    with pytest.raises(FileNotFoundError):
        PrivateFolder("archives")


def test_file_when_it_is_read_then_is_short_and_a_file_of_ours() -> None:
    folder = PrivateFolder("browser")
    (folder.path / "pid").write_text("123\n")
    (folder.path / "long").write_bytes(b"9" * 30)
    (folder.path / "link").symlink_to("pid")
    (folder.path / "folder").mkdir()
    os.mkfifo(folder.path / "pipe")

    read = folder.read("pid", most=20)
    for name in ("link", "folder", "pipe", "none"):
        with pytest.raises(OSError, match=name):
            folder.read(name, most=20)
    with pytest.raises(ValueError, match="long: has more than 20 bytes"):
        folder.read("long", most=20)
    folder.remove()

    assert read == b"123\n"
