"""Ends a process at a signal, although requests and threads are under way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import NoReturn

from searchcrawl.exceptions import Exit


def leaving_at_signals() -> AbstractContextManager[None]:
    """Ends the process at the first SIGINT or SIGTERM (exit 3): for a visit that stores nothing, whatever it waits for.

    Not by an exception: one that is raised amid a callback would become the end of the visit.
    """
    return handling({signal.SIGINT: _leave, signal.SIGTERM: _leave})


@contextmanager
def handling(handlers: Mapping[signal.Signals, Callable[[int, FrameType | None], object]]) -> Iterator[None]:
    """Has functions called at signals, and undoes that at the end."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_while_loading() -> None:
    """Has SIGTERM and SIGHUP end the process (exit 3) until its command takes them: nothing is under way yet.

    One that is ignored, as by ``nohup``, stays so.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(Exit.ENDED_EARLY)
