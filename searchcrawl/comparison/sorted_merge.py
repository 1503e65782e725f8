"""The documents of a source in the table and in the index, side by side by rising id, in bounded memory (L4)."""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

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


def sort_rows(
    rows: Iterable[IndexedRow], name: str, file: PartFile, *, part_rows: int = _ROWS_IN_MEMORY
) -> Iterator[SortedRow]:
    """The rows of a source by rising id: sorted parts go into ``file``, and are merged. Raises OSError where the disk is full."""
    gathered: list[bytes] = []
    for row in rows:
        digest = bytes.fromhex(urls.document_id(name, row.url).rpartition(":")[2])
        checksum = row.fields_digest[:_DIGEST_BYTES]
        gathered.append(_RECORD.pack(digest, row.url_id, row.crawl_version, row.settled, checksum))
        if len(gathered) == part_rows:
            gathered.sort()
            file.add(gathered)
            gathered = []
    gathered.sort()
    for record in heapq.merge(*file.parts(), gathered):
        digest, url_id, crawl_version, settled, checksum = _RECORD.unpack(record)
        yield SortedRow(digest, url_id, crawl_version, bool(settled), checksum)


@contextmanager
def pair_by_id(
    database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]
) -> Iterator[Iterator[tuple[SortedRow | None, IndexEntry | None]]]:
    """The documents of a source by rising id, as table and index have them; None where one of the two has it not.

    Raises StoreError, IndexUnavailable where ``entries`` do not rise, and what they raise.
    """
    with closing(PartFile()) as file:
        rows = sort_rows(url_queries.list_indexed(database, source_id), name, file)
        yield _merge(rows, _check_order(entries), prefix=f"{name}:")


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
