"""A file without a name for records that do not fit into memory: written in parts, which are read side by side (L4)."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple

#: Records that are read at once.
_BATCH_RECORDS: Final = 1000


class _Batch(NamedTuple):
    """Where the lengths of records are in the file, with the records after them, how many there are, and their bytes."""

    at: int
    records: int
    size: int


class PartFile:
    """Takes parts, each some records in their order; who makes it closes it.

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
