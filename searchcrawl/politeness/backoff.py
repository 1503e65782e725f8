"""Back-off: how long nothing is requested after a failure, and when a host is blocked for the run (L5, X-R10).

A URL that failed is tried again after ``retry_pause_seconds``. A host that fails gets the pauses of ``HostBackoff``. A
server may name the pause itself: ``parse_retry_after``. Which ends of visits count as failures of their host is decided
in ``HostRegistry.record_visit``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.codes import BUSY, OVERLOADED

#: The longest pause within a run; if a server asks for more, the next run is soon enough.
MAX_RETRY_PAUSE_SECONDS: Final = 60.0
TOO_MANY_REQUESTS: Final = 429
#: The number of failures in a row after which a host is blocked for the rest of the run.
FAILURES_TO_BLOCK: Final = 5
#: The number of answers in a row with a Retry-After longer than a run waits; then the host is blocked too.
LONG_PAUSES_TO_BLOCK: Final = 2
#: The number of shorter pauses in a row, each kept, after which it is blocked: it does not keep its word.
PAUSES_TO_BLOCK: Final = 5
_FIRST_PAUSE_SECONDS: Final = 0.125
#: The longest pause of a host some of whose pages are good: one broken part must not delay the others by hours.
_PAUSE_AMONG_GOOD_SECONDS: Final = 1.0
#: A longer Retry-After is treated as this.
MAX_RETRY_AFTER_SECONDS: Final = 7 * 86_400.0
#: Why a host is blocked; for all other codes its connections failed.
_WHY_BLOCKED: Final = dict.fromkeys(OVERLOADED, "as it is overloaded") | dict.fromkeys(
    BUSY, "as it asked, or is overloaded"
)


class HostBackoff(NamedTuple):
    """The growing pauses of a host that fails: each is twice as long as the one before, up to a limit."""

    first_seconds: float
    limit_seconds: float

    def pause_seconds(self, failures: int) -> float:
        """The pause after this number of failures in a row (from 1)."""
        return min(self.first_seconds * 2.0 ** min(failures - 1, 16), self.limit_seconds)


def choose_backoff(*, delay_seconds: float, other_pages_good: bool) -> HostBackoff:
    """The pauses of a host with this delay; ``other_pages_good`` if only some of its pages fail."""
    limit = max(_PAUSE_AMONG_GOOD_SECONDS, 2 * delay_seconds) if other_pages_good else MAX_RETRY_PAUSE_SECONDS
    return HostBackoff(max(_FIRST_PAUSE_SECONDS, delay_seconds), limit)


def explain_block(code: int) -> str:
    """Why a host is blocked with ``code``, as the end of a sentence."""
    return _WHY_BLOCKED.get(code, "after failed connections in a row")


def explain_given_up(host: str) -> str:
    """Why a visit is not tried again at a host that was given up."""
    return f"{host}: no retry: the host never answered in this run, and nothing else was left"


def retry_pause_seconds(attempt: int, retry_after_seconds: float | None = None) -> float:
    """The pause after the ``attempt``-th failed try (from 1) of a URL in a run: 1, 2, 4 … up to 60 seconds.

    A longer Retry-After is obeyed, up to 60 seconds too; beyond that ask ``may_retry``.
    """
    growing = 2.0 ** min(max(attempt - 1, 0), 6)
    return min(max(growing, retry_after_seconds or 0.0), MAX_RETRY_PAUSE_SECONDS)


def may_retry(attempt: int, *, retries: int, retry_after_seconds: float | None = None) -> bool:
    """Whether a URL is tried again in this run after its ``attempt``-th failed try (from 1).

    Not when the server asked for a longer pause than a run waits: the next run is soon enough.
    """
    return attempt <= retries and (retry_after_seconds or 0.0) <= MAX_RETRY_PAUSE_SECONDS


def parse_retry_after(value: bytes | None) -> float | None:
    """The seconds from now, 0 to a week, that a Retry-After header asks to wait; None for none, or an unusable one."""
    return None if value is None else clock.parse_pause(value.decode("latin-1"), most_seconds=MAX_RETRY_AFTER_SECONDS)
