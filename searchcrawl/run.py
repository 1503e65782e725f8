"""One run over one source: its id, kind, lease and counts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from searchcrawl import clock
from searchcrawl.clock import now_ms
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.failpoints import passing
from searchcrawl.items import Claim, Document, Outcome, SitemapPart
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.display import DisplayMap
from searchcrawl.rules.index_filter import IndexFilter
from searchcrawl.rules.rewriting import Named, Rewriting
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys, mix_fingerprints
from searchcrawl.sources.loading import (
    build_attribute_map,
    build_boundary,
    build_display_map,
    build_index_filter,
    build_rewriting,
)
from searchcrawl.sources.project import Project
from searchcrawl.store.batches.batch_table import SealedBatch
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease as leases
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import EndReason, RunKind
from searchcrawl.store.urls import url_table

T = TypeVar("T")

#: The counters of a run (J1), in the order in which they are shown, each with its meaning.
COUNTS: Final[Mapping[str, str]] = {
    "to_fetch": "URLs that the run still has to visit.",
    "fetched": "URLs whose visit brought an answer that was taken in, changed or not.",
    "fetch_failures": "URLs whose visit failed, those whose conversion failed included.",
    "rejected": "URLs that a rule refused without a request.",
    "discovered": "All URLs of the run: the sum of the four counters above, at any moment.",
    "not_modified": "Pages that the server called unchanged (304).",
    "unchanged": "Pages that were fetched again, and whose content is as before.",
    "new": "Documents that were not known before.",
    "changed": "Known documents in which an indexed field differs.",
    "deleted": "Documents that were removed from the index.",
    "indexed": "Documents that the index acknowledged.",
    "non_indexable": "Pages that were fetched and are not to be indexed.",
    "conversion_failures": "Pages that could not be converted.",
    "duplicates": "Pages that are copies of another one, which is indexed in their place.",
}


class Politeness(Protocol):
    """The clock of the host table, as the fetch stage asks it."""

    async def wait_until_allowed(self, host: str) -> None:
        """Waits until one more request to ``host:port`` is allowed, and books it."""

    async def acquire_request(self, host: str) -> None:
        """Waits for a turn and for a place among the requests to ``host:port``."""

    def release_request(self, host: str) -> None:
        """Gives that place back."""

    def set_crawl_delay(self, host: str, *, delay_seconds: float) -> None:
        """Keeps at least this delay to a host from now on (crawl-delay)."""

    async def acquire_host(self, host: str) -> None:
        """Waits until the robots.txt of ``host:port`` may be asked for under the cap on sites."""

    def release_host(self, host: str) -> None:
        """That robots.txt was had."""

    def pause(self, host: str, *, seconds: float) -> None:
        """Asks nothing of ``host:port`` for so long (Retry-After)."""

    def start_delay(self, host: str) -> None:
        """A request to the host is over: its delay begins now."""


class RobotsRules(Protocol):
    """The robots.txt in force at an origin."""

    @property
    def sitemaps(self) -> Sequence[str]:
        """What its Sitemap lines name, absolute."""

    def decide(self, url: str) -> Decision:
        """Whether a URL of the origin may be requested."""


class Traps(Protocol):
    """The patterns of URLs that are cut or full (admission.trap_watch); any thread may ask."""

    def refusal(self, claim: Claim) -> Decision | None:
        """Why a claimed row is not to be requested."""

    def sifted(
        self, transaction: Transaction, claims: Sequence[Claim]
    ) -> tuple[list[Claim], list[tuple[Claim, Decision]]]:
        """Those of ``claims`` that may be requested, and those that may not."""


@dataclass(slots=True)
class Wires:
    """Who tells whom: stages that must not know each other hear of each other here.

    ``ended`` (a visit is over) is called by the reactor, ``committed`` (so many visits are in the
    store), ``listed`` (a part of a sitemap is) and ``sealed`` (a batch may be sent) by the writer
    thread, ``finished`` (with the reason, after the last delivery) at the end. The others are set
    by the stage that can do it: ``settle`` takes an outcome that needed no request, ``list_urls`` a
    part of a sitemap, ``in_flight`` counts requests, ``may_claim`` says whether the cache has room,
    ``may_revisit`` whether rows that are due again may be claimed, ``stop`` ends the crawl for a
    reason, ``hold`` keeps it from being over until what it answers is called; any thread may call
    them. ``traps`` is None for as long as no pattern of URLs is cut or limited. ``robots_of`` (an
    origin) is for the reactor, as is ``robots_read``: an origin, and what
    its Sitemap lines name.
    """

    ended: list[Callable[[Document | Outcome], None]] = field(default_factory=list)
    committed: list[Callable[[int], None]] = field(default_factory=list)
    listed: list[Callable[[SitemapPart], None]] = field(default_factory=list)
    sealed: list[Callable[[SealedBatch], None]] = field(default_factory=list)
    finished: list[Callable[[str], None]] = field(default_factory=list)
    robots_read: list[Callable[[str, Sequence[str]], None]] = field(default_factory=list)
    settle: Callable[[Outcome], None] | None = None
    list_urls: Callable[[SitemapPart], None] | None = None
    in_flight: Callable[[], int] | None = None
    may_claim: Callable[[], bool] | None = None
    may_revisit: Callable[[], bool] | None = None
    hold: Callable[[], Callable[[], None]] | None = None
    robots_of: Callable[[str], Awaitable[RobotsRules]] | None = None
    stop: Callable[[str], None] | None = None
    traps: Traps | None = None


@dataclass(slots=True)
class Run:
    """What all stages of one run share.

    ``forced`` names the changed keys where everything is processed again (D9), else it is empty.
    ``counts`` is written with each group of pages; ``failure`` is the error that ended the run,
    ``delivery_failure`` the one for which documents wait. ``limit`` ends it after so many documents.
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
    #: None where nothing is filtered
    index_filter: IndexFilter | None = field(init=False)
    attributes: AttributeMap | None = field(init=False)
    rewriting: Rewriting = field(init=False)
    #: what became of the start URLs, once they were admitted
    starts: tuple[Named, ...] = ()
    wires: Wires = field(default_factory=Wires)
    politeness: Politeness | None = None
    failure: Exception | None = None
    delivery_failure: Exception | None = None
    limit: int = 0
    exit_code: int | None = None
    counts: Counter[str] = field(default_factory=Counter)
    #: until when the lease holds for sure, in monotonic seconds
    lease_until: float = float("inf")
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _saving: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.display = build_display_map(self.source)
        self.index_filter = build_index_filter(self.source) or None
        self.attributes = build_attribute_map(self.source)
        self.rewriting = build_rewriting(self.project, self.source)

    @property
    def id(self) -> int:
        """The number of the run."""
        return self.row.id

    @property
    def kind(self) -> RunKind:
        """Initial or maintenance."""
        return self.row.kind

    @property
    def rules_edited(self) -> bool:
        """Whether known URLs may be outside now, refused ones inside, or have another identity (B6)."""
        return any(key.startswith("scope.") or key == "rewrite" for key in self.forced)

    def count(self, **amounts: int) -> None:
        """Adds to counters; any thread may call it."""
        with self._counting:
            self.counts.update(amounts)

    def counted(self) -> dict[str, int]:
        """All counters, now."""
        with self._counting:
            return {name: self.counts[name] for name in COUNTS}

    def fail(self, error: Exception) -> None:
        """Ends the crawl because nothing can be written any more; any thread may call it."""
        if self.failure is None:
            self.failure = error
        if self.wires.stop is not None:
            self.wires.stop(EndReason.STORE_FAILED)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Calls ``work`` in a reading transaction and returns its result; see ``Database.read``."""
        return self.database.read(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Calls ``work`` in a transaction under the lease; see ``Database.write``. Raises LeaseLost."""

        def under_lease(transaction: Transaction) -> T:
            leases.check(transaction, self.lease)
            return work(transaction)

        return self.database.write(under_lease)

    def write_counted(self, work: Callable[[Transaction], Mapping[str, int]]) -> None:
        """The same for what adds to counters: ``work`` answers how much. A crash loses none of them."""

        def counted(transaction: Transaction) -> Mapping[str, int]:
            added = work(transaction)
            with self._counting:
                sums = {name: self.counts[name] + added.get(name, 0) for name in COUNTS}
            run_table.set_counts(transaction, self.id, sums)
            return added

        # What is committed is counted before others save their sums.
        with self._saving:
            self.count(**self.write(counted))

    def beat(self) -> None:
        """Renews the lease; raises LeaseLost."""
        passing("lease.renew")

        def renew(transaction: Transaction) -> float:
            until = clock.monotonic() + leases.EXPIRY_MS / 1000
            leases.renew(transaction, self.lease, now_ms())
            return until

        self.lease_until = self.database.write(renew)

    def end(self, reason: str, exit_code: int) -> None:
        """Writes how the run ended and gives the lease back; raises LeaseLost."""

        def end(transaction: Transaction) -> None:
            horizon = self.row.horizon_ms
            self.counts["to_fetch"] = url_table.count_todo(transaction, self.source_id, horizon)
            self.counts["discovered"] = sum(
                self.counts[name] for name in ("to_fetch", "fetched", "fetch_failures", "rejected")
            )
            run_table.set_counts(transaction, self.id, self.counted())
            run_table.end(transaction, self.id, now_ms=now_ms(), reason=reason, exit_code=exit_code)
            if reason == "finished":
                run_table.set_fingerprint(transaction, self.source_id, self.fingerprint)
            leases.release(transaction, self.lease)

        self.write(end)


