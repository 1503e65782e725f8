"""``verify``: compares the documents of the index with those that the URL table has receipts for (L4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from searchcrawl import urls
from searchcrawl.comparison.sorted_merge import SortedRow, pair_by_id
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import IndexEntry, Receiver, SearchIndex
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.urls import url_table

_URLS_AT_ONCE: Final = 500
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
        return sorted(name for id_, name in names.items() if name in sources and lease.is_held(transaction, id_))

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
    with pair_by_id(database, name, source_id, entries) as pairs:
        missing: list[SortedRow] = []
        for row, entry in pairs:
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
