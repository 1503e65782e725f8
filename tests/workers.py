"""The processes of a folder, and the worker processes of a process, which tests kill."""

from __future__ import annotations

import os
from pathlib import Path


def processes(folder: Path) -> list[int]:
    """The processes that have this working directory."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if (each / "cwd").readlink() == folder and (each / "stat").read_text().split(") ")[1][0] != "Z":
                found.append(int(each.name))
        except OSError:
            continue
    return found


def list_workers(owner: int | None = None) -> list[int]:
    """The ids of the living worker processes of ``owner``, or of this process."""
    return [child for child in _children(owner or os.getpid()) if _is_worker(child)]


def _children(owner: int) -> list[int]:
    found = list[int]()
    try:
        tasks = [*Path(f"/proc/{owner}/task").iterdir()]
    except OSError:
        return found  # It has ended.
    for task in tasks:
        try:
            found += [int(child) for child in (task / "children").read_text("ascii").split()]
        except OSError:
            continue  # The thread has ended.
    return found


def _is_worker(child: int) -> bool:
    try:
        return b"multiprocessing.spawn" in Path(f"/proc/{child}/cmdline").read_bytes()
    except OSError:
        return False
