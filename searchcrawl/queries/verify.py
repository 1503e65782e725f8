"""Compares the index with the URL table: what each of them has and the other has not (L4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import IndexEntry, Receiver, SearchIndex
from searchcrawl.queries.sorted_rows import RowSorter, SortedRow
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.urls import url_queries, url_table

_ADDRESSES_AT_ONCE: Final = 500
_KINDS: Final = ("missing", "extra", "stale", "foreign")


class Difference(NamedTuple):
    """One document that index and table do not agree about; ``kind`` is the list that it belongs to."""

    kind: str
    url: str
    id: str
    why: str


def verify(database: Database, receiver: Receiver, sources: Collection[str], *, only: str | None) -> dict[str, Any]:
    """The verify object of interface.md §2 for all sources of a project, or for the one named by ``only``.

    ``sources`` are the names of all source files: documents of other sources are foreign. Memory
    grows with the number of differences alone. Raises UnsupportedByIndex, DeliveryError, StoreError.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot list its documents")
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    for each in _differences(database, receiver.scan(only), sources, only=only):
        found[each.kind].append({"url": each.url, "id": each.id, "why": each.why})
    return {"ok": not any(found.values()), **found, "repaired": 0}


def being_crawled(database: Database, sources: Collection[str]) -> list[str]:
    """Those of ``sources`` that a process is crawling: what it delivers meanwhile may look like a difference."""

    def select(transaction: Transaction) -> list[str]:
        names = run_table.source_names(transaction)
        now_ms = clock.now_ms()
        return sorted(
            name for number, name in names.items() if name in sources and lease.held(transaction, number, now_ms)
        )

    return database.read(select)


def _differences(
    database: Database, entries: Iterator[IndexEntry], sources: Collection[str], *, only: str | None
) -> Iterator[Difference]:
    names = database.read(run_table.source_names)
    tables = {name: number for number, name in names.items() if name in sources}
    if only is not None:
        tables = {name: number for name, number in tables.items() if name == only}
    unseen = dict(tables)
    # Ids begin with the source's name, so that those of one source follow each other.
    for name, group in groupby(entries, key=_source_of):
        if name not in sources:
            yield from (_foreign(entry, name) for entry in group)
        elif name in unseen:
            yield from _compared(database, name, unseen.pop(name), group)
        else:
            yield from (_extra(entry) for entry in group)
    for name, source_id in unseen.items():
        yield from _compared(database, name, source_id, iter(()))


def _compared(database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]) -> Iterator[Difference]:
    """Merges the documents of one source in index and table, both by rising id."""
    with RowSorter() as rows:
        for indexed in url_queries.indexed_rows(database, source_id):
            rows.add(indexed, urls.document_id(name, indexed.url))
        missing: list[SortedRow] = []
        for row, entry in _merged(rows.by_id(), entries, prefix=f"{name}:"):
            if entry is None and row is not None:
                missing.append(row)
                if len(missing) == _ADDRESSES_AT_ONCE:
                    yield from _missing(database, name, missing)
                    missing = []
            elif entry is not None and row is None:
                yield _extra(entry)
            elif entry is not None and row is not None:
                yield from _stale(row, entry)
        yield from _missing(database, name, missing)


def _merged(
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


def _missing(database: Database, name: str, rows: list[SortedRow]) -> Iterator[Difference]:
    places = database.read(lambda transaction: url_table.addresses(transaction, [row.url_id for row in rows]))
    for row in rows:
        url = places[row.url_id][0]
        yield Difference(
            "missing", url, urls.document_id(name, url), f"the table has a receipt of version {row.crawl_version}"
        )


def _stale(row: SortedRow, entry: IndexEntry) -> Iterator[Difference]:
    if row.crawl_version != entry.crawl_version:
        why = f"version {entry.crawl_version} in the index, {row.crawl_version} in the table"
        yield Difference("stale", entry.url, entry.id, why)
    elif row.settled and row.fields_digest.hex() != entry.checksum:
        why = f"checksum {entry.checksum or 'none'} in the index, {row.fields_digest.hex()} in the table"
        yield Difference("stale", entry.url, entry.id, why)


def _extra(entry: IndexEntry) -> Difference:
    return Difference("extra", entry.url, entry.id, "the table has no receipt for it")


def _foreign(entry: IndexEntry, name: str) -> Difference:
    return Difference("foreign", entry.url, entry.id, f"the project has no source {name!r}")


def _source_of(entry: IndexEntry) -> str:
    return entry.id.rpartition(":")[0]
