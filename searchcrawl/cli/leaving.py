"""Ends a process at a signal, although requests and threads are under way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from searchcrawl.exit_codes import Exit


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
