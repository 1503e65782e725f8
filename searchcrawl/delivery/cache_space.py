"""Keeps the cache within ``cache.max_gb``: superseded records go first, then the oldest segments (E2)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Set as AbstractSet
from typing import Final

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.compaction import Segment, compact, give_up, plan
from searchcrawl.exceptions import CacheError
from searchcrawl.run import Run
from searchcrawl.store.batches import resend_table
from searchcrawl.store.documents import segment_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.receivers import log_table

logger = logging.getLogger(__name__)

#: So much stays free on the disk while records are moved.
_SPARE_BYTES: Final = 256 << 20
#: The needed records of several segments are moved into one of so many bytes, or of such a part of the cache: the oldest
#: ones are given up a segment at a time.
_MOST_BYTES: Final = 64 << 20
_LEAST_SEGMENTS: Final = 32


class CacheSpace:
    """Frees the cache of a run; any thread may call ``free``."""

    def __init__(self, run: Run, cache: DocumentCache) -> None:
        self._run = run
        self._cache = cache
        self._lock = threading.Lock()
        #: segments of which none was worth to be rewritten, and those that were in use
        self._seen: tuple[dict[int, int], set[int]] | None = None

    def count_bytes(self) -> int:
        """The size of the cache."""
        return sum(size for _, size in self._cache.list_segments())

    def free(self) -> None:
        """Deletes records that the index has, and all receivers; none while everything is sent again.

        Without ``cache.preserve`` all of them go. Else those beyond ``max_gb``: first superseded ones, then the oldest. A full
        cache does not wait for receivers besides the index: they get later what is fetched again.
        Raises StoreError, LeaseLost, CacheError.
        """
        with self._lock:
            source_id = self._run.source_id
            used = self._run.read(_find_in_use, source_id=source_id)
            if used is None or (self._run.project.cache.preserve and not self._count_excess()):
                return
            unread = self._run.read(log_table.find_segments_unread, source_id=source_id) - used
            self._free(used | unread)
            if unread and self._count_excess():
                self._free(used)

    def _free(self, used: set[int]) -> None:
        sizes = dict(self._cache.list_segments())
        if not self._run.project.cache.preserve:
            for number in sorted(sizes.keys() - used):
                give_up(self._run, self._cache, number)
        elif self._count_excess():
            self._give_up_oldest(used, self._compact(sizes, used))

    def _count_excess(self, leaving: AbstractSet[int] = frozenset()) -> int:
        """How many bytes are too many, without segments that are about to leave."""
        size = sum(size for number, size in self._cache.list_segments() if number not in leaving)
        return max(0, size - self._run.project.cache.max_bytes)

    def _compact(self, sizes: dict[int, int], used: set[int]) -> set[int]:
        """Has superseded records go, as far as that is necessary; returns the segments that can be deleted later."""
        leaving: set[int] = set()
        if self._seen == (sizes, used):
            return leaving
        groups = self._plan(sizes, used)
        self._seen = None if groups else (sizes, used)
        for group in groups:
            spare = self._cache.find_free_bytes() - sum(segment.needed for segment in group)
            if not self._count_excess(leaving) or spare < _SPARE_BYTES:
                break
            try:
                leaving |= compact(self._run, self._cache, group)
            except CacheError as error:
                logger.warning("superseded records cannot be taken out of the cache: %s", error)
                break
        return leaving

    def _plan(self, sizes: dict[int, int], used: set[int]) -> list[list[Segment]]:
        run = self._run
        needed = run.read(segment_table.count_needed, run.source_id)
        ages = self._find_ages()
        segments = [
            Segment(ages.get(number, number), number, size, needed.get(number, 0))
            for number, size in sizes.items()
            if number not in used
        ]
        return list(plan(segments, target_bytes=min(_MOST_BYTES, run.project.cache.max_bytes // _LEAST_SEGMENTS)))

    def _give_up_oldest(self, used: set[int], leaving: set[int]) -> None:
        ages = self._find_ages()
        excess = self._count_excess(leaving)
        sizes = {number: size for number, size in self._cache.list_segments() if number not in {*used, *leaving}}
        for number in sorted(sizes, key=lambda number: (ages.get(number, number), number)):
            if excess <= 0:
                break
            if give_up(self._run, self._cache, number):
                excess -= sizes[number]

    def _find_ages(self) -> dict[int, int]:
        run = self._run
        return run.read(segment_table.find_ages, run.source_id)


def _find_in_use(transaction: Transaction, *, source_id: int) -> set[int] | None:
    """The segments that must stay; None means all of them."""
    if resend_table.find_version(transaction, source_id) is not None:
        return None
    return segment_table.find_in_use(transaction, source_id)
