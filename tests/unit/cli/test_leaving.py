"""A crawl that is still loading ends at SIGTERM and SIGHUP as at Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from searchcrawl.cli.leaving import interrupted_by_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_interrupted_when_a_signal_comes_then_it_is_as_ctrl_c_and_later_as_before(number: int) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
            os.kill(os.getpid(), number)
        after = signal.getsignal(number)
    finally:
        signal.signal(number, before)

    assert after is signal.SIG_DFL


def test_interrupted_when_ignored_or_handled_meanwhile_then_that_stays() -> None:
    def handle(*_: object) -> None:
        """A handler of the crawl."""

    before = [(number, signal.getsignal(number)) for number in (signal.SIGHUP, signal.SIGTERM)]
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with interrupted_by_signals():
            ignored = signal.getsignal(signal.SIGHUP)
            signal.signal(signal.SIGTERM, handle)
        kept = signal.getsignal(signal.SIGTERM)
    finally:
        for number, handler in before:
            signal.signal(number, handler)

    assert (ignored, kept) == (signal.SIG_IGN, handle)


def test_interrupted_when_not_in_the_main_thread_then_nothing_is_changed() -> None:
    seen: list[object] = []

    def enter() -> None:
        with interrupted_by_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert seen == [before]
