"""Which files below a folder are read, as the kernel says (inotify(7))."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Final, Self

_ACCESS: Final = 0x1
_OF_FOLDER: Final = 0x40000000
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")
_libc: Final = ctypes.CDLL(None, use_errno=True)


class ReadWatch:
    """Notes the files of a folder, and of those below it, of which a byte is read; for ``with``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folders = dict[int, Path]()

    def __enter__(self) -> Self:
        self._events = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder, *_ in os.walk(self._folder):
            watch = _libc.inotify_add_watch(self._events, os.fsencode(folder), _ACCESS)
            if watch < 0:
                raise OSError(ctypes.get_errno(), f"inotify_add_watch {folder}")
            self._folders[watch] = Path(folder)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._events)

    def take(self) -> list[str]:
        """The paths below the folder that were read since the last call, sorted."""
        found = set[str]()
        while events := self._read():
            while events:
                watch, mask, _, length = _EVENT.unpack_from(events)
                name = events[_EVENT.size : _EVENT.size + length].rstrip(b"\0")
                events = events[_EVENT.size + length :]
                assert not mask & _OVERFLOW
                if not mask & _OF_FOLDER:
                    found.add(str((self._folders[watch] / os.fsdecode(name)).relative_to(self._folder)))
        return sorted(found)

    def _read(self) -> bytes:
        try:
            return os.read(self._events, 1 << 16)
        except BlockingIOError:
            return b""
