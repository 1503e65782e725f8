"""One run over one source: its data, its lease, its counters and its transactions."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from searchcrawl import clock
from searchcrawl.clock import now_ms
from searchcrawl.codes import Code
from searchcrawl.counters import DISCOVERED, select_kept, sum_up
from searchcrawl.exceptions import ConfigurationError, Exit, LogError
from searchcrawl.failpoints import reach
from searchcrawl.items import Files
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.index_filter import IndexFilter
from searchcrawl.rules.recrawl import UNTIL_LISTED_MS
from searchcrawl.rules.rewriting import DisplayMap, NormalisedUrl, Rewriting
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import dump_registered
from searchcrawl.sources.fingerprint import compute_fingerprint, find_effect, find_forcing_keys, mix_fingerprints
from searchcrawl.sources.loading import (
    build_attribute_map,
    build_boundary,
    build_display_map,
    build_index_filter,
    build_rewriting,
    read_start_urls,
)
from searchcrawl.sources.project import Project
from searchcrawl.store import source_table
from searchcrawl.store.engine import written_tables
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import job_table, run_table
from searchcrawl.store.runs import lease as leases
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import EndReason, RunKind
from searchcrawl.store.urls import link_table, review_table, url_classes, url_queue
from searchcrawl.store.urls.url_classes import Tally, UrlClass
from searchcrawl.store.urls.url_queue import Recovered
from searchcrawl.traces import ParseMark, StackFile

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
logger = logging.getLogger(__name__)

_MOST_SUSPECTS_SHOWN: Final = 10
#: Tables that say nothing of documents, of links and of what became of URLs; and what the end of a run makes of these.
_ASIDE: Final = frozenset({
    "batches", "host_owners", "hosts", "leases", "runs", "segments", "sitemaps", "sources",
    "anchors", "host_blocks", "host_languages", "host_titles",
})  # fmt: skip
# malloc.h of glibc
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 2 << 20
#: Heaps for all threads: Python runs one of them at a time, and the library of the embedded index has one or two more.
_HEAPS: Final = 2


class Shutdown:
    """Ends a crawl before everything is visited; any thread may call ``stop`` and ``fail``.

    ``failure`` is the first error after which nothing could be written any more, or no document read.
    """

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._close: Callable[[str], None] | None = None

    def open(self, close: Callable[[str], None]) -> None:
        """Notes that the crawl has begun: ``close(reason)`` ends it, and may be called in any thread."""
        self._close = close

    def stop(self, reason: str) -> None:
        """Ends the crawl for ``reason``, a value of EndReason; does nothing before the crawl has begun."""
        if self._close is not None:
            self._close(reason)

    def fail(self, error: Exception) -> None:
        """Ends the crawl because nothing can be written any more, no document read, or what it needs is not there."""
        if self.failure is None:
            self.failure = error
        self.stop(EndReason.STOPPED if isinstance(error, ConfigurationError) else EndReason.STORE_FAILED)


@dataclass(slots=True)
class Run:
    """What all stages of one run share.

    ``forced`` names the changed keys if everything is processed again (D9), else it is empty. ``counts`` is written
    with each group of pages. ``delivery_failure`` is the error because of which documents wait for the next run.
    ``limit`` ends the run after this number of visits, ``pages`` after so many that brought a page.
    """

    project: Project
    source: Source
    database: Database
    boundary: Boundary
    source_id: int
    lease: Lease
    row: RunRow
    fingerprint: str
    forced: tuple[str, ...] = ()
    display: DisplayMap | None = field(init=False)
    index_filter: IndexFilter = field(init=False)
    attributes: AttributeMap | None = field(init=False)
    rewriting: Rewriting = field(init=False)
    #: the start URLs after rewriting, once they are admitted
    starts: tuple[NormalisedUrl, ...] = ()
    #: what a spider of a user adds to the start URLs
    user_starts: tuple[str, ...] = ()
    shutdown: Shutdown = field(default_factory=Shutdown)
    delivery_failure: Exception | None = None
    limit: int = 0
    #: False in a replay, which processes again what the cache holds
    requests: bool = True
    #: what ``tick`` or ``run`` started it for (store.runs.job_table); "": it was started by hand
    job: str = ""
    pages: int = 0
    files: Files = field(default_factory=Files)
    exit_code: int | None = None
    counts: Counter[str] = field(default_factory=Counter)
    #: how many transactions of the run have changed what the end of a run looks at (``delivery.closing``)
    changes: int = 0
    #: URLs of the run whose rows were deleted, by class
    forgotten: Counter[str] = field(default_factory=Counter)
    #: by the boot clock: before it no other process takes the lease
    lease_until_ms: int = field(default_factory=lambda: clock.boot_ms() + leases.EXPIRY_MS)
    #: called in each transaction that renews the lease
    with_beat: list[Callable[[Transaction], None]] = field(default_factory=list)
    #: rows above the first id up to the second are not to be claimed yet: edited rules were not applied to them
    unreviewed: tuple[int, int] | None = None
    #: how many pages of known rows were looked at after an edit, and whether that is over (commit.review)
    pages_reviewed: int = 0
    is_reviewed: bool = True
    _unwritten: Counter[str] = field(default_factory=Counter)
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _saving: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.display = build_display_map(self.source)
        self.index_filter = build_index_filter(self.source)
        self.attributes = build_attribute_map(self.source)
        self.rewriting = build_rewriting(self.project, self.source)

    @property
    def is_index_away(self) -> bool:
        """Whether what is to be sent waits for another run: the index cannot be reached, or is none."""
        return self.delivery_failure is not None

    @property
    def id(self) -> int:
        """The number of the run."""
        return self.row.id

    @property
    def kind(self) -> RunKind:
        """Initial or maintenance."""
        return self.row.kind

    @property
    def delivers(self) -> bool:
        """Whether the index gets what the run brings; else it waits (D11, H6)."""
        return self.source.no_delivery_key is None

    @property
    def rules_edited(self) -> bool:
        """Whether edited rules may refuse known URLs, allow refused ones, or change their identity (B6)."""
        return any(key.startswith("scope.") or key == "rewrite" for key in self.forced)

    @property
    def keeps_links(self) -> bool:
        """Whether the links and the texts of the pages that it processes are the stored ones."""
        return not self.requests and not find_effect(self.forced).admission

    def count(self, **amounts: int) -> None:
        """Adds to counters; any thread may call it. They are written with the next ``write_counted``, or at the end."""
        with self._counting:
            self.counts.update(amounts)
            self._unwritten.update(amounts)

    def copy_counts(self) -> dict[str, int]:
        """All counters as they are now, as they are kept; any thread may call it."""
        with self._counting:
            return select_kept(self.counts)

    def read(self, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **names: P.kwargs) -> T:
        """Calls ``work`` with a reading transaction, and with the other arguments; returns its result. See ``Database.read``."""
        return self.database.read(work, *args, **names)

    def read_pages(
        self, find: Callable[..., Sequence[R]], /, *, key: Callable[[R], object] = attrgetter("url_id"), **names: Any
    ) -> Iterator[Sequence[R]]:
        """The rows that ``find`` reads, in pages. See ``Database.read_pages``."""
        return self.database.read_pages(find, key=key, **names)

    def write(self, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **names: P.kwargs) -> T:
        """Calls ``work`` in the same way in a transaction under the lease; see ``Database.write``. Raises LeaseLost.

        Where the heartbeat had to wait, for this transaction or for the store, it renews the lease as well: who waits for
        the end of it finds a living holder. The URLs whose class the work changes are counted (``store.urls.url_classes``).
        """
        return self._write(lambda transaction: (work(transaction, *args, **names), {}))

    def write_counted(
        self, work: Callable[Concatenate[Transaction, P], Mapping[str, int]], /, *args: P.args, **names: P.kwargs
    ) -> None:
        """Calls ``work`` like ``write``, and adds the counts that it returns; a crash loses none of them."""
        # One thread at a time: what was counted without a transaction is written once.
        with self._saving:
            with self._counting:
                unwritten = Counter(self._unwritten)
            self._write(lambda transaction: (None, work(transaction, *args, **names)), unwritten=unwritten)
            with self._counting:
                self._unwritten.subtract(unwritten)

    def _write(
        self, work: Callable[[Transaction], tuple[T, Mapping[str, int]]], *, unwritten: Mapping[str, int] | None = None
    ) -> T:
        """See ``write``; ``work`` returns what it adds to the counters, too."""

        def under_lease(transaction: Transaction) -> tuple[T, Counter[str], Counter[str], int, set[str]]:
            leases.check(transaction, self.lease)
            tally = self._open_tally(transaction)
            written = written_tables.note_tables(transaction)
            result, counted = work(transaction)
            added = sum_up(counted, tally.changes)
            if any(added.values()) or unwritten is not None:
                run_table.add_counts(transaction, self.id, sum_up(added, unwritten or {}))
            return result, added, tally.forgotten, self._beat(transaction, if_late=True), written

        result, added, forgotten, until_ms, written = self.database.write(under_lease)
        with self._counting:
            self.changes += not written <= _ASIDE
            self.counts.update(added)
            self.forgotten.update(forgotten)
        # The heartbeat may have renewed it since.
        self.lease_until_ms = max(self.lease_until_ms, until_ms)
        return result

    def _open_tally(self, transaction: Transaction) -> Tally:
        """What ``transaction`` changes for the run; what a command does after its end is none of its URLs any more."""
        if self.row.ended_ms is None:
            return url_classes.open_tally(transaction, self.id, self.row.horizon_ms)
        return Tally(self.id, self.row.horizon_ms)

    def renew_lease(self) -> None:
        """Renews the lease; raises LeaseLost."""
        reach("lease.renew")
        self.lease_until_ms = self.database.write(self._beat)

    def _beat(self, transaction: Transaction, *, if_late: bool = False) -> int:
        """Renews the lease, with ``if_late`` only where a beat was missed; returns until when it lasts."""
        until_ms = clock.boot_ms() + leases.EXPIRY_MS
        if if_late and until_ms - self.lease_until_ms < 2 * leases.BEAT_SECONDS * 1000:
            return self.lease_until_ms
        leases.renew(transaction, self.lease)
        for renew in self.with_beat:
            renew(transaction)
        return until_ms

    def end(self, reason: str, exit_code: int) -> None:
        """Writes how the run ended and gives the lease back; raises LeaseLost."""

        def end(transaction: Transaction) -> None:
            run_table.set_counts(transaction, self.id, self.copy_counts())
            run_table.end(transaction, self.id, now_ms=now_ms(), reason=reason, exit_code=exit_code)
            # One that got nothing from any start URL has not done what was asked for.
            if reason == EndReason.FINISHED and exit_code != Exit.NO_START:
                source_table.note(transaction, self.source_id, fingerprint=self.fingerprint)
                if self.requests:
                    # What somebody asked for was visits.
                    source_table.note(transaction, self.source_id, recrawl=None)
            if self.job:
                interrupted = reason == EndReason.STOPPED and not leases.is_told_to_stop(transaction, self.lease)
                at_end = partial(job_table.end, exit_code=exit_code, interrupted=interrupted, now_ms=now_ms())
                at_end(transaction, self.source_id, self.job, finished=reason == EndReason.FINISHED)
            leases.release(transaction, self.lease)

        self.write(end)

    def find_miscounts(self) -> dict[str, tuple[int, int]]:
        """The counters of URLs that differ from the table, each with both numbers; to be called when all else has ended.

        Rows that were deleted because they were over stay counted.
        """
        here = (self.source_id, self.id, self.row.horizon_ms)
        there = self.read(lambda transaction: url_classes.count(transaction, *here))
        with self._counting:
            kept = {name.value: self.forgotten[name] for name in UrlClass}
            there = {**sum_up(there, kept, {DISCOVERED: sum(kept.values())})}
            return {name: (self.counts[name], there[name]) for name in there if self.counts[name] != there[name]}


def list_start_urls(run: Run) -> list[str]:
    """The start URLs that may be requested, after rewriting; raises ConfigurationError for a file without them."""
    found = [run.rewriting.normalise(url) for url in read_start_urls(run.project, run.source)]
    return [start.url for start in found if not start.code and run.boundary.decide(start.url, 0).allowed]


def begin(
    project: Project,
    source: Source,
    database: Database,
    *,
    requests: bool = True,
    job: str = "",
) -> Run:
    """Takes the lease of the source, releases the claims of a dead process, and begins or resumes a run.

    Without ``requests`` it is a replay. Raises SourceBusy while another process runs the source, or its ``job`` is over,
    SourceSuspended, and ConfigurationError for its rules or for a plugin that cannot begin.
    """
    return_memory()
    boundary = build_boundary(source)
    current = compute_fingerprint(source)
    source_id, lease = database.write(_take, source, job, requests=requests)
    longest_ms = UNTIL_LISTED_MS if source.kind.is_listed else source.lifecycle.intervals.longest_ms
    _hasten(database, lease, current, longest_ms=longest_ms)
    left = StackFile(project.logs_dir, source.name), ParseMark(project.logs_dir, source.name)
    row, forced = _recover(database, lease, current, *left, requests=requests)
    run = Run(
        project=project,
        source=source,
        database=database,
        boundary=boundary,
        source_id=source_id,
        lease=lease,
        row=row,
        fingerprint=current,
        forced=forced,
        requests=requests,
        job=job,
    )
    run.counts.update(row.counts)
    try:
        run.rewriting.open(source.name)
    except ConfigurationError:
        database.write(leases.release, lease)
        raise
    return run


def _take(transaction: Transaction, source: Source, job: str, *, requests: bool) -> tuple[int, Lease]:
    """Takes the lease of a source, and notes what searches need of its file."""
    source_id = run_table.find_or_add_source(transaction, source.name)
    if requests:
        job_table.refuse_suspended(transaction, source_id, name=source.name)
    lease = leases.take(transaction, source_id, name=source.name)
    if job:
        job_table.claim(transaction, source_id, job, name=source.name, fence=lease.fence)
    run_table.register(transaction, source_id, dump_registered(source), shares_copies=source.shares_copies)
    return source_id, lease


def _hasten(database: Database, lease: Lease, current: str, *, longest_ms: int) -> None:
    """Makes pages due that wait too long, by a clock or by the source file; notes that an edit makes all due (D9, X-S7).

    It ends before the run has a row: after a crash it begins again.
    """
    reach("lease.taken")
    before, moment_ms = database.read(run_table.find_last, lease.source_id), now_ms()
    if before is None:
        return
    if before.fingerprint != current or database.read(_is_unanswered, before=before, lease=lease):
        database.write(review_table.begin_hastening, lease=lease, run_id=before.id, now_ms=moment_ms)
    after: int | None = 0
    ahead = partial(review_table.hasten_ahead, lease=lease, horizon_ms=before.horizon_ms, now_ms=moment_ms)
    while after is not None and before.is_later_than(moment_ms):
        after = database.write(ahead, after=after)
    review_table.hasten_late(database, lease, longest_ms=longest_ms, now_ms=moment_ms)


def _is_unanswered(transaction: Transaction, *, before: RunRow, lease: Lease) -> bool:
    """Whether all was to be visited, and the run ``before`` got nothing from any start URL."""
    source_id = lease.source_id
    edited = source_table.find(transaction, source_id, "fingerprint") != before.fingerprint
    return before.exit_code == Exit.NO_START and (
        edited or source_table.find(transaction, source_id, "recrawl") is not None
    )


def _recover(
    database: Database, lease: Lease, current: str, stacks: StackFile, mark: ParseMark, *, requests: bool
) -> tuple[RunRow, tuple[str, ...]]:
    """Begins or resumes the run, after a process that died, or stopped turning; see ``_begin_or_resume``."""
    try:
        stalled = stacks.is_written()
        by_visit = stalled and stacks.is_of_visit()
        recover = partial(url_queue.recover, stalled=stalled, by_visit=by_visit, parsed=mark.read())
        row, forced, recovered = database.write(_begin_or_resume, lease, current, recover=recover, requests=requests)
        _report_death(recovered, stalled=stalled)
        # Not before the rows are written: after a crash they are read once more.
        stacks.remove()
        mark.remove()
    except OSError as error:
        raise LogError(f"{error.filename or stacks.path}: {error.strerror or error}") from error
    return row, forced


def _report_death(recovered: Recovered, *, stalled: bool) -> None:
    for url in recovered.set_aside:
        logger.warning("%d: %s is set aside: it stopped the crawler again and again", Code.SET_ASIDE, url)
    if not stalled:
        for url in recovered.suspects:
            logger.warning("the run before ended while it parsed %s", url)
        return
    logger.warning(
        "the run before stopped turning (its stacks are in the log); URLs that it was visiting, which are visited last now, "
        "one by one: %d (%s)",
        len(recovered.suspects),
        ", ".join(recovered.suspects[:_MOST_SUSPECTS_SHOWN]) or "-",
    )


def _begin_or_resume(
    transaction: Transaction, lease: Lease, current: str, *, recover: Callable[..., Recovered], requests: bool
) -> tuple[RunRow, tuple[str, ...], Recovered]:
    """Begins or resumes the run; returns its row, the keys that have changed since the last run, and what it recovers."""
    source_id = lease.source_id
    leases.check(transaction, lease)
    stored_fingerprint = source_table.find(transaction, source_id, "fingerprint")
    before = run_table.find_last(transaction, source_id)
    if stored_fingerprint is None:
        source_table.note(transaction, source_id, fingerprint=current)
    elif before is not None and before.fingerprint and not before.is_complete:
        # Some documents were made with the values of that run: an edit that was undone since is an edit, too.
        stored_fingerprint = mix_fingerprints(stored_fingerprint, before.fingerprint)
        source_table.note(transaction, source_id, fingerprint=stored_fingerprint)
    forced = tuple(find_forcing_keys(stored_fingerprint or current, current))
    if forced:
        url_queue.try_again(transaction, source_id)
    if before is not None and before.fingerprint != current and (requests or find_effect(forced).admission):
        # All pages are read again, and their links counted again.
        link_table.clear_refused(transaction, source_id)
    row = run_table.start(transaction, source_id, fingerprint=current, now_ms=now_ms(), is_hastened=True)
    row = replace(row, after_run=run_table.find_last_completed(transaction, source_id))
    recovered = recover(transaction, source_id, run_id=row.id)
    is_new = before is None or before.id != row.id
    return run_table.begin_counts(transaction, source_id, row, recovered, is_new=is_new), forced, recovered


def return_memory() -> None:
    """Limits the number of heaps, and fixes from which size on a block has a mapping of its own; does nothing where malloc is not glibc's.

    By itself glibc gives nearly each thread a heap: each keeps what it had at most, and what one frees no other gets. For 1,000
    hosts that is 20 MB and a tenth of the processor time, in which heaps grow and shrink. And it raises that size to the
    largest block that was freed: bodies of pages then stay in the heap of each thread that had them, and a few of 30 MB
    double the memory of a crawl (X-R13).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _HEAPS)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
