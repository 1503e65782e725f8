"""The file by which the next run learns that a process has stopped turning: it gets the stacks of all threads, too."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

from searchcrawl.durable import make_folder

#: A frame of a thread, as the end of its file and its function: of the reactor while it waits for events.
_WAITS: Final = ("selectors.py", "select")
#: Of a thread that works for a page: the writer, and what the reactor has done elsewhere (``asyncio.to_thread``).
_WORKS: Final = frozenset({("group_commit.py", "_commit"), ("thread.py", "run")})


class StackFile:
    """The file of one source, or of a ``member`` of its run, in its folder of logs; OSError where the disk fails.

    A process that was stopped, and wakes up after another has taken its source over, writes to a file without a name.
    """

    def __init__(self, folder: Path, source: str, *, member: int = 0) -> None:
        self.path = folder / (f"{source}~{member}.stacks" if member else f"{source}.stacks")

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

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


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
