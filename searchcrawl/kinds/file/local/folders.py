"""What the rules about names ask of an open folder of this machine."""

from __future__ import annotations

import os
import stat
from errno import EINVAL
from typing import Final

from searchcrawl.kinds.file.ignoring import FILE_NAME, MOST_BYTES, blame

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def is_there(folder: int, name: bytes) -> bool:
    """Whether an open folder has something of a name in it; raises OSError."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def read_ignored(folder: int) -> bytes | None:
    """What the ``.searchignore`` of an open folder holds, at most one byte more than it may; None where it has none.

    Raises OSError where it cannot be read: what it says is not known then.
    """
    try:
        return _read(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise blame(error) from error


def _read(folder: int) -> bytes:
    file = os.open(FILE_NAME, _OPEN, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(EINVAL, "is no regular file")
        with os.fdopen(file, "rb", closefd=False) as content:
            return content.read(MOST_BYTES + 1)
    finally:
        os.close(file)
