"""Who may read what a project stores: its owner alone, or whom ``umask`` lets."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from searchcrawl.sources.project import Project

logger = logging.getLogger(__name__)


def apply_umask(project: Project) -> None:
    """Sets the umask of this process, and brings what is stored in the project's folder already to it.

    Elsewhere may be files of others: there only new ones follow it. Files of another user stay as they are, with a
    warning.
    """
    mask = int(project.umask, 8)
    os.umask(mask)
    root = project.root.resolve()
    for path in (path.resolve() for path in project.stored_paths):
        if root not in path.parents:
            continue
        try:
            mode = path.stat().st_mode
            if stat.S_IMODE(mode) != _find_mode(mode, mask):
                for each in _walk(path):
                    _bring(each, mask)
        except FileNotFoundError:
            # It is not there yet, or another process has just removed it.
            continue
        except OSError as error:
            logger.warning("umask: %s stays readable as it is: %s", error.filename or path, error.strerror)


def _find_mode(mode: int, mask: int) -> int:
    """The mode of a file or folder under a umask; such as the setgid bit of a folder stay."""
    return (stat.S_IMODE(mode) & ~0o777) | ((0o777 if stat.S_ISDIR(mode) else 0o666) & ~mask)


def _walk(path: Path) -> Iterator[Path]:
    """All below ``path`` and then itself: what was cut off is done again."""
    if path.is_dir():
        for folder, _, files in os.walk(path, topdown=False, onerror=_raise):
            yield from (Path(folder, name) for name in files)
            yield Path(folder)
    else:
        yield path


def _raise(error: OSError) -> None:
    raise error


def _bring(path: Path, mask: int) -> None:
    if path.is_symlink():
        return
    try:
        path.chmod(_find_mode(path.stat().st_mode, mask))
    except FileNotFoundError:
        # Another process writes there.
        return
