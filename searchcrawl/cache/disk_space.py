"""Free space on the disks of a project (X-D18)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from searchcrawl.exceptions import DiskFull
from searchcrawl.sources.project import Project

_MB = 1 << 20


def list_folders(project: Project, store: Path | None) -> list[Path]:
    """The folders in which a run needs room; ``store`` is that of the file of the store, if it is one."""
    of_index = [project.index_dir] if project.index.type == "local" else []
    return [project.cache_dir, project.logs_dir, *of_index, *([store] if store else [])]


def refuse_low(folders: Iterable[Path], *, min_free_bytes: int) -> None:
    """Raises DiskFull where the disk of a folder, which need not exist yet, has less free space."""
    for folder in folders:
        left = free_bytes(folder)
        if left < min_free_bytes:
            raise DiskFull(
                f"{folder}: only {left // _MB} MB are left on its disk, and {min_free_bytes // _MB} MB"
                " are kept free (SEARCHCRAWL_MIN_FREE_MB)"
            )


def free_bytes(folder: Path) -> int:
    """The bytes that this user may still write to the disk of a folder, which need not exist yet."""
    while True:
        try:
            found = os.statvfs(folder)
        except FileNotFoundError:
            folder = folder.parent
            continue
        return found.f_bavail * found.f_frsize
