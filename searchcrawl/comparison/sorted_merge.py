"""The documents of a source in the table and in the index, side by side by rising id, in bounded memory (L4)."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple, Self

from searchcrawl import urls
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import IndexEntry
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import url_queries
from searchcrawl.store.urls.url_queries import IndexedRow
from searchcrawl.temporary_files import PartFile

#: How many rows are sorted in memory, about 20 MB.
_ROWS_IN_MEMORY: Final = 100_000
#: A version, and a sha256; those of the first version have none.
_DIGEST_BYTES: Final = 33
_RECORD: Final = struct.Struct(f">16sqqB{_DIGEST_BYTES + 1}p")


class SortedRow(NamedTuple):
    """A document in the index by the table; ``digest`` are the 16 bytes of its id after the source's name."""

    digest: bytes
    url_id: int
    crawl_version: int
    settled: bool
    fields_digest: bytes


class RowSorter:
    """Takes rows in any order, then returns them by rising id; a context manager around its file.

    Sorts outside memory: sorted parts in a file, merged when they are read.
    """

    def __init__(self, *, part_rows: int = _ROWS_IN_MEMORY) -> None:
        self._part_rows = part_rows
        self._gathered: list[bytes] = []
        self._file = PartFile()

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
        if len(self._gathered) == self._part_rows:
            self._gathered.sort()
            self._file.add(self._gathered)
            self._gathered = []

    def by_id(self) -> Iterator[SortedRow]:
        """All rows by rising id."""
        self._gathered.sort()
        for record in heapq.merge(*self._file.parts(), self._gathered):
            digest, url_id, crawl_version, settled, checksum = _RECORD.unpack(record)
            yield SortedRow(digest, url_id, crawl_version, bool(settled), checksum)


@contextmanager
def pair_by_id(
    database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]
) -> Iterator[Iterator[tuple[SortedRow | None, IndexEntry | None]]]:
    """The documents of a source by rising id, as table and index have them; None where one of the two has it not.

    Raises StoreError, IndexUnavailable where ``entries`` do not rise, and what they raise.
    """
    with RowSorter() as rows:
        for indexed in url_queries.list_indexed(database, source_id):
            rows.add(indexed, urls.document_id(name, indexed.url))
        yield _merge(rows.by_id(), _check_order(entries), prefix=f"{name}:")


def _check_order(entries: Iterator[IndexEntry]) -> Iterator[IndexEntry]:
    """The entries; out of order, or twice, they would be differences that are none."""
    last = ""
    for entry in entries:
        if entry.id <= last:
            raise IndexUnavailable(f"the index lists its documents not by rising id: {entry.id!r} after {last!r}")
        last = entry.id
        yield entry


def _merge(
    rows: Iterator[SortedRow], entries: Iterator[IndexEntry], *, prefix: str
) -> Iterator[tuple[SortedRow | None, IndexEntry | None]]:
    """Pairs rows and entries with the same id, both by rising id; each without the other has None in its place."""
    row, entry = next(rows, None), next(entries, None)
    while row is not None or entry is not None:
        row_key = None if row is None else row.digest.hex()
        entry_key = None if entry is None else entry.id.removeprefix(prefix)
        if row_key == entry_key:
            yield row, entry
            row, entry = next(rows, None), next(entries, None)
        elif entry_key is None or (row_key is not None and row_key < entry_key):
            yield row, None
            row = next(rows, None)
        else:
            yield None, entry
            entry = next(entries, None)
