"""Folders whose names survive a loss of power: a file that is synced is lost with its name if its folder is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it that are missing, durably."""
    # Its own name also where it is there: a process that was killed may have made it and not come further.
    made = {folder, *(each for each in folder.parents if not each.exists())}
    folder.mkdir(parents=True, exist_ok=True)
    for each in made:
        try:
            sync_folder(each.parent)
        except OSError as error:
            # A disk that became read-only after an error syncs nothing any more, and can be read: nothing was made on it.
            if error.errno != errno.EROFS:
                raise


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable: of files that were made, renamed and removed there."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file in one step: readers see all of it or what was there before. It is not synced; raises OSError."""
    make_folder(path.parent)
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.replace(path)
