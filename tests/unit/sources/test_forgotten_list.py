"""The file of what a project has forgotten: who may write and read it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.forgotten_list import add_lines, read_list

ONE, TWO = "http://a.test/one", "http://a.test/two"
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can be other users")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "searchcrawl.toml").touch()
    (tmp_path / "searchcrawl.toml").chmod(0o640)
    return tmp_path


def owner_and_mode(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_uid, stat.S_IMODE(about.st_mode)


@needs_root
def test_list_when_root_writes_it_then_whoever_reads_the_configuration_reads_it(root: Path) -> None:
    os.chown(root / "searchcrawl.toml", NOBODY, NOBODY)
    umask = os.umask(0o077)
    try:
        add_lines(root, [ONE])
    finally:
        os.umask(umask)

    assert owner_and_mode(root / "forgotten.txt") == (NOBODY, 0o640)


@needs_root
def test_list_when_it_is_there_then_it_keeps_its_owner_and_mode(root: Path) -> None:
    add_lines(root, [ONE])
    os.chown(root / "forgotten.txt", NOBODY, NOBODY)
    (root / "forgotten.txt").chmod(0o604)

    add_lines(root, [TWO])

    assert owner_and_mode(root / "forgotten.txt") == (NOBODY, 0o604)
    assert read_list(root) == (ONE, TWO)


@needs_root
def test_list_when_its_folder_is_not_ours_then_the_error_names_file_and_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    root.chmod(0o755)

    os.seteuid(NOBODY)
    try:
        with pytest.raises(ConfigurationError, match=r"forgotten\.txt: cannot be written in \. \(Permission denied\)"):
            add_lines(Path(), [ONE])
    finally:
        os.seteuid(0)

    assert not (root / "forgotten.txt").exists()


def test_list_when_it_is_a_link_then_its_target_is_written(root: Path) -> None:
    (root / "var").mkdir()
    (root / "forgotten.txt").symlink_to("var/forgotten.txt")

    add_lines(root, [ONE])
    add_lines(root, [TWO])

    assert (root / "forgotten.txt").is_symlink()
    assert read_list(root) == (ONE, TWO)
    assert (root / "var" / "forgotten.txt").is_file()


def test_list_when_its_file_system_locks_only_what_is_open_for_writing_then_it_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS does."""
    lock = fcntl.flock

    def flock(handle: int, operation: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    before = len(list(Path("/proc/self/fd").iterdir()))

    add_lines(root, [ONE])
    add_lines(root, [TWO])

    assert read_list(root) == (ONE, TWO)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_list_when_its_file_system_has_no_locks_then_the_error_names_the_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)

    with pytest.raises(OSError, match=f"No locks available: '{root}'"):
        add_lines(root, [ONE])

    assert read_list(root) == ()
