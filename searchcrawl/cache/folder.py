"""Segments as files of a folder: ``cache.location = "files"``."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from searchcrawl.cache.disk_space import free_bytes
from searchcrawl.durable import make_folder, sync_folder
from searchcrawl.exceptions import CacheError, DamagedRecord, SegmentInUse

_SEGMENT_NAME: Final = re.compile(r"(\d{8,})\.warc\.gz")
_MAX_OPEN_FILES: Final = 8


class SegmentFile:
    """A file to which a segment is written (``storage.OpenSegment``)."""

    def __init__(self, path: Path, committed_bytes: int) -> None:
        self._path = path
        self._folder_is_unsynced = committed_bytes == 0
        create = os.O_CREAT if committed_bytes == 0 else 0
        make_folder(path.parent)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC | create, 0o644)
        except FileNotFoundError as error:
            raise DamagedRecord(f"{path}: missing, but {committed_bytes} bytes were committed") from error
        try:
            self._lock()
            size = os.fstat(self._file).st_size
            if size < committed_bytes:
                raise DamagedRecord(f"{path}: {size} bytes, but {committed_bytes} were committed")
            self.cut(committed_bytes)
        except BaseException:
            self.close()
            raise

    def write(self, data: bytes, offset: int) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._file, rest, offset)
            rest, offset = rest[written:], offset + written

    def cut(self, size: int) -> None:
        os.ftruncate(self._file, size)

    def sync(self) -> None:
        os.fsync(self._file)
        if self._folder_is_unsynced:
            sync_folder(self._path.parent)
            self._folder_is_unsynced = False

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lock(self) -> None:
        """Locks the file until it is closed: a frozen process may have lost its lease and still write here (X-S3)."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SegmentInUse(f"{self._path}: another process is writing to it") from error


class SegmentFolder:
    """The folder with the segments of a source (``storage.Storage``); the first writer makes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: OrderedDict[int, int] = OrderedDict()

    def open(self, number: int, committed_bytes: int) -> SegmentFile:
        return SegmentFile(self._build_path(number), committed_bytes)

    def read(self, number: int, offset: int, length: int) -> bytes:
        path = self._build_path(number)
        try:
            # Under the lock: another thread must not close the file, whose number may then be another file's.
            with self._lock:
                return os.pread(self._open_file(number), length, offset)
        except FileNotFoundError as error:
            raise DamagedRecord(f"{path}: the segment is missing") from error
        except OSError as error:
            # A bad sector damages the pages on it; other errors, such as a missing permission, concern all pages.
            kind = DamagedRecord if error.errno == errno.EIO else CacheError
            raise kind(f"{path}: {error.strerror or error}") from error

    def delete(self, number: int) -> None:
        with self._lock:
            self._close_file(number)
        self._build_path(number).unlink(missing_ok=True)

    def list(self) -> Iterator[tuple[int, int]]:
        if not self.is_there():
            return
        numbers = (int(match[1]) for path in self._folder.iterdir() if (match := _SEGMENT_NAME.fullmatch(path.name)))
        for number in sorted(numbers):
            try:
                size = self._build_path(number).stat().st_size
            except FileNotFoundError:  # deleted since the folder was read
                continue
            yield number, size

    def settle(self) -> None:
        if self.is_there():
            sync_folder(self._folder)

    def find_free_bytes(self) -> int:
        return free_bytes(self._folder)

    def is_there(self) -> bool:
        return self._folder.is_dir()

    def delete_all(self) -> None:
        if self.is_there():
            shutil.rmtree(self._folder)
            sync_folder(self._folder.parent)

    def lend(self, folder: Path) -> None:
        for segment in self._folder.iterdir() if self.is_there() else ():
            (folder / segment.name).symlink_to(segment.resolve())

    def show(self, number: int) -> str:
        return str(self._build_path(number))

    def close(self) -> None:
        with self._lock:
            for number in [*self._files]:
                self._close_file(number)

    def _build_path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.warc.gz"

    def _open_file(self, number: int) -> int:
        if number in self._files:
            self._files.move_to_end(number)
            return self._files[number]
        file = os.open(self._build_path(number), os.O_RDONLY | os.O_CLOEXEC)
        self._files[number] = file
        if len(self._files) > _MAX_OPEN_FILES:
            self._close_file(next(iter(self._files)))
        return file

    def _close_file(self, number: int) -> None:
        file = self._files.pop(number, None)
        if file is not None:
            os.close(file)
