"""The reactor waits as long as it was asked to, also where the clock of the machine is set meanwhile (X-S7)."""

from __future__ import annotations

from twisted.internet.base import ReactorBase

from searchcrawl import clock
from searchcrawl.extensions.watch_extension import count_monotonically


class Reactor(ReactorBase):
    def installWaker(self) -> None:  # Twisted's name
        pass


def test_calls_when_the_clock_of_the_reactor_is_changed_then_those_that_wait_keep_their_pause() -> None:
    reactor = Reactor()
    reactor.callLater(100, print)
    count_monotonically(reactor)
    reactor.callLater(200, print)
    count_monotonically(reactor)

    pauses = sorted(call.getTime() - clock.monotonic() for call in reactor.getDelayedCalls())

    assert [round(pause) for pause in pauses] == [100, 200]
    assert 99 < (reactor.timeout() or 0) <= 100
