"""What a stranger may leave in a folder for temporary files, in the place of a folder of ours."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Final

NOBODY: Final = pwd.getpwnam("nobody").pw_uid
#: What is looked for in a folder that was left, now or by earlier releases.
_FILES: Final = ("lock", "pid")
_LARGE: Final = 1 << 40


def pipes(folder: Path, kept: Path) -> None:
    """A folder whose files are pipes that nobody writes to."""
    folder.mkdir()
    for name in _FILES:
        os.mkfifo(folder / name)


def pipe(folder: Path, kept: Path) -> None:
    """A pipe in the place of the folder."""
    os.mkfifo(folder)


def file(folder: Path, kept: Path) -> None:
    """A file in the place of the folder."""
    folder.write_text("4194305")


def link(folder: Path, kept: Path) -> None:
    """A link in the place of the folder, to one that looks like it."""
    folder.symlink_to(kept)


def links(folder: Path, kept: Path) -> None:
    """A folder whose files are links: one to a file without end."""
    folder.mkdir()
    for name, target in zip(_FILES, (kept / "lock", Path("/dev/zero")), strict=True):
        (folder / name).symlink_to(target)


def large(folder: Path, kept: Path) -> None:
    """A folder with a file that fits into no memory; it has no lock."""
    folder.mkdir()
    with (folder / "pid").open("wb") as written:
        written.truncate(_LARGE)


def folders(folder: Path, kept: Path) -> None:
    """A folder whose files are folders."""
    for name in _FILES:
        (folder / name / "x").mkdir(parents=True)


def files(folder: Path, kept: Path) -> None:
    """A folder as a process of ours that was killed would leave it."""
    folder.mkdir()
    for name in _FILES:
        (folder / name).write_text("4194305")


LEAVE: Final[tuple[Callable[[Path, Path], None], ...]] = (pipes, pipe, file, link, links, large, folders)


def read_tree(folder: Path) -> dict[str, tuple[int, int]]:
    """The kind, mode and owner of all that is below a folder."""
    found = {path.relative_to(folder).as_posix(): path.lstat() for path in folder.rglob("*")}
    return {name: (status.st_mode, status.st_uid) for name, status in found.items()}
