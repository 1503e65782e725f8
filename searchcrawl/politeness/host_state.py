"""What this process knows of one host: its delay, its requests, and how it has answered lately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from searchcrawl import clock
from searchcrawl.politeness.backoff import (
    FAILURES_TO_BLOCK,
    LONG_PAUSES_TO_BLOCK,
    MAX_RETRY_PAUSE_SECONDS,
    PAUSES_TO_BLOCK,
    TOO_MANY_REQUESTS,
    choose_backoff,
)
from searchcrawl.store.host_table import HostReport


@dataclass(slots=True)
class HostState:
    """One host. Times are monotonic seconds; not thread-safe: HostRegistry locks.

    A side request is one that visits no claimed row: robots.txt, a sitemap, a login, a probe.
    """

    name: str
    #: requests under way
    in_flight: int = 0
    #: no request is sent before this moment
    next_at: float = 0.0
    #: the same before the last request began, and after it
    turn: tuple[float, float] = (0.0, 0.0)
    #: the delay that its robots.txt asks for
    crawl_delay_seconds: float = 0.0
    #: whether a visit has ended here: then its robots.txt is known
    visited: bool = False
    #: whether claims wait; the window sets it
    has_claims: bool = False
    #: side requests that wait to be sent, and whether one of them was sent after the last claim
    side_waiting: int = 0
    side_was_last: bool = False
    #: requests for its robots.txt that keep it in use under the cap on hosts
    robots_requests: int = 0
    #: its number in the store, once this process owns it: then no other one asks it
    id: int = 0
    owned: bool = False
    #: whether it is to be taken, or waited for
    asked_for: bool = False
    #: since when it is owned, how many requests began since, and whether its turn here is over: another process wants it
    owned_since: float = 0.0
    requests: int = 0
    leaving: bool = False
    #: whether it was lost with the lease: what began before is not to be sent any more
    lost: bool = False
    #: what wakes those that wait for it
    waiters: list[Callable[[], None]] = field(default_factory=list)
    #: failures in a row, and the code of the last one; answers in a row that asked for a pause longer than a run waits
    failures: int = 0
    failure_code: int = 0
    long_pauses: int = 0
    #: shorter pauses in a row that it asked for, each after the one before was over, and when the last one is over
    pauses: int = 0
    paused_until: float = 0.0
    #: whether it has answered anything but failures
    has_answered: bool = False
    #: whether any answer began, be it to a page or to a side request: then there is a server
    is_there: bool = False
    #: the code for which this process blocks the host for the rest of its run; a block that other processes see is a
    #: pause in the host table, and may end earlier
    blocked_code: int | None = None
    #: until when it is blocked by a pause that another process was asked for
    blocked_until: float = 0.0
    #: whether it is blocked because it was never there, and nothing else was left (``give_up``)
    is_given_up: bool = False
    #: what the host table is to be told
    report: HostReport | None = None

    @property
    def is_used(self) -> bool:
        """Whether a request waits or is under way."""
        return bool(self.in_flight or self.has_claims or self.side_waiting or self.robots_requests)

    def is_idle(self, now: float) -> bool:
        """Whether nothing is under way or waits, so that a new state could take its place."""
        return not self.is_used and not self.asked_for and self.report is None and self.next_at <= now

    @property
    def counts_later(self) -> bool:
        """Whether it knows something that later requests have to respect."""
        return bool(self.crawl_delay_seconds or self.failures or self.long_pauses or self.pauses or self.blocked_code)

    def keep_pause(self, seconds: float, code: int) -> bool:
        """Waits for the end of a pause that another process was asked for; True if it is long and blocks the host for this run."""
        self.next_at = max(self.next_at, clock.monotonic() + min(seconds, MAX_RETRY_PAUSE_SECONDS))
        blocks = self.blocked_code is None and seconds > MAX_RETRY_PAUSE_SECONDS
        if blocks:
            self.blocked_code, self.blocked_until = code, clock.monotonic() + seconds
        return blocks

    def pause(self, seconds: float, *, code: int = 0) -> None:
        """Sends nothing for this long; other processes learn of it."""
        # A side request waits at most this long, and then learns whether the host is blocked.
        self.next_at = max(self.next_at, clock.monotonic() + min(seconds, MAX_RETRY_PAUSE_SECONDS))
        report = self._open_report()
        until_ms = clock.now_ms() + round(seconds * 1000)
        if until_ms > report.until_ms:
            report.until_ms, report.code = until_ms, code

    def record_answer(self) -> None:
        """The host answered, and that was no failure: the growing pause ends."""
        if self.failures:
            report = self._open_report()
            report.answered, report.failures = True, 0
        self.failures = self.long_pauses = self.pauses = 0
        self.has_answered = self.is_there = True

    def give_up(self, code: int) -> None:
        """Blocks the host for the rest of the run: it failed with ``code``, it was never there, and nothing else is left."""
        self.is_given_up, self.blocked_code = True, code

    def record_failure(self, code: int, *, connected: bool, delay_seconds: float) -> None:
        """Notes that a connection failed with ``code``, or that a ``connected`` host answered that it is overloaded.

        The pause doubles with each failure in a row. After five in a row the host is blocked for this run. But a host
        that answers 503 to some pages, and has answered others, is only requested more slowly.
        """
        self.failures += 1
        self.failure_code = code
        self.is_there = self.is_there or connected
        other_pages_good = connected and self.has_answered and code != TOO_MANY_REQUESTS
        backoff = choose_backoff(delay_seconds=delay_seconds, other_pages_good=other_pages_good)
        self.next_at = max(self.next_at, clock.monotonic() + backoff.pause_seconds(self.failures))
        report = self._open_report()
        report.failures, report.pause_seconds, report.code = report.failures + 1, backoff.pause_seconds, code
        if self.blocked_code is None and self.failures >= FAILURES_TO_BLOCK and not other_pages_good:
            self.blocked_code = code

    def record_retry_after(self, code: int, seconds: float) -> None:
        """The host answered 429 or 503 with a Retry-After of so many seconds.

        All requests to it wait, up to a minute. A longer pause blocks the host for this run: after 429 at once, as that
        is about us; after 503 the second time in a row, as it may be about one page that is always under repair. So do
        shorter ones without an answer in between: a run must not wait a minute for each try of each page.
        """
        self.is_there = True
        if seconds <= MAX_RETRY_PAUSE_SECONDS:
            self._count_pause(seconds)
            self.pause(seconds, code=code)
            if self.blocked_code is None and self.pauses >= PAUSES_TO_BLOCK:
                self.blocked_code = code
            return
        self.long_pauses += 1
        if self.blocked_code is None and (code == TOO_MANY_REQUESTS or self.long_pauses >= LONG_PAUSES_TO_BLOCK):
            self.blocked_code = code
            self.pause(seconds, code=code)

    def _count_pause(self, seconds: float) -> None:
        now = clock.monotonic()
        # Requests that were under way together ask for one pause.
        self.pauses += now >= self.paused_until
        self.paused_until = max(self.paused_until, now + seconds)

    def _open_report(self) -> HostReport:
        if self.report is None:
            self.report = HostReport()
        return self.report
