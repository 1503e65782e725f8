"""Files that a source names, and what is there in their place."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import Final

_MISSING: Final = "no such file"
_IS_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def require_file(path: Path) -> None:
    """Raises OSError for what is no file; a pipe would be waited for without end."""
    message = find_no_file(path)
    if message is not None and path.exists():
        raise OSError(errno.EINVAL, message)


def find_no_file(path: Path) -> str | None:
    """Why a path is none of a file that can be read as often as it is needed; None where it is."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return _MISSING if error.errno in _IS_MISSING else f"cannot be read ({error.strerror})"
    except ValueError:
        # No path has a null character.
        return _MISSING
    return None if stat.S_ISREG(mode) else f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, no file"
