"""Sorts the indexed documents of a source by their id outside memory: sorted runs in a file, merged when read."""

from __future__ import annotations

import heapq
import struct
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self

from searchcrawl.store.urls.url_queries import IndexedRow

#: About 20 MB while a run is gathered.
_RUN_ROWS: Final = 100_000
_READ_ROWS: Final = 1000
_RECORD: Final = struct.Struct(">16sqqB32s")
_DIGEST_BYTES: Final = 32


class SortedRow(NamedTuple):
    """A document in the index by the table; ``digest`` are the 16 bytes of its id after the source's name."""

    digest: bytes
    url_id: int
    crawl_version: int
    settled: bool
    fields_digest: bytes


class RowSorter:
    """Takes rows in any order, then gives them back by rising id; a context manager around its file."""

    def __init__(self, *, run_rows: int = _RUN_ROWS) -> None:
        self._run_rows = run_rows
        self._gathered: list[bytes] = []
        self._file = tempfile.TemporaryFile(prefix="searchcrawl-")  # noqa: SIM115 (closed by __exit__)
        self._runs: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, row: IndexedRow, document_id: str) -> None:
        """Takes one row; raises OSError where the disk is full."""
        digest = bytes.fromhex(document_id.rpartition(":")[2])
        checksum = row.fields_digest[:_DIGEST_BYTES]
        self._gathered.append(_RECORD.pack(digest, row.url_id, row.crawl_version, row.settled, checksum))
        if len(self._gathered) == self._run_rows:
            self._write_run()

    def by_id(self) -> Iterator[SortedRow]:
        """All rows by rising id."""
        self._gathered.sort()
        for record in heapq.merge(*(self._read_run(*run) for run in self._runs), self._gathered):
            digest, url_id, crawl_version, settled, checksum = _RECORD.unpack(record)
            yield SortedRow(digest, url_id, crawl_version, bool(settled), checksum)

    def _write_run(self) -> None:
        self._gathered.sort()
        start = self._file.seek(0, 2)
        self._file.writelines(self._gathered)
        self._runs.append((start, len(self._gathered)))
        self._gathered = []

    def _read_run(self, start: int, rows: int) -> Iterator[bytes]:
        for first in range(0, rows, _READ_ROWS):
            count = min(_READ_ROWS, rows - first)
            # The other runs are read in between: each part finds its place again.
            self._file.seek(start + first * _RECORD.size)
            data = self._file.read(count * _RECORD.size)
            yield from (data[at : at + _RECORD.size] for at in range(0, len(data), _RECORD.size))
