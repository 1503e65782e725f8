"""What this process knows of one host: its claims, its delay, and how it answered lately."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from searchcrawl import clock
from searchcrawl.items import Claim
from searchcrawl.politeness.backoff import MAX_RETRY_PAUSE_SECONDS
from searchcrawl.rules.freshness import host_pause_seconds

#: After so many failures in a row a host is left alone for the rest of the run.
FAILURES_TO_PARK: Final = 5
#: So many answers in a row that ask for a pause longer than a run waits, and the host gets it.
LONG_PAUSES_TO_PARK: Final = 2
TOO_MANY_REQUESTS: Final = 429
_FIRST_PAUSE_SECONDS: Final = 0.125
#: The longest pause of a host some of whose pages are good: one broken corner must not cost the others hours.
_MILD_PAUSE_SECONDS: Final = 1.0


@dataclass(slots=True)
class HostNews:
    """What was met at a host since the host table was last told; ``until`` in monotonic seconds, 0: no pause asked for."""

    failed: int = 0
    answered: bool = False
    first_seconds: float = 0.0
    limit_seconds: float = MAX_RETRY_PAUSE_SECONDS
    until: float = 0.0
    code: int = 0


@dataclass(slots=True)
class HostState:
    """One host. Times are monotonic seconds."""

    name: str
    waiting: deque[Claim] = field(default_factory=deque)
    in_flight: int = 0
    next_at: float = 0.0
    queued: bool = False
    #: what its robots.txt asks for
    crawl_delay_seconds: float = 0.0
    #: the turn booked in the host table for the next request; whether one is wished for, and the last went by unused
    booked: float | None = None
    wished: bool = False
    missed: bool = False
    failures: int = 0
    long_pauses: int = 0
    parked: int | None = None
    #: whether it has answered anything but failures
    good: bool = False
    #: whether a visit ended here: its robots.txt is known then
    met: bool = False
    #: requests outside the claims that wait for a place, and whether one of them had the last
    asking: int = 0
    asked_last: bool = False
    #: requests for its robots.txt that no claim of it waits for
    guests: int = 0
    news: HostNews | None = None

    def pause(self, until: float, *, code: int = 0) -> None:
        """Nothing is asked before a moment; the other processes are to know."""
        # Requests outside the claims wait no longer than that, and then learn that it is parked.
        self.next_at = max(self.next_at, min(until, clock.monotonic() + MAX_RETRY_PAUSE_SECONDS))
        news = self.told()
        if until > news.until:
            news.until, news.code = until, code

    def told(self) -> HostNews:
        """The news for the host table."""
        if self.news is None:
            self.news = HostNews()
        return self.news

    def answered(self) -> None:
        """It gave an answer that is none of the failures: the growing pause is given up."""
        if self.failures:
            news = self.told()
            news.answered, news.failed = True, 0
        self.failures = self.long_pauses = 0
        self.good = True

    def failed(self, code: int, *, connected: bool, delay_seconds: float) -> None:
        """A connection failed with ``code``, or the host was ``connected`` and answers that it is overloaded.

        The pause doubles with each in a row, from ``delay_seconds`` on. Five in a row, and it is left alone for this run; but a host
        that answers 503 to some pages, and has answered others, is only asked more slowly.
        """
        self.failures += 1
        mild = connected and self.good and code != TOO_MANY_REQUESTS
        first = max(_FIRST_PAUSE_SECONDS, delay_seconds)
        limit = max(_MILD_PAUSE_SECONDS, 2 * delay_seconds) if mild else MAX_RETRY_PAUSE_SECONDS
        pause = host_pause_seconds(self.failures, first_seconds=first, limit_seconds=limit)
        self.next_at = max(self.next_at, clock.monotonic() + pause)
        news = self.told()
        news.failed, news.first_seconds, news.limit_seconds, news.code = news.failed + 1, first, limit, code
        if self.parked is None and self.failures >= FAILURES_TO_PARK and not mild:
            self.parked = code

    def told_to_wait(self, code: int, seconds: float) -> None:
        """It answered 429 or 503 with a Retry-After."""
        now = clock.monotonic()
        if seconds <= MAX_RETRY_PAUSE_SECONDS:
            self.pause(now + seconds, code=code)
            return
        self.long_pauses += 1
        if self.parked is None and (code == TOO_MANY_REQUESTS or self.long_pauses >= LONG_PAUSES_TO_PARK):
            self.parked = code
            self.pause(now + seconds, code=code)
