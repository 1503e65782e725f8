"""Has the reactor count its pauses with a clock that nobody can set (X-S7)."""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.reactor import is_reactor_installed

from searchcrawl import clock


class ReactorClockExtension:
    """Changes the clock of the reactor, for all of the process.

    Twisted counts by the time of day: where that is set back by an hour, nothing that waits runs for an hour, the stall
    watch is not put off, and the process ends.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReactorClockExtension:
        if is_reactor_installed():
            from twisted.internet import reactor  # to import it sooner would install another one

            count_monotonically(reactor)
        return cls()


def count_monotonically(reactor: Any) -> None:
    """Has a reactor take its time from ``clock.monotonic``; what waits already keeps its pause."""
    if reactor.seconds == clock.monotonic:
        return
    difference = clock.monotonic() - reactor.seconds()
    reactor.seconds = clock.monotonic
    for call in reactor.getDelayedCalls():
        call.time += difference
        call.seconds = clock.monotonic
