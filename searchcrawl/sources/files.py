"""The files of a project: those of its sources, of its spiders in Python, and others that a source names."""

from __future__ import annotations

import errno
import stat
import sys
from pathlib import Path
from typing import Final

from searchcrawl.exceptions import ConfigurationError

#: The folder of the source files.
SOURCES_DIR: Final = "sources"


def list_source_files(root: Path) -> list[Path]:
    """All source files of a project, sorted; also broken ones, and links that lead nowhere. None without the folder.

    Raises ConfigurationError where the folder cannot be read: its sources are not gone.
    """
    try:
        # Editors keep copies and locks in hidden files.
        named = (path for path in sorted((root / SOURCES_DIR).iterdir()) if not path.name.startswith("."))
        return [path for path in named if path.name.endswith(".toml") and not path.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _refuse_folder(error) from error


def has_source_file(root: Path, name: str) -> bool:
    """Whether a source has a file, broken or not; raises ConfigurationError as ``list_source_files`` does."""
    path = root / SOURCES_DIR / f"{name}.toml"
    try:
        # A link that leads nowhere is a file that cannot be read.
        path.lstat()
        return not path.is_dir()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refuse_folder(error) from error


def _refuse_folder(error: OSError) -> ConfigurationError:
    return ConfigurationError(SOURCES_DIR, "", f"cannot be read ({error.strerror})")


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


#: It is a package of this name, beside scrapy.cfg; it needs no ``__init__.py``.
SPIDERS_DIR: Final = "spiders"
_MARK: Final = "__init__.py"


def has_spiders_folder(root: Path) -> bool:
    """Whether the project has such a package."""
    return bool(list_spider_files(root))


def list_spider_files(root: Path) -> list[Path]:
    return sorted((root / SPIDERS_DIR).glob("*.py"))


def make_spiders_folder(root: Path) -> None:
    """Makes the package, if it is not there; raises OSError."""
    (root / SPIDERS_DIR).mkdir(exist_ok=True)
    (root / SPIDERS_DIR / _MARK).touch()


def make_importable(root: Path) -> None:
    """Has modules of the project's folder be found, after all others."""
    if str(root) not in sys.path:
        sys.path.append(str(root))
