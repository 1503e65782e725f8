"""The frontier of one run: which claim is next, and when the run is over.

It knows nothing of Scrapy; the scheduler connects the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.codes import BUSY, is_refusal
from searchcrawl.commit.group_commit import WriterQueue
from searchcrawl.counters import HELD_BACK
from searchcrawl.exceptions import LeaseLost, SearchcrawlError, StoreError
from searchcrawl.frontier.claiming import ClaimingThread, Told
from searchcrawl.frontier.last_retries import end_given_up
from searchcrawl.frontier.window import Window
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.politeness.backoff import explain_block
from searchcrawl.politeness.host_leases import HostLeases
from searchcrawl.run import Run
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import LONGEST_WAIT_MS

#: What is at least between two visits that begin anew for one host, and of so many hosts it is known when they do.
_LEAST_PAUSE_SECONDS: Final = 0.25
_MOST_PROMISED: Final = 10_000


class Frontier:
    """Hands out claims and takes back the ends of their visits.

    The reactor calls it; any thread may call ``wake``, ``settle`` and ``in_flight``; ``close`` is for a thread, as it may block.

    ``leases`` takes the hosts for this process; None where none is asked. ``writer`` takes the outcomes of rows whose host is blocked. ``build_claims`` makes what claims the rows. Once no row
    is left, ``find_end_reason`` says in the claiming thread why the run ends.
    """

    def __init__(
        self,
        run: Run,
        window: Window,
        writer: WriterQueue,
        *,
        build_claims: Callable[[Run, Window, Told], ClaimingThread],
        leases: HostLeases | None = None,
        find_end_reason: Callable[[Run], EndReason] = lambda run: EndReason.FINISHED,
    ) -> None:
        self._run = run
        self.window = window
        self._writer = writer
        self._leases = leases
        self._visits = self._pages = 0
        self._closed = False
        self._redirected: dict[int, Any] = {}
        #: by host, when the last visit begins anew that found no room there
        self._promised: dict[str, int] = {}
        self._wake: Callable[[], None] | None = None
        #: called, in any thread, with what a redirected claim would have continued with, once it is settled
        self.drop_redirected: Callable[[Claim, Any], None] = lambda claim, request: None
        #: whether nothing is left to claim
        self.exhausted = False
        #: called, in any thread, with hosts that get no request any more, each with a code (``last_retries``)
        self.on_given_up: list[Callable[[Mapping[str, int]], None]] = []
        self._find_end_reason = find_end_reason
        self.claiming = build_claims(run, window, Told(self._handle_filled, self._finish, self._handle_given_up))

    def in_flight(self) -> int:
        """How many claims were handed out and have not ended."""
        return self.window.in_flight

    def start(self, wake: Callable[[], None]) -> None:
        """Starts the claiming thread; ``wake`` is called, in any thread, when there may be a next claim."""
        self._wake = wake
        if self._leases is not None:
            self._leases.start(self._handle_filled, self._run.shutdown.fail)
        self.claiming.start()

    def wake(self) -> None:
        """Wakes the engine, because there may be a next claim."""
        if self._wake is not None:
            self._wake()

    def next_claim(self) -> tuple[str, Claim] | None:
        """The next claim that may be requested now, with its host."""
        if self._closed or self._reaches_limit(self.window.in_flight):
            return None
        now = clock.monotonic()
        if self._run.database.outage_retry.away or clock.boot_ms() > self._run.lease_until_ms:
            # Pages that are fetched now could not be stored, and another process may have taken the source.
            return None
        found = self.window.pop(now)
        if self.window.has_low or self.window.runs_low:
            self.claiming.runs_low()
        return found

    def _reaches_limit(self, in_flight: int) -> bool:
        """Whether the run has had the visits or pages that it may have, together with those in flight."""
        had = ((self._run.limit, self._visits), (self._run.pages, self._pages))
        return any(most and number + in_flight >= most for most, number in had)

    def redirect(self, claim: Claim, host: str, request: Any) -> None:
        """Lets a claim continue at ``host`` with ``request``; it waits there. Where too many do it begins anew, later."""
        self.window.release(claim.url_id)
        self._redirected[claim.url_id] = request
        if self.window.has_room_for_redirected:
            self.window.fill_redirected(host, claim)
        else:
            self.settle(Outcome(claim=claim, code=claim.code, again_ms=self._promise(host)))

    def _promise(self, host: str) -> int:
        """A moment, in ms since 1970, when the host may have room for one more that is redirected: each gets its own."""
        pause = max(self.window.hosts.delay_seconds(host), _LEAST_PAUSE_SECONDS)
        if len(self._promised) > _MOST_PROMISED:
            self._promised.clear()
        now = clock.now_ms()
        after = self._promised.get(host, now + int(self.window.count_redirected(host) * pause * 1000))
        # Those at the end begin anew once more: a row that waits for longer is taken for a clock that was ahead.
        self._promised[host] = moment = min(max(after, now) + int(pause * 1000), now + LONGEST_WAIT_MS)
        return moment

    def put_back(self, claim: Claim, host: str) -> None:
        """Lets a claim that was handed out wait once more, before all others of ``host``."""
        self.window.release(claim.url_id)
        self.window.fill_first(host, claim)

    def take_redirected(self, claim: Claim) -> Any | None:
        """The request with which a redirected claim continues; None for other claims."""
        return self._redirected.pop(claim.url_id, None)

    def end_visit(self, item: Document | Outcome) -> None:
        """Notes the end of a visit; called before its item is handed to the writer."""
        host = self.window.host_of(item.claim.url_id)
        self.window.release(item.claim.url_id)
        self._visits += _was_requested(item)
        self._pages += isinstance(item, Document)
        if self._reaches_limit(0):
            self._close(EndReason.LIMIT)
        asked = isinstance(item, Document) or not item.unasked
        if host is not None and asked and self.window.hosts.record_visit(host, item):
            self._settle_blocked(host)

    def settle(self, outcome: Outcome) -> None:
        """Hands the outcome of a row to the writer."""
        request = self._redirected.pop(outcome.claim.url_id, None)
        if request is not None:
            self.drop_redirected(outcome.claim, request)
        if not self._writer.submit(outcome):
            # The writer has ended: rows that cannot be stored go back into the table.
            self.window.fill_first(urls.host_and_port(outcome.claim.url), outcome.claim)

    def stop_handing_out(self) -> None:
        """Hands out no more claims."""
        self._closed = True

    def close(self) -> None:
        """Ends the claiming thread and puts the waiting claims back into the table.

        Blocks while the store is away. If it fails, the next run releases the rows.
        """
        self._closed = True
        self.claiming.stop()
        waiting = [claim.url_id for claim in self.window.drain()]
        try:
            if waiting and self._run.shutdown.failure is None:
                self._run.write(url_table.release, waiting)
            if self._leases is not None:
                # The store was waited for already, where that failed: others take the hosts once the lease has ended.
                self._leases.stop(tells=not isinstance(self._run.shutdown.failure, StoreError))
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)

    def _handle_filled(self) -> None:
        """Settles the new claims of blocked hosts and wakes the engine; called in the claiming thread."""
        self._settle_blocked()
        self.wake()

    def _handle_given_up(self, codes: Mapping[str, int]) -> None:
        for call in self.on_given_up:
            call(codes)
        for host in codes:
            self._settle_blocked(host)

    def _settle_blocked(self, name: str | None = None) -> None:
        for host, code, claim in self.window.take_blocked(name):
            if self.window.hosts.is_given_up(host):
                self.settle(end_given_up(host, code, claim))
                continue
            if code in BUSY:
                self._run.count(**{HELD_BACK: 1})
            error = f"{host}: blocked for this run {explain_block(code)}"
            self.settle(Outcome(claim=claim, code=code, error=error, unasked=claim.attempt == 0))

    def _finish(self) -> None:
        try:
            reason = self._find_end_reason(self._run)
        except SearchcrawlError as error:
            self._run.shutdown.fail(error)
            return
        # Once it is, Scrapy may end the crawl by itself, and says that it has finished.
        self.exhausted = reason is EndReason.FINISHED
        self._close(reason)

    def _close(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._run.shutdown.stop(reason)


def _was_requested(item: Document | Outcome) -> bool:
    """Whether a visit asked the host, whatever came of it."""
    if isinstance(item, Document):
        return True
    return not item.released and not item.unasked and (bool(item.redirects) or not is_refusal(item.code, item.rule))
