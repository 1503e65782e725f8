"""Ends a process at a signal, although requests and threads are under way."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from searchcrawl.exit_codes import Exit

#: What ends a crawl as Ctrl-C does.
_LIKE_CTRL_C: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def leaving_at_signals() -> Iterator[None]:
    """Ends the process at the first SIGINT or SIGTERM (exit 3): for a visit that stores nothing, whatever it waits for.

    Not by an exception: one that is raised amid a callback would become the end of the visit.
    """
    before = {number: signal.signal(number, _leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(Exit.ENDED_EARLY)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Has SIGTERM and SIGHUP interrupt as Ctrl-C does, until the crawl has handlers of its own; those stay.

    What is ignored, as SIGHUP under ``nohup``, stays so.
    """
    ours = [number for number in _LIKE_CTRL_C if _is_default(number)]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, signal.SIG_DFL)


def _is_default(number: int) -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(number) is signal.SIG_DFL


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
