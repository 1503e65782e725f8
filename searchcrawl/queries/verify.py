"""``verify``: compares the documents of the index with those that the URL table has receipts for (L4)."""

from __future__ import annotations

import heapq
import struct
import tempfile
from collections.abc import Collection, Iterator
from itertools import groupby
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from searchcrawl import clock, urls
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import IndexEntry, Receiver, SearchIndex
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.urls import url_queries, url_table
from searchcrawl.store.urls.url_queries import IndexedRow

_URLS_AT_ONCE: Final = 500
#: How many rows are sorted in memory, about 20 MB.
_ROWS_IN_MEMORY: Final = 100_000
_READ_ROWS: Final = 1000
_RECORD: Final = struct.Struct(">16sqqB32s")
_DIGEST_BYTES: Final = 32
_KINDS: Final = ("missing", "extra", "stale", "foreign")


class Difference(NamedTuple):
    """A document that differs between index and table; ``kind`` is the list to which it belongs."""

    kind: str
    url: str
    id: str
    why: str


def verify(database: Database, receiver: Receiver, sources: Collection[str], *, only: str | None) -> dict[str, Any]:
    """What ``verify --json`` prints, for all sources of a project, or for the one named by ``only``.

    ``sources`` are the names of all source files: documents of other sources are foreign. Only the number of
    differences makes memory grow. Raises UnsupportedByIndex, DeliveryError, StoreError.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot list its documents")
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    for each in _find_differences(database, receiver.scan(only), sources, only=only):
        found[each.kind].append({"url": each.url, "id": each.id, "why": each.why})
    return {"ok": not any(found.values()), **found, "repaired": 0}


def list_crawled_sources(database: Database, sources: Collection[str]) -> list[str]:
    """Those of ``sources`` that a process is crawling now: what it delivers meanwhile may be reported as a difference."""

    def find_held(transaction: Transaction) -> list[str]:
        names = run_table.find_source_names(transaction)
        now_ms = clock.now_ms()
        return sorted(
            name for id_, name in names.items() if name in sources and lease.is_held(transaction, id_, now_ms)
        )

    return database.read(find_held)


def _find_differences(
    database: Database, entries: Iterator[IndexEntry], sources: Collection[str], *, only: str | None
) -> Iterator[Difference]:
    names = database.read(run_table.find_source_names)
    tables = {name: number for number, name in names.items() if name in sources}
    if only is not None:
        tables = {name: number for name, number in tables.items() if name == only}
    unseen = dict(tables)
    # Ids begin with the name of the source and are sorted, so those of one source come together.
    for name, group in groupby(entries, key=_source_of):
        if name not in sources:
            yield from (_report_foreign(entry, name) for entry in group)
        elif name in unseen:
            yield from _compare_source(database, name, unseen.pop(name), group)
        else:
            yield from (_report_extra(entry) for entry in group)
    for name, source_id in unseen.items():
        yield from _compare_source(database, name, source_id, iter(()))


def _compare_source(
    database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]
) -> Iterator[Difference]:
    """Merges the documents of one source in index and table, both by rising id."""
    with RowSorter() as rows:
        for indexed in url_queries.list_indexed(database, source_id):
            rows.add(indexed, urls.document_id(name, indexed.url))
        missing: list[SortedRow] = []
        for row, entry in _merge(rows.by_id(), entries, prefix=f"{name}:"):
            if entry is None and row is not None:
                missing.append(row)
                if len(missing) == _URLS_AT_ONCE:
                    yield from _report_missing(database, name, missing)
                    missing = []
            elif entry is not None and row is None:
                yield _report_extra(entry)
            elif entry is not None and row is not None:
                yield from _report_stale(row, entry)
        yield from _report_missing(database, name, missing)


def _merge(
    rows: Iterator[SortedRow], entries: Iterator[IndexEntry], *, prefix: str
) -> Iterator[tuple[SortedRow | None, IndexEntry | None]]:
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


def _report_missing(database: Database, name: str, rows: list[SortedRow]) -> Iterator[Difference]:
    places = database.read(lambda transaction: url_table.find_places(transaction, [row.url_id for row in rows]))
    for row in rows:
        url = places[row.url_id][0]
        yield Difference(
            "missing", url, urls.document_id(name, url), f"the table has a receipt of version {row.crawl_version}"
        )


def _report_stale(row: SortedRow, entry: IndexEntry) -> Iterator[Difference]:
    if row.crawl_version != entry.crawl_version:
        why = f"version {entry.crawl_version} in the index, {row.crawl_version} in the table"
        yield Difference("stale", entry.url, entry.id, why)
    elif row.settled and row.fields_digest.hex() != entry.checksum:
        why = f"checksum {entry.checksum or 'none'} in the index, {row.fields_digest.hex()} in the table"
        yield Difference("stale", entry.url, entry.id, why)


def _report_extra(entry: IndexEntry) -> Difference:
    return Difference("extra", entry.url, entry.id, "the table has no receipt for it")


def _report_foreign(entry: IndexEntry, name: str) -> Difference:
    return Difference("foreign", entry.url, entry.id, f"the project has no source {name!r}")


def _source_of(entry: IndexEntry) -> str:
    return entry.id.rpartition(":")[0]


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
        self._file = tempfile.TemporaryFile(prefix="searchcrawl-")  # noqa: SIM115 (closed by __exit__)
        self._parts: list[tuple[int, int]] = []

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
            self._write_part()

    def by_id(self) -> Iterator[SortedRow]:
        """All rows by rising id."""
        self._gathered.sort()
        for record in heapq.merge(*(self._read_part(*part) for part in self._parts), self._gathered):
            digest, url_id, crawl_version, settled, checksum = _RECORD.unpack(record)
            yield SortedRow(digest, url_id, crawl_version, bool(settled), checksum)

    def _write_part(self) -> None:
        self._gathered.sort()
        start = self._file.seek(0, 2)
        self._file.writelines(self._gathered)
        self._parts.append((start, len(self._gathered)))
        self._gathered = []

    def _read_part(self, start: int, rows: int) -> Iterator[bytes]:
        for first in range(0, rows, _READ_ROWS):
            count = min(_READ_ROWS, rows - first)
            # The other parts are read in between, so each part remembers its own place.
            self._file.seek(start + first * _RECORD.size)
            data = self._file.read(count * _RECORD.size)
            yield from (data[at : at + _RECORD.size] for at in range(0, len(data), _RECORD.size))
