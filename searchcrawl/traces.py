"""The files by which the next run learns of what ended a process: pages that it was parsing, and where it stopped turning."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, ClassVar, Final, ParamSpec, TypeVar

from searchcrawl.durable import make_folder

_BYTES: Final = mmap.PAGESIZE
#: Of one id; more pages than there are places are parsed without a mark.
_PLACE: Final = struct.Struct("=q")
_NONE: Final = 0

P = ParamSpec("P")
T = TypeVar("T")
#: A frame of a thread, as the end of its file and its function: of the reactor while it waits for events.
_WAITS: Final = ("selectors.py", "select")
#: Of a thread that works for a page: the writer, and what the reactor has done elsewhere (``asyncio.to_thread``).
_WORKS: Final = frozenset({("group_commit.py", "_commit"), ("thread.py", "run")})


class _Trace:
    """The file of one source, or of a ``member`` of its run, in its folder of logs; OSError where the disk fails.

    A process that was stopped, and wakes up after another has taken its source over, writes to a file without a name.
    """

    ending: ClassVar[str]

    def __init__(self, folder: Path, source: str, *, member: int = 0) -> None:
        self.path = folder / (f"{source}~{member}.{self.ending}" if member else f"{source}.{self.ending}")

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


class ParseMark(_Trace):
    """Marks which pages are being parsed.

    The file is a page of memory that the kernel keeps when the process is gone: a mark costs no system call.
    """

    ending = "parsing"

    def __init__(self, folder: Path, source: str, *, member: int = 0) -> None:
        super().__init__(folder, source, member=member)
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


class StackFile(_Trace):
    """Gets the stacks of all threads when the process has stopped turning."""

    ending = "stacks"

    def open(self) -> BinaryIO:
        """A new file, empty; an earlier one loses its name."""
        make_folder(self.path.parent)
        self.remove()
        return self.path.open("xb", buffering=0)

    def is_written(self) -> bool:
        """Whether a process has stopped turning."""
        return self.path.exists() and self.path.stat().st_size > 0

    def is_of_visit(self) -> bool:
        """Whether a visit had stopped it: the reactor was at work, or a thread that works for it.

        Where the reactor waited for events it was something else: the process was frozen, or a thread that has nothing
        to do with pages kept the lock of the interpreter.
        """
        threads = _read_threads(self.path.read_text("utf-8", "replace"))
        # The main thread, which is the oldest one, is written last.
        is_idle = bool(threads) and threads[-1][:1] == [_WAITS]
        return not is_idle or any(frame in _WORKS for frames in threads for frame in frames)


def _read_threads(text: str) -> list[list[tuple[str, str]]]:
    """The frames of each thread, the innermost first: the name of the file, and the function."""
    threads: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        if line.startswith(("Thread ", "Current thread ")):
            threads.append([])
        elif threads and line.startswith("  File "):
            path, _, function = line.rpartition(" in ")
            threads[-1].append((path.partition('", line ')[0].rpartition("/")[2], function))
    return threads
