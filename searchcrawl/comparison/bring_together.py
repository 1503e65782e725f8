"""Brings a store and an index together again that do not belong to the same moment (L4; docs: architecture).

Nothing is removed here. Where both differ the page decides: it is fetched whole in the next run, and sent, or leaves
with evidence of its own. If it is interrupted, the next start begins it again.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.cache.opening import open_cache
from searchcrawl.comparison.look import is_newer, look_at_sample
from searchcrawl.comparison.sorted_merge import SortedRow, pair_by_id
from searchcrawl.exceptions import DeliveryError, DiskFull
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import IndexEntry, SearchIndex
from searchcrawl.items import Link
from searchcrawl.run import Run
from searchcrawl.store import batch_table, source_table
from searchcrawl.store.documents import comparison_table
from searchcrawl.store.documents.comparison_table import Indexed
from searchcrawl.store.engine.database import Transaction

logger = logging.getLogger(__name__)

_PAGE: Final = comparison_table.PAGE_ROWS


def compare_at_begin(run: Run) -> None:
    """Looks at the index before a run claims anything: brings both together, or says in the log what mends the index.

    An index that cannot be reached keeps nothing from beginning. Raises StoreError, LeaseLost.
    """
    resending = run.read(source_table.find, run.source_id, "resend_version") is not None
    found = None
    try:
        with use_index(run.project) as index:
            if isinstance(index, SearchIndex) and not bring_together(run, index, resending=resending):
                found = look_at_sample(index, run.database, run.source.name)
    except (DeliveryError, DiskFull) as error:
        logger.info("the index is not compared with the store: %s", error)
    if found is not None:
        logger.warning("%s", found.message)
    prepare_resend(run)


def prepare_resend(run: Run) -> None:
    """Makes due what a resend under way cannot send; does nothing without one. Raises StoreError, LeaseLost."""
    if run.read(source_table.find, run.source_id, "resend_version") is None:
        return
    forget_lost_segments(run)
    after: int | None = 0
    while after is not None:
        after = run.write(batch_table.prepare_resend, source_id=run.source_id, after=after)


def forget_lost_segments(run: Run) -> None:
    """Notes which segments the cache does not have any more; raises StoreError, LeaseLost."""
    cached = {number for number, _ in open_cache(run.project, run.source.name).list_segments()}
    for number in run.read(comparison_table.find_segments, source_id=run.source_id) - cached:
        logger.warning("%s: segment %d of the cache is gone: its pages are fetched again", run.source.name, number)
        run.write(batch_table.forget_segment, source_id=run.source_id, number=number)


def bring_together(run: Run, index: SearchIndex, *, resending: bool = False) -> bool:
    """Compares all documents of a source where the index has versions that the store does not know; whether it did.

    With ``resending`` they are compared in any case. Then only documents without a record in the cache are to be fetched,
    because all others are sent. Raises DeliveryError, StoreError, LeaseLost.
    """
    name = run.source.name
    newer = is_newer(index, run.database, name)
    if not newer and not resending:
        return False
    if newer:
        logger.warning("%s: the index has versions that the store does not know: both are compared", name)
        while run.write(comparison_table.open_removals, source_id=run.source_id):
            pass
    changes = Changes(run, is_newer=bool(newer))
    entries = (entry for entry in index.scan(name) if entry.id.startswith(f"{name}:"))
    with pair_by_id(run.database, name, run.source_id, entries) as pairs:
        for row, entry in pairs:
            changes.add(row, entry)
    changes.write()
    if newer:
        note_compared(run, newer)
        logger.warning(
            "%s: the store lacked %d documents of the index, had %d in another version, and %d that the index lacks:"
            " their pages are fetched again",
            name,
            *(changes.counts[kind] for kind in ("unknown", "other", "missing")),
        )
    return True


def note_compared(run: Run, newer: int) -> None:
    """Ends a comparison with an index that was newer, up to the version ``newer``; raises StoreError, LeaseLost.

    Until then each start begins it again.
    """
    # From now on nothing says any more that the store was older.
    note = partial(comparison_table.note_version, source_id=run.source_id, run_id=run.id, version=newer)
    run.write(note, now_ms=clock.now_ms())


@dataclass(slots=True)
class Changes:
    """What a comparison changes in the table, written in small transactions; ``counts`` are those written so far.

    ``is_newer``: the index has versions that the store does not know, so the page decides, not the record in the cache.
    """

    run: Run
    is_newer: bool
    counts: Counter[str] = field(default_factory=Counter)
    _unknown: list[IndexEntry] = field(default_factory=list)
    _other: dict[int, Indexed] = field(default_factory=dict)
    _missing: list[int] = field(default_factory=list)
    _admission: Admission = field(init=False)

    def __post_init__(self) -> None:
        self._admission = Admission.of_run(self.run)

    def add(self, row: SortedRow | None, entry: IndexEntry | None) -> None:
        """Takes what both have of one document."""
        if entry is None and row is not None:
            self.note_missing(row.url_id)
        elif row is None and entry is not None:
            # Else the document is not ours, or nobody can tell which page it was made of.
            if urls.document_id(self.run.source.name, entry.access_url) == entry.id:
                self.adopt(entry)
        elif row is not None and entry is not None and self.is_newer and row.crawl_version != entry.crawl_version:
            self.take_over(row.url_id, entry)

    def note_missing(self, url_id: int) -> None:
        """Takes a document that the index lacks: it is fetched, if it belongs there."""
        self._missing.append(url_id)
        self._write_many()

    def adopt(self, entry: IndexEntry) -> None:
        """Takes a document that the table does not know, of which the page is known."""
        self._unknown.append(entry)
        self._write_many()

    def take_over(self, url_id: int, entry: IndexEntry) -> None:
        """Takes what the index has of a row, whatever the table says of it."""
        self._other[url_id] = _read_entry(entry)
        self._write_many()

    def _write_many(self) -> None:
        if len(self._unknown) + len(self._other) + len(self._missing) >= _PAGE:
            self.write()

    def write(self) -> None:
        """Writes what was gathered."""
        self.counts.update(unknown=len(self._unknown), other=len(self._other), missing=len(self._missing))
        self.run.write(self._write)
        self._admission.note_commit()
        self._unknown, self._other, self._missing = [], {}, []

    def _write(self, transaction: Transaction) -> None:
        admission = self._admission
        admission.note_rollback()
        comparison_table.note_missing(transaction, self._missing, with_records=self.is_newer)
        links = [FoundLinks(None, entry.depth, [Link(entry.access_url)]) for entry in self._unknown]
        admission.admit(transaction, links)
        found = {admission.row_of(urls.key(entry.access_url)): _read_entry(entry) for entry in self._unknown}
        comparison_table.take_over(transaction, self.run.source_id, found | self._other)


def _read_entry(entry: IndexEntry) -> Indexed:
    try:
        return Indexed(entry.crawl_version, bytes.fromhex(entry.checksum) or None)
    except ValueError:
        return Indexed(entry.crawl_version, None)
