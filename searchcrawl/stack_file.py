"""The file that gets the stacks of all threads when a process has stopped turning; the next run reads it."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

#: Many threads with deep stacks.
_MOST_BYTES: Final = 1 << 20


class StackFile:
    """The file of one source, in its folder of logs; OSError where the disk fails.

    A process that was stopped, and wakes up after another has taken its source over, writes to a file without a name.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.path = folder / f"{source}.stacks"

    def open(self) -> BinaryIO:
        """A new file, empty; an earlier one loses its name."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.remove()
        return self.path.open("xb", buffering=0)

    def read(self) -> str:
        """The stacks; empty where no process has stopped turning."""
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")

    def remove(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)
