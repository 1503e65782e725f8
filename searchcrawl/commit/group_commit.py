"""The writer thread: makes the ends of visits durable, a group at a time (docs: decisions/one-writer).

The records of a group are appended to the open segment and synced. Then the rows, documents, links and counters of the
group are written in one transaction. A crash loses the whole group; its rows are fetched again. While the store is away
the group waits, and the visits that end meanwhile wait behind it (X-S4, X-S9).
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.admission.url_normalisation import normalise_found, normalise_parts, normalise_submitted
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import SegmentWriter, encode_page
from searchcrawl.commit import decide, document_rows, link_rows
from searchcrawl.commit.decide import Group
from searchcrawl.commit.link_rows import DisplayChanges, SitemapRows
from searchcrawl.commit.listed_rows import ListedRows
from searchcrawl.commit.review import Review
from searchcrawl.commit.turned_pages import TurnedPages
from searchcrawl.commit.withdrawals import Withdrawals
from searchcrawl.counters import sum_up
from searchcrawl.exceptions import DamagedRecord, SearchcrawlError, SegmentInUse
from searchcrawl.failpoints import reach
from searchcrawl.items import Document, Outcome, Place, SitemapPart, SubmittedUrls, Withdrawn
from searchcrawl.listing.model import ListedPart
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.run import Run
from searchcrawl.store import batch_table, sitemap_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import document_queries, document_table, duplicate_key_table, segment_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import recrawl_table, url_table
from searchcrawl.store.urls.url_table import Settled

logger = logging.getLogger(__name__)

#: The most pages of a group: so many pages, and those in flight, may be fetched again after a crash.
GROUP_PAGES: Final = 128
#: Each group costs some twenty statements, however small it is.
GROUP_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.01
#: So long the sitemap of a host waits for the next one where no page is under way: each would be a group of its own, with a sync.
_SITEMAP_SECONDS: Final = 0.02
#: So many bytes of bodies and texts may be in a group, and wait for the next one, or one item that is larger.
_MOST_BYTES: Final = 16 << 20


#: The items that the writer takes.
Item = Document | Outcome | SitemapPart | ListedPart | SubmittedUrls | Withdrawn


class WriterQueue:
    """The items that wait for the writer thread. Any thread may call ``submit``; the writer calls the rest.

    The writer takes ``group_pages`` at once; no more should wait.
    """

    def __init__(self, *, group_pages: int = GROUP_PAGES) -> None:
        self.group_pages = group_pages
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._is_open = False
        self._submitted = self._taken = 0
        #: called in the writer thread after each group, and once nothing is written any more: whoever waits looks again
        self.on_room: list[Callable[[], object]] = []

    @property
    def is_full(self) -> bool:
        """Whether so many items or bytes wait that no more should come."""
        return self._items.qsize() > self.group_pages or self._submitted - self._taken > _MOST_BYTES

    def submit(self, item: Item) -> bool:
        """Adds the end of a visit, or URLs to admit; False before ``open`` and after ``close``."""
        if self._is_open:
            if held := _count_held(item):
                # Pages come from the reactor alone: one thread counts here, and the writer counts what it takes.
                self._submitted += held
            self._items.put(item)
        return self._is_open

    def open(self) -> None:
        """Accepts items from now on: the writer has begun."""
        self._is_open = True

    def close(self) -> None:
        """Accepts no more items; the writer takes those that wait, and ends."""
        self._is_open = False
        self._items.put(None)

    def take(self) -> Item | None:
        """Waits for the next item; None after the last one of a closed queue."""
        return self._note_taken(self._items.get())

    def take_nowait(self) -> Item | None:
        """The next item; raises queue.Empty if none waits."""
        return self._note_taken(self._items.get_nowait())

    def tell_room(self) -> None:
        """Calls who waits for room."""
        for call in self.on_room:
            call()

    def _note_taken(self, item: Item | None) -> Item | None:
        self._taken += _count_held(item)
        return item


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """What the writer asks and calls, in its thread."""

    #: how many requests are under way
    in_flight: Callable[[], int]
    #: keeps the run from ending until what it returns is called
    hold: Callable[[], Callable[[], None]]
    #: (visits, hosts) so many visits were committed, and these hosts have new rows
    on_commit: Callable[[int, Collection[int]], None]
    #: a part of a sitemap, folder or table was committed
    on_part: Callable[[Any], None]
    #: a batch was sealed, and can be delivered
    on_batch: Callable[[SealedBatch], None]
    #: nothing can be written any more
    on_failure: Callable[[Exception], None]


class GroupCommit:
    """The writer of one run: a thread that makes the items of ``waiting`` durable.

    A helper thread makes it and calls ``finish``; all other methods run in the thread ``writer``.
    """

    def __init__(
        self,
        run: Run,
        cache: DocumentCache,
        admission: Admission,
        waiting: WriterQueue,
        *,
        traps: TrapWatch,
        review: Review,
        listeners: Listeners,
    ) -> None:
        self._run = run
        self._cache = cache
        self._admission = admission
        self._traps = traps
        self._turned = TurnedPages(run, cache)
        self._turned.open()
        self._withdrawals = Withdrawals(run)
        self._review = review
        self._next_look = 0.0
        #: until then the next sitemap is one of many
        self._many_sitemaps_until = 0.0
        self._listeners = listeners
        self._queue = waiting
        self._unsent_bytes = run.read(document_table.count_waiting, run.source_id)[1]
        # Most sources have no canonical links: then the queries for them are left out.
        self._canonicals = run.read(duplicate_key_table.has_canonicals, run.source_id)
        self._segment, self._writer = self._open_segment()
        self._sitemaps = SitemapRows(run.source_id, run.id)
        self._listed = ListedRows(run)
        displays = run.display if run.rewriting.displays else None
        self._displays = None if displays is None else DisplayChanges(run.source_id, displays)
        self._failed = False
        self._finishing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()
        waiting.open()

    def finish(self) -> None:
        """Writes what waits and ends the thread."""
        self._queue.close()
        self._finishing.set()
        self._thread.join()
        self._writer.close()

    def _open_segment(self) -> tuple[int, SegmentWriter]:
        """Opens the segment to append to: a new one where it is damaged, or still open in a process that was frozen."""
        run = self._run
        number, committed = run.read(segment_table.find_open, run.source_id)
        while True:
            try:
                return number, self._cache.open_writer(number, committed)
            except (DamagedRecord, SegmentInUse) as error:
                logger.error(
                    "%s; the cache goes on in a new segment, what is missing is fetched again when needed", error
                )
            number, committed = run.write(segment_table.begin, source_id=run.source_id), 0

    def _work(self) -> None:
        last = False
        while not last:
            try:
                group, last = self._next_group()
                if group and not self._failed:
                    self._commit(group)
                    self._look_at_rows()
            except Exception as error:
                # After any error nothing more is written; the rows are visited again by the next run.
                self._failed = True
                self._admission.note_rollback()
                if isinstance(error, SearchcrawlError):
                    # The command itself prints the error that ended the run.
                    logger.warning("the writer stops: %s", error)
                else:
                    logger.exception("the writer stops")
                # First, because who is woken looks at the failure, and is woken only once.
                self._listeners.on_failure(error)
                self._queue.tell_room()

    def _take_first(self) -> Item | None:
        """Waits for the first item of a group."""
        while self._has_rows_to_look_at():
            try:
                return self._queue.take_nowait()
            except queue.Empty:
                self._pass_time()
        return self._queue.take()

    def _pass_time(self) -> None:
        """Looks at some rows that were there before the source file was edited, and waits a moment.

        It sleeps instead of being woken by each visit: that would take time from fetching and parsing.
        """
        if self._has_rows_to_look_at():
            self._look_at_rows()
        self._finishing.wait(_LOOK_SECONDS)

    def _has_rows_to_look_at(self) -> bool:
        return not (self._review.is_over or self._failed or self._finishing.is_set())

    def _look_at_rows(self) -> None:
        if self._review.is_over:
            return
        self._review.step()
        if clock.monotonic() >= self._next_look:
            # There may be more to claim.
            self._next_look = clock.monotonic() + GROUP_SECONDS
            self._listeners.on_commit(0, ())

    def _next_group(self) -> tuple[list[Item], bool]:
        """Waits for a group that is full, old enough, large enough for a batch, or the last one in flight (but for sitemaps).

        Returns it, and whether the queue was closed.
        """
        first = self._take_first()
        if first is None:
            return [], True
        group = [first]
        room = self._run.project.cache.threshold_bytes - self._unsent_bytes - _count_bytes(first)
        held = _count_held(first)
        now = taken = clock.monotonic()
        deadline, patience = now + GROUP_SECONDS, self._find_patience(first, now)
        while len(group) < self._queue.group_pages and room > 0 and held < _MOST_BYTES:
            try:
                item = self._queue.take_nowait()
            except queue.Empty:
                now = clock.monotonic()
                if now >= deadline or (now >= taken + patience and self._listeners.in_flight() == 0):
                    break
                self._pass_time()
                continue
            if item is None:
                return group, True
            group.append(item)
            if patience:
                taken = clock.monotonic()
            room -= _count_bytes(item)
            held += _count_held(item)
        return group, False

    def _find_patience(self, first: Item, now: float) -> float:
        """How long a group waits for its next item where no page is under way, in seconds: 0 but where one sitemap follows the other."""
        if not isinstance(first, SitemapPart):
            return 0.0
        is_one_of_many = now < self._many_sitemaps_until
        self._many_sitemaps_until = now + GROUP_SECONDS
        return _SITEMAP_SECONDS if is_one_of_many else 0.0

    def _commit(self, group: Sequence[Item]) -> None:
        run = self._run
        parts = [item for item in group if isinstance(item, SitemapPart)]
        of_lists = [item for item in group if isinstance(item, ListedPart)]
        items: Sequence[Document | Outcome] = [item for item in group if isinstance(item, Document | Outcome)]
        if any(map(link_rows.is_redirect, items)):
            most = run.source.fetch.max_redirects
            items = run.read(link_rows.cut_redirect_chains, items, source_id=run.source_id, max_redirects=most)
        decided = self._decide(items)
        watched = self._turned.look(decided.stored)
        if watched.held:
            items = watched.end_visits(items)
            decided = self._decide(items)
        decided.back, decided.readable = watched.back, watched.readable
        pages = {item.claim.url_id: item.claim.url for item in items}
        decided.found[:] = normalise_found(decided.found, run.rewriting, pages)
        parts, listed = normalise_parts(parts, run.rewriting)
        decided.submitted = [url for item in group if isinstance(item, SubmittedUrls) for url in item.urls]
        listed += normalise_submitted(decided.submitted, run.rewriting)
        named = any(document.canonical for document in decided.stored) or any(decided.canonicals.values())
        # One that is put back may name another page where none did before.
        self._canonicals |= named or bool(decided.back)
        decided.bare.update(self._traps.observe(items))
        places = self._append(decided.stored)
        self._withdrawals.add(item for item in group if isinstance(item, Withdrawn))
        withdrawn = self._turned.find_readable(self._withdrawals.known)

        def write(transaction: Transaction) -> Mapping[str, int]:
            self._turned.keep(transaction, watched)
            new = self._listed.compare(transaction, of_lists)
            counts = self._write(transaction, items, parts, [*listed, *new], decided.copy(), places)
            counts = sum_up(counts, self._listed.write(transaction, self._admission.find_row))
            return sum_up(counts, self._withdrawals.write(transaction, withdrawn))

        run.write_counted(write)
        reach("links.committed")
        new_hosts = self._admission.note_commit()
        self._sitemaps.note_commit()
        self._withdrawals.note_commit()
        if self._displays is not None:
            self._displays.note_commit()
        self._end_traps()
        self._listed.note_commit()
        self._listeners.on_commit(len(items), new_hosts)
        self._queue.tell_room()
        for part in (*parts, *of_lists):
            self._listeners.on_part(part)
        self._unsent_bytes += sum(document.body_bytes for document in decided.stored if document.code == 200)
        if self._unsent_bytes >= run.project.cache.threshold_bytes:
            self._seal()

    def _end_traps(self) -> None:
        """Ends what the last group showed to be a trap before more is claimed, and withholds its documents."""
        traps = self._traps
        if traps.has_ended:
            self._run.write(traps.store)
            traps.note_commit()
        if traps.take_withholding():
            _withhold(self._run, traps)

    def _decide(self, items: Sequence[Document | Outcome]) -> Group:
        run, row = self._run, self._run.row
        return decide.decide(
            items,
            run.source,
            horizon_ms=row.horizon_ms,
            after_run=row.after_run,
            edited=run.forced,
            same_links=run.keeps_links,
        )

    def _write(
        self,
        transaction: Transaction,
        items: Sequence[Document | Outcome],
        parts: Sequence[SitemapPart],
        listed: Sequence[FoundLinks],
        group: Group,
        places: Mapping[int, Place],
    ) -> Mapping[str, int]:
        """Writes the rows of a group; returns what it adds to the counters."""
        run = self._run
        # If the transaction is repeated, the counts of the first try are forgotten.
        self._admission.note_rollback()
        displays = self._displays.write(transaction, [*group.found, *listed]) if self._displays else {}
        group.displays = displays | group.displays
        document_rows.write_documents(transaction, run.source_id, group, places, canonicals=self._canonicals)
        if run.source.kind.table:
            link_rows.write_said_displays(transaction, items)
        self._turned.note_back(transaction, group)
        # Where a page is back with the bytes of before, its links are to be found all the same.
        unread = [*group.unread, *group.waiting]
        document_table.process_again(transaction, unread if run.forced else group.relinked)
        if displays or group.denied:
            url_table.reopen(transaction, document_table.send_again(transaction, [*displays, *group.denied]))
        reach("row.updated")
        if run.source.kind.is_listed:
            link_rows.reopen_parts(transaction, items)
        found = link_rows.update_depths(transaction, items, group.found)
        self._admission.admit(transaction, [*found, *listed])
        recrawl_table.remove_submitted(transaction, run.source_id, group.submitted)
        self._sitemaps.write(transaction, parts, self._admission.find_row)
        sitemap_table.note_proofs(transaction, group.proofs)
        url_table.settle(transaction, group.settled)
        url_table.release(transaction, group.released)
        url_table.wait(transaction, group.waiting)
        segment_table.set_committed(transaction, run.source_id, self._segment, self._writer.position)
        return group.counts

    def _append(self, documents: Sequence[Document]) -> dict[int, Place]:
        """Appends the records of indexable pages and syncs them; returns their places by row id."""
        places = {}
        for document in documents:
            if document.code == 200:
                records = document.records or encode_page(document_rows.build_record(document))
                places[document.claim.url_id] = self._writer.append_records(*records)
        if places:
            self._writer.sync()
        return places

    def _seal(self) -> None:
        """Seals a batch of all cached documents and begins a new segment (E1)."""
        batch, self._segment = self._run.write(self._write_batch)
        reach("batch.sealed")
        self._writer.close()
        self._writer = self._cache.open_writer(self._segment, 0)
        self._unsent_bytes = 0
        if batch is not None:
            self._listeners.on_batch(batch)

    def _write_batch(self, transaction: Transaction) -> tuple[SealedBatch | None, int]:
        run, batch = self._run, None
        # What such a run brings is in no batch: it may be another document by the time it is sent.
        if run.delivers:
            batch = batch_table.seal_documents(transaction, run.source_id, run.id, clock.now_ms())
        return batch, segment_table.begin(transaction, run.source_id)


def _count_bytes(item: Item) -> int:
    return item.body_bytes if isinstance(item, Document) else 0


def _count_held(item: Item | None) -> int:
    return item.held_bytes if isinstance(item, Document) else 0


_ROWS_AT_ONCE: Final = 1_000


def _withhold(run: Run, traps: TrapWatch) -> None:
    """Refuses the URLs of pages of ended traps that have no text of their own with 961, and withholds their documents; may be repeated. Raises StoreError."""
    for rows in run.read_pages(document_queries.find_bare_undelivered, source_id=run.source_id, limit=_ROWS_AT_ONCE):
        ended = [build_refusal(row.url_id, cut) for row in rows if (cut := traps.find_cut(row.url)) is not None]
        if ended:
            run.write_counted(_write_ended, source_id=run.source_id, ended=ended)


def build_refusal(url_id: int, decision: Decision) -> Settled:
    """The end of a row that a rule refuses: it is not visited."""
    return Settled(url_id=url_id, code=refusal_code(decision), rule=decision.text, due_ms=None, fetched_ms=None)


def _write_ended(transaction: Transaction, *, source_id: int, ended: Sequence[Settled]) -> Mapping[str, int]:
    group = Group(settled=list(ended), with_evidence=[visit.url_id for visit in ended])
    document_rows.write_documents(transaction, source_id, group, {})
    url_table.settle(transaction, group.settled)
    return group.counts
