"""The frontier of one run: which claim goes next, what a visit says about its host, and when the run is over.

There is no Scrapy here: the scheduler is its other half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import BUSY, OVERLOADED, UNREACHABLE
from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.frontier.claiming import Claiming
from searchcrawl.frontier.window import Window
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.run import Run
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import url_table

#: Why a host is blocked; for all other codes its connections failed.
_WHY: Final = dict.fromkeys(BUSY, "as it asked, or is overloaded") | dict.fromkeys(
    OVERLOADED - BUSY, "as it is overloaded"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """What the frontier calls: ``over`` and ``settle`` in the reactor or the claiming thread, the others in a thread."""

    #: claims may go
    filled: Callable[[], None]
    #: the crawl is to end, for this reason
    over: Callable[[str], None]
    #: the store failed
    failed: Callable[[Exception], None]
    #: settles the row of a blocked host, without a request
    settle: Callable[[Outcome], None]
    #: whether fetching may go on (the cache has room)
    may_claim: Callable[[], bool]


class Frontier:
    """Hands out claims and takes back the ends of their visits.

    The reactor calls it; any thread may call ``hold`` and ``committed``, and ``close`` is for a thread, as it may block.

    ``limit`` ends the run after so many fetched documents (0: none).
    """

    def __init__(self, run: Run, window: Window, listeners: Listeners, *, limit: int = 0) -> None:
        self._run = run
        self.window = window
        self._listeners = listeners
        self._limit = limit
        self._documents = 0
        self._closed = False
        #: whether everything is done
        self.exhausted = False
        self._claiming = Claiming(
            run,
            self.window,
            filled=self._claims_came,
            exhausted=self._nothing_left,
            failed=listeners.failed,
            may_claim=listeners.may_claim,
        )

    def start(self) -> None:
        """Starts the claiming thread."""
        self._claiming.start()

    def next_claim(self) -> tuple[str, Claim] | None:
        """The next claim that may go now, with its host."""
        if self._closed or (self._limit and self._documents + self.window.in_flight >= self._limit):
            return None
        now = clock.monotonic()
        if self._run.database.outage_retry.away or now > self._run.lease_until:
            # What is fetched now cannot be stored, and another process may have taken the source.
            return None
        found = self.window.pop(now)
        if self.window.runs_low:
            self._claiming.runs_low()
        return found

    def redirected(self, claim: Claim, host: str) -> None:
        """A claim goes on at another host (or the same): it waits there before all others."""
        self.window.release(claim.url_id)
        self.window.fill_first(host, claim)

    def ended(self, item: Document | Outcome) -> None:
        """A visit ended; to be called before its item is handed to the writer."""
        host = self.window.host_of(item.claim.url_id)
        self.window.release(item.claim.url_id)
        if isinstance(item, Document):
            self._documents += 1
            if self._limit and self._documents >= self._limit:
                self._close(EndReason.LIMIT)
        if host is not None:
            self._record(host, item)

    def _record(self, host: str, item: Document | Outcome) -> None:
        """Tells the registry what a visit says about its host."""
        hosts = self.window.hosts
        if isinstance(item, Outcome) and item.code in UNREACHABLE:
            hosts.record_failure(host, item.code)
        elif isinstance(item, Outcome) and item.code in BUSY and item.retry_after_seconds:
            hosts.record_retry_after(host, item.code, item.retry_after_seconds)
        elif isinstance(item, Outcome) and item.code in OVERLOADED:
            hosts.record_failure(host, item.code, connected=True)
        else:
            hosts.record_answer(host)
            return
        if hosts.blocked_code(host) is not None:
            self._settle_blocked()

    def hold(self) -> Callable[[], None]:
        """Keeps the run from being over until the returned function is called; any thread may call both."""
        return self._claiming.hold()

    def committed(self, visits: int) -> None:
        """So many visits have been settled in the store; any thread may call it."""
        self._claiming.committed(visits)

    def hand_out_no_more(self) -> None:
        """From now on there is no next claim."""
        self._closed = True

    def close(self) -> None:
        """Ends the claiming thread and puts the waiting claims back into the table. Blocks while the store is away.

        Where that fails the next run takes the rows back.
        """
        self._closed = True
        self._claiming.stop()
        waiting = [claim.url_id for claim in self.window.drain()]
        if waiting and self._run.failure is None:
            try:
                self._run.write(lambda transaction: url_table.release(transaction, waiting))
            except (StoreError, LeaseLost) as error:
                self._listeners.failed(error)

    def _claims_came(self) -> None:
        """In the claiming thread: there are new claims, perhaps of a host that is blocked."""
        self._settle_blocked()
        self._listeners.filled()

    def _settle_blocked(self) -> None:
        for host, code, claim in self.window.take_blocked():
            why = _WHY.get(code, "after failed connections in a row")
            self._listeners.settle(Outcome(claim=claim, code=code, error=f"{host}: blocked for this run {why}"))

    def _nothing_left(self) -> None:
        self.exhausted = True
        self._close(EndReason.FINISHED)

    def _close(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._listeners.over(reason)