def begin(project: Project, source: Source, database: Database, versions: Mapping[str, int]) -> Run:
    """Takes the source's lease, gives back what a dead process held, and begins or resumes a run.

    Raises SourceBusy while another process runs the source, ConfigurationError for its rules and for a
    plug-in that cannot begin.
    """
    boundary = build_boundary(source)
    print_now = compute_fingerprint(source, versions=versions)

    def take(transaction: Transaction) -> tuple[int, Lease]:
        source_id = run_table.source_id(transaction, source.name)
        return source_id, leases.take(transaction, source_id, name=source.name, now_ms=now_ms())

    source_id, lease = database.write(take)
    passing("lease.taken")
    row, forced = database.write(lambda transaction: _start(transaction, lease, print_now))
    run = Run(
        project=project,
        source=source,
        database=database,
        boundary=boundary,
        source_id=source_id,
        lease=lease,
        row=row,
        fingerprint=print_now,
        forced=forced,
    )
    run.counts.update(row.counts)
    try:
        run.rewriting.open(source.name)
    except ConfigurationError:
        database.write(lambda transaction: leases.release(transaction, lease))
        raise
    return run


def _start(transaction: Transaction, lease: Lease, print_now: str) -> tuple[RunRow, tuple[str, ...]]:
    """The run that begins or goes on, and the keys that have changed since the last one."""
    source_id = lease.source_id
    leases.check(transaction, lease)
    url_table.recover(transaction, source_id)
    made_with = run_table.made_with(transaction, source_id)
    before = run_table.last(transaction, source_id)
    if made_with is None:
        run_table.set_fingerprint(transaction, source_id, print_now)
    elif before is not None and before.fingerprint and before.end_reason != EndReason.FINISHED:
        # An edit taken back is an edit of what that run has made already.
        made_with = mix_fingerprints(made_with, before.fingerprint)
        run_table.set_fingerprint(transaction, source_id, made_with)
    forced = tuple(find_changed_keys(made_with or print_now, print_now))
    row = run_table.start(transaction, source_id, fingerprint=print_now, now_ms=now_ms())
    return row, forced
