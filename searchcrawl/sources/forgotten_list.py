"""``forgotten.txt``: the list of what a project has forgotten. A line each; blank lines and ``#`` lines do not count."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

from searchcrawl import urls
from searchcrawl.durable import sync_folder
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.rules.forgotten import FILE, PATTERN, Forgotten, read_pattern
from searchcrawl.sources.checking import quote_value
from searchcrawl.sources.files import require_file
from searchcrawl.sources.project import FILE as PROJECT_FILE
from searchcrawl.terminal import to_one_line

#: Who calls it may not write there.
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_HEAD: Final = "# No source of this project requests or indexes these URLs: searchcrawl forget --help\n"


def read_list(root: Path) -> tuple[str, ...]:
    """The lines of the project's list, each once; raises ConfigurationError for a file or line that is not understood."""
    path = root / FILE
    try:
        about = path.stat()
        require_file(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ConfigurationError(FILE, "", f"cannot be read ({error.strerror})") from error
    return _read(path, FILE, about.st_mtime_ns, about.st_size, about.st_ino)


# Each source of a project asks for it.
@lru_cache(maxsize=8)
def _read(path: Path, file: str, *_version: int) -> tuple[str, ...]:
    return read_lines_of(path, file)


def read_lines_of(path: Path, file: str = "") -> tuple[str, ...]:
    """The lines of another file of the same form; ``file`` is its name in messages, where that is not the path."""
    file = file or str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(to_one_line(file), "", f"cannot be read ({reason})") from error
    found: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.strip().startswith("#"):
            found[check_line(line.strip(), file=file, place=f"line {number}")] = None
    return tuple(found)


def check_line(text: str, *, file: str = "", place: str = "", is_typed: bool = False) -> str:
    """A line as it is kept: a URL as its identity; ``is_typed``: as people type it. Raises ConfigurationError."""
    pattern = read_pattern(text)
    if pattern is None:
        try:
            # A single word may be the name of a source as well as that of a host, and what is forgotten is gone.
            is_host = is_typed and set(text) & set(".:/")
            return urls.resolve_typed(text, routes=True) if is_host else urls.resolve(text, routes=True, listed=True)
        except InvalidUrl as error:
            message = f"not an http or https URL, nor {PATTERN} and a URL rule (got {quote_value(text)})"
            raise ConfigurationError(to_one_line(file), place, message) from error
    try:
        Forgotten([text])
    except ConfigurationError as error:
        raise ConfigurationError(to_one_line(file), place, error.message) from error
    return f"{PATTERN} {pattern}"


def add_lines(root: Path, lines: Iterable[str]) -> None:
    """Adds lines that the list does not have; they survive a loss of power. Raises OSError, ConfigurationError."""
    try:
        with _locked(root):
            known = set(read_list(root))
            fresh = [line for line in dict.fromkeys(lines) if line not in known]
            if fresh:
                _write(root, fresh)
    except OSError as error:
        if error.errno not in _FORBIDDEN:
            raise
        raise ConfigurationError(FILE, "", f"cannot be written in {root} ({error.strerror})") from error


def _write(root: Path, fresh: Sequence[str]) -> None:
    # A link keeps the list where the user of a service may write.
    path = (root / FILE).resolve()
    new = path.with_name(f".{FILE}.new")
    before = path.read_text(encoding="utf-8-sig") if path.exists() else _HEAD
    if before and not before.endswith("\n"):
        before += "\n"
    with new.open("w", encoding="utf-8") as file:
        _let_others_read(file.fileno(), like=path if path.exists() else root / PROJECT_FILE)
        file.write(before + "".join(f"{line}\n" for line in fresh))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def _let_others_read(handle: int, *, like: Path) -> None:
    """Gives a new list the mode of ``like``, and where root writes it its owner: the crawls of a service read it, too."""
    about = like.stat()
    os.fchmod(handle, stat.S_IMODE(about.st_mode))
    if os.geteuid() == 0:
        os.fchown(handle, about.st_uid, about.st_gid)


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One process at a time: two calls must not lose each other's lines."""
    handle = _lock(root, os.O_RDONLY | os.O_DIRECTORY)
    if handle is None:
        handle = _lock(root / PROJECT_FILE, os.O_RDWR)
    if handle is None:
        raise OSError(errno.ENOLCK, "cannot be locked", str(root))
    try:
        yield
    finally:
        os.close(handle)


def _lock(path: Path, flags: int) -> int | None:
    """The locked file or folder; None where its file system locks only what is open for writing, as NFS does."""
    handle = os.open(path, flags | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        os.close(handle)
        if error.errno == errno.EBADF:
            return None
        raise OSError(error.errno, error.strerror, str(path)) from error
    return handle
