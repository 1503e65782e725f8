"""The file by which the next run learns which pages a process was parsing when it died.

It is a page of memory that the kernel keeps when the process is gone: a mark costs no system call.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from searchcrawl.durable import make_folder

_BYTES: Final = mmap.PAGESIZE
#: Of one id; more pages than there are places are parsed without a mark.
_PLACE: Final = struct.Struct("=q")
_NONE: Final = 0

P = ParamSpec("P")
T = TypeVar("T")


class ParseMark:
    """The file of one source, or of a ``member`` of its run, in its folder of logs; OSError where the disk fails.

    A process that was stopped, and wakes up after another has taken its source over, marks a file without a name.
    """

    def __init__(self, folder: Path, source: str, *, member: int = 0) -> None:
        self.path = folder / (f"{source}~{member}.parsing" if member else f"{source}.parsing")
        self._places: memoryview | None = None
        self._free: list[int] = []

    @property
    def is_open(self) -> bool:
        """Whether pages are marked."""
        return self._places is not None

    def open(self) -> None:
        """Makes a new file, without marks; an earlier one loses its name."""
        make_folder(self.path.parent)
        self.remove()
        with self.path.open("x+b") as file:
            # Written, and not left as a hole: a disk that is full later would end the process.
            file.write(bytes(_BYTES))
            file.flush()
            self._places = memoryview(mmap.mmap(file.fileno(), _BYTES)).cast("q")
        self._free = list(range(len(self._places)))

    def call(self, url_id: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls ``function``, which parses the page of a row; any thread may do so."""
        places = self._places
        if places is None or not self._free:
            return function(*args, **kwargs)
        place = self._free.pop()
        places[place] = url_id
        try:
            return function(*args, **kwargs)
        finally:
            places[place] = _NONE
            self._free.append(place)

    def read(self) -> frozenset[int]:
        """The rows whose pages were being parsed when the process that had the file ended."""
        try:
            written = self.path.read_bytes()
        except FileNotFoundError:
            return frozenset()
        whole = written[: len(written) // _PLACE.size * _PLACE.size]
        return frozenset(url_id for (url_id,) in _PLACE.iter_unpack(whole) if url_id != _NONE)

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)
