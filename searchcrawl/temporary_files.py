"""Temporary files: one without a name for records that do not fit into memory (L4), and private folders."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import IO, Final, NamedTuple

#: Records that are read at once.
_BATCH_RECORDS: Final = 1000
_LOCK: Final = "lock"
#: Neither follows a link nor waits for the other end of a pipe.
_CAREFULLY: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Batch(NamedTuple):
    """Where the lengths of records are in the file, with the records after them, how many there are, and their bytes."""

    at: int
    records: int
    size: int


class PartFile:
    """Takes parts, each some records in their order, which are read side by side; who makes it closes it.

    Methods raise OSError where the disk is full. The file is in ``folder``, which is made; else where temporary files are.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(prefix="searchcrawl-", dir=folder)  # noqa: SIM115 (closed by close)
        self._parts: list[list[_Batch]] = []

    def close(self) -> None:
        """Gives the place on the disk back."""
        self._file.close()

    def __len__(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def add(self, records: Iterable[bytes]) -> None:
        """Takes one part; who is reading all records sees it as well."""
        at, batches, rest = self._file.seek(0, 2), list[_Batch](), iter(records)
        while batch := list(islice(rest, _BATCH_RECORDS)):
            written = array("I", map(len, batch)).tobytes() + b"".join(batch)
            self._file.write(written)
            batches.append(_Batch(at, len(batch), len(written)))
            at += len(written)
        self._parts.append(batches)

    def __iter__(self) -> Iterator[bytes]:
        """All records, part by part."""
        for part in self._parts:
            yield from self._read(part)

    def parts(self) -> list[Iterator[bytes]]:
        """The records of each part; they may be read in turns."""
        return [self._read(part) for part in self._parts]

    def _read(self, part: list[_Batch]) -> Iterator[bytes]:
        for batch in part:
            # Other parts are read in between, so each has its own place.
            self._file.seek(batch.at)
            lengths = array("I")
            read = self._file.read(batch.size)
            first = batch.records * lengths.itemsize
            lengths.frombytes(read[:first])
            yield from (read[begin:end] for begin, end in pairwise(accumulate(lengths, initial=first)))


class PrivateFolder:
    """A new folder that only its user can enter; ``path`` is where it is.

    It is deleted by its process, or, where that was killed, by the next one that makes such a folder. All users of a machine may
    make files beside it, of any name and kind. So nothing there is opened before it is known to be ours, no link is followed, and
    no pipe is waited for.
    """

    def __init__(self, kind: str) -> None:
        """Deletes folders of the same kind whose process is gone. Raises OSError."""
        prefix = f"searchcrawl-{kind}-"
        with suppress(OSError):
            # What cannot be listed can still have a new folder.
            _sweep(prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            self._lock = self._take_lock()
        except BaseException:
            _delete(self.path)
            raise

    def read(self, name: str, *, most: int) -> bytes:
        """A file in it; raises OSError, and ValueError for one that is longer than ``most``."""
        with _opened(self.path / name, os.O_RDONLY, stat.S_IFREG) as handle:
            content = os.read(handle, most + 1)
        if len(content) > most:
            raise ValueError(f"{self.path / name}: has more than {most} bytes")
        return content

    def remove(self) -> None:
        """Deletes it; files that another process still writes do not matter."""
        _delete(self.path)
        self._lock.close()

    def _take_lock(self) -> IO[bytes]:
        # It gets its name once it is locked, so that no other process takes the folder for one that was left.
        new = self.path / f"{_LOCK}.new"
        # Nobody who may pass the folder may lock it.
        lock = os.fdopen(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CAREFULLY, 0o600), "wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(self.path / _LOCK)
        return lock


def _sweep(prefix: str) -> None:
    """Deletes folders of ours that no process has locked; raises OSError where nothing can be listed."""
    with _opened_shared() as shared:
        with os.scandir(shared) as entries:
            found = [entry.name for entry in entries if entry.name.startswith(prefix)]
        for name in found:
            with suppress(OSError):
                _delete_left(shared, name)


def _delete_left(shared: int, name: str) -> None:
    """Deletes a folder of ours that was left; raises OSError where it is none."""
    with (
        _opened(name, os.O_RDONLY | os.O_DIRECTORY, stat.S_IFDIR, shared) as folder,
        _opened(_LOCK, os.O_RDWR, stat.S_IFREG, folder) as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _delete(name, shared)


@contextmanager
def _opened_shared() -> Iterator[int]:
    handle = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _opened(name: str | Path, flags: int, kind: int, folder: int | None = None) -> Iterator[int]:
    """A handle of what has this name, if it is of this kind and ours; raises OSError otherwise."""
    # Before it is opened: of some things just that has effects.
    _require_ours(os.stat(name, dir_fd=folder, follow_symlinks=False), name, kind)
    handle = os.open(name, flags | _CAREFULLY, dir_fd=folder)
    try:
        # It may be another one by now.
        _require_ours(os.fstat(handle), name, kind)
        yield handle
    finally:
        os.close(handle)


def _require_ours(found: os.stat_result, name: str | Path, kind: int) -> None:
    if stat.S_IFMT(found.st_mode) != kind or found.st_uid != os.geteuid():
        raise PermissionError(f"{name}: is not ours, or of another kind")


def _delete(folder: str | Path, shared: int | None = None) -> None:
    with suppress(RecursionError):
        # Whoever may write below it may have put folders into folders without end.
        shutil.rmtree(folder, ignore_errors=True, dir_fd=shared)
