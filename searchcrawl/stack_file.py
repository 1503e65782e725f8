"""The file by which the next run learns that a process has stopped turning: it gets the stacks of all threads, too."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from searchcrawl.durable import make_folder


class StackFile:
    """The file of one source, in its folder of logs; OSError where the disk fails.

    A process that was stopped, and wakes up after another has taken its source over, writes to a file without a name.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.path = folder / f"{source}.stacks"

    def open(self) -> BinaryIO:
        """A new file, empty; an earlier one loses its name."""
        make_folder(self.path.parent)
        self.remove()
        return self.path.open("xb", buffering=0)

    def is_written(self) -> bool:
        """Whether a process has stopped turning."""
        return self.path.exists() and self.path.stat().st_size > 0

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)
