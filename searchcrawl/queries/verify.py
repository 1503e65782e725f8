"""``verify``: compares the documents of the index with those that the URL table has receipts for (L4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from searchcrawl.comparison.second_look import Difference, Suspect, confirm, confirm_foreign
from searchcrawl.comparison.sorted_merge import SortedRow, pair_by_id
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import IndexEntry, Receiver, SearchIndex
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table

_KINDS: Final = ("missing", "extra", "stale", "foreign")


def verify(database: Database, receiver: Receiver, sources: Collection[str], *, only: str | None) -> dict[str, Any]:
    """What ``verify --json`` prints, for all sources of a project, or for the one named by ``only``.

    ``sources`` are the names of all source files: documents of other sources are foreign. Only the number of
    differences makes memory grow. Each is looked at once more before it is named: a crawl may go on meanwhile.
    Raises UnsupportedByIndex, DeliveryError, StoreError.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot list its documents")
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in _KINDS}
    for each in _find_differences(database, receiver, sources, only=only):
        found[each.kind].append({"url": each.url, "id": each.id, "why": each.why})
    return {"ok": not any(found.values()), **found, "repaired": 0}


def list_crawled_sources(database: Database, sources: Collection[str]) -> list[str]:
    """Those of ``sources`` that a process is crawling now: what it has under way is no difference."""

    def find_held(transaction: Transaction) -> list[str]:
        names = run_table.find_source_names(transaction)
        return sorted(name for id_, name in names.items() if name in sources and lease.is_held(transaction, id_))

    return database.read(find_held)


def _find_differences(
    database: Database, index: SearchIndex, sources: Collection[str], *, only: str | None
) -> Iterator[Difference]:
    wanted = set(sources) if only is None else {only}
    suspects: dict[str, list[Suspect]] = {}
    for name, suspect in _find_suspects(database, index.scan(only), _find_tables(database, wanted)):
        suspects.setdefault(name, []).append(suspect)
    # After the scan: that of a large index takes minutes, in which a crawl delivers a lot, maybe its first documents.
    tables = _find_tables(database, wanted)
    for name, found in suspects.items():
        if name in sources:
            yield from confirm(database, index, name, tables.get(name), found)
        else:
            yield from confirm_foreign(index, name, found)


def _find_tables(database: Database, wanted: Collection[str]) -> dict[str, int]:
    """The numbers of sources by name, as far as the store knows them."""
    names = database.read(run_table.find_source_names)
    return {name: number for number, name in names.items() if name in wanted}


def _find_suspects(
    database: Database, entries: Iterator[IndexEntry], tables: Mapping[str, int]
) -> Iterator[tuple[str, Suspect]]:
    """What seems to differ, with the name of its source; documents of sources without a table are all of it."""
    unseen = dict(tables)
    # Ids begin with the name of the source and are sorted, so those of one source come together.
    for name, group in groupby(entries, key=_source_of):
        if name in unseen:
            yield from ((name, each) for each in _compare_source(database, name, unseen.pop(name), group))
        else:
            yield from ((name, Suspect(entry.id, None, entry)) for entry in group)
    for name, source_id in unseen.items():
        yield from ((name, each) for each in _compare_source(database, name, source_id, iter(())))


def _compare_source(database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]) -> Iterator[Suspect]:
    """Merges the documents of one source in index and table, both by rising id."""
    with pair_by_id(database, name, source_id, entries) as pairs:
        for row, entry in pairs:
            if row is None or entry is None or _differ(row, entry):
                id_ = f"{name}:{row.digest.hex()}" if row is not None else entry.id if entry is not None else ""
                yield Suspect(id_, None if row is None else row.url_id, entry)


def _differ(row: SortedRow, entry: IndexEntry) -> bool:
    other = row.settled and row.fields_digest.hex() != entry.checksum
    return other or row.crawl_version != entry.crawl_version


def _source_of(entry: IndexEntry) -> str:
    return entry.id.rpartition(":")[0]
