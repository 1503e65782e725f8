"""What the document cache asks of the place where its segments are, such as a folder or an object store.

A segment is a number and a sequence of bytes. It grows at its end, in one process, until another one is begun; then it is
only read, and deleted at last. What the table does not name of it may be lost in a crash, and is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class OpenSegment(Protocol):
    """A segment that is written; used by one thread. Methods raise OSError or CacheError."""

    def write(self, data: bytes, offset: int) -> None:
        """Writes at ``offset``, the end of what is there; it may stay in memory until ``sync``."""

    def cut(self, size: int) -> None:
        """Forgets what is beyond ``size``, half a page: it lies in what was written since a ``sync``."""

    def sync(self) -> None:
        """Makes what was written durable; from now on it can be read."""

    def close(self) -> None:
        """Ends writing; what was not synced may be lost. May be called twice."""


class Storage(Protocol):
    """The segments of one source; safe for threads. Methods raise OSError or CacheError."""

    def open(self, number: int, committed_bytes: int) -> OpenSegment:
        """Opens a segment to go on with it; what is beyond ``committed_bytes`` is cut off. With 0 it may be a new one.

        Raises DamagedRecord where less than that is there, and SegmentInUse where another process writes it.
        """

    def read(self, number: int, offset: int, length: int) -> bytes:
        """The bytes there, fewer where the segment ends before.

        Raises DamagedRecord where they are gone for sure: their page is fetched again. Where that cannot be told, as in an
        outage, it raises CacheError.
        """

    def delete(self, number: int) -> None:
        """Deletes a segment, if it is there."""

    def list(self) -> Iterator[tuple[int, int]]:
        """Number and size in bytes of each segment, by rising number."""

    def settle(self) -> None:
        """Makes deletions durable."""

    def find_free_bytes(self) -> int:
        """How much more may be written."""

    def is_there(self) -> bool:
        """Whether anything of the source is stored."""

    def delete_all(self) -> None:
        """Deletes everything of the source, durably."""

    def lend(self, folder: Path) -> None:
        """Has a folder, which is there, hold all segments as files ``NNNNNNNN.warc.gz``, to be read."""

    def show(self, number: int) -> str:
        """What a segment is called in messages."""

    def close(self) -> None:
        """Closes what is open for reading; may be called twice."""
