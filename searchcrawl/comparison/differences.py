"""What differs between table and index, source by source, in constant memory however much it is (L4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby

from searchcrawl.comparison.second_look import (
    Difference,
    Suspect,
    confirm,
    confirm_foreign,
    spool_suspects,
)
from searchcrawl.comparison.sorted_merge import SortedRow, pair_by_id
from searchcrawl.index.receiver import IndexEntry, SearchIndex
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table

#: Gets the name of a source and its differences; returns them as they are then.
Treatment = Callable[[str, Iterator[Difference]], Iterable[Difference]]


def find_differences(
    database: Database,
    index: SearchIndex,
    sources: Collection[str],
    *,
    only: str | None,
    treat: Treatment | None = None,
) -> Iterator[Difference]:
    """The differences of all sources, or of the one named by ``only``; documents of others than ``sources`` are foreign.

    Each was looked at twice. ``treat`` may mend those of a source, which is not read any more then. Raises StoreError,
    DeliveryError, OSError.
    """
    wanted = set(sources) if only is None else {only} & set(sources)
    with spool_suspects() as suspects:
        for suspect in _find_suspects(database, index.scan(only), find_tables(database, wanted)):
            suspects.add(suspect)
        # After the scan: that of a large index takes minutes, in which a crawl delivers a lot, maybe its first documents.
        tables = find_tables(database, None)
        for name, group in groupby(suspects, key=lambda suspect: suspect.source):
            source_id = tables.get(name)
            if name in sources:
                found = confirm(database, index, name, source_id, group)
            else:
                found = confirm_foreign(database, index, name, source_id, group)
            yield from found if treat is None else treat(name, found)


def find_tables(database: Database, wanted: Collection[str] | None) -> dict[str, int]:
    """The numbers of sources by name, as far as the store knows them; None: of all."""
    names = database.read(run_table.find_source_names)
    return {name: number for number, name in names.items() if wanted is None or name in wanted}


def _find_suspects(database: Database, entries: Iterator[IndexEntry], tables: Mapping[str, int]) -> Iterator[Suspect]:
    """What seems to differ; documents of sources without a table are all of it."""
    unseen = dict(tables)
    # Ids begin with the name of the source and are sorted, so those of one source come together.
    for name, group in groupby(entries, key=_source_of):
        if name in unseen:
            yield from _compare_source(database, name, unseen.pop(name), group)
        else:
            yield from (Suspect(name, entry.id, None, entry) for entry in group)
    for name, source_id in unseen.items():
        yield from _compare_source(database, name, source_id, iter(()))


def _compare_source(database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]) -> Iterator[Suspect]:
    """Merges the documents of one source in index and table, both by rising id."""
    with pair_by_id(database, name, source_id, entries) as pairs:
        for row, entry in pairs:
            if row is None or entry is None or _differ(row, entry):
                id_ = f"{name}:{row.digest.hex()}" if row is not None else entry.id if entry is not None else ""
                yield Suspect(name, id_, None if row is None else row.url_id, entry)


def _differ(row: SortedRow, entry: IndexEntry) -> bool:
    other = row.settled and row.fields_digest.hex() != entry.checksum
    return other or row.crawl_version != entry.crawl_version


def _source_of(entry: IndexEntry) -> str:
    return entry.id.rpartition(":")[0]
