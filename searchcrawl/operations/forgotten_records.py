"""Takes the records of forgotten URLs out of the segments of a source: no byte of them stays in the cache.

What no row names any more lies in the segments until they are compacted: each record there is read for its URL. A crash at
any moment loses no record, and the next call finds what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment_scan import find_gaps, has_record_of
from searchcrawl.delivery.compaction import rewrite
from searchcrawl.exceptions import CacheError
from searchcrawl.run import Run
from searchcrawl.store.documents import segment_table
from searchcrawl.store.engine.database import Transaction

T = TypeVar("T")
Read = Callable[[Callable[[Transaction], T]], T]


def find_segments(
    read: Read[list[segment_table.Needed]], cache: DocumentCache, source_id: int, is_meant: Callable[[str], bool]
) -> Iterator[int]:
    """The segments with a record, named by no row, of a URL that is meant, or with what cannot be read there.

    While a crawl writes, it may name too many. Raises CacheError, StoreError.
    """
    for number, size in cache.list_segments():
        find_needed = partial(segment_table.find_needed, source_id=source_id, number=number, with_waiting=True)
        places = [(row.offset, row.size) for row in read(find_needed)]
        if any(has_record_of(cache, number, begin, end, is_meant) for begin, end in find_gaps(size, places)):
            yield number


def remove_records(run: Run, cache: DocumentCache, is_meant: Callable[[str], bool]) -> int:
    """Rewrites all such segments of a source that no process crawls; returns how many. No row may name these records.

    Raises CacheError, StoreError, LeaseLost.
    """
    found = list(find_segments(run.read, cache, run.source_id, is_meant))
    for number in found:
        if not rewrite(run, cache, number):
            raise CacheError(f"segment {number} of {run.source.name} is in use: run the command again")
    if found:
        cache.settle()
    return len(found)
