"""Ends a command that does not turn any more, as the stall watch ends a crawl (X-D12).

A command has no reactor. What can stop it for good is code that keeps the lock of the interpreter: then no Ctrl-C is
heard, and the lease of its source runs out.
"""

from __future__ import annotations

import faulthandler
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from searchcrawl.settings import SEARCHCRAWL_STALL_SECONDS

logger = logging.getLogger(__name__)

_BEAT_SECONDS: Final = 5.0


@contextmanager
def watch_stalls(log: Path, *, seconds: float | None = None) -> Iterator[None]:
    """Has the process end with exit code 1, and all stacks in ``log``, if no thread can run for ``seconds``.

    None: as long as a crawl may stand still. It has a thread of its own, since a heartbeat may wait for the store.
    """
    seconds = SEARCHCRAWL_STALL_SECONDS if seconds is None else seconds
    ended = threading.Event()
    try:
        # Without a buffer: it is written by its descriptor.
        file = log.open("ab", buffering=0)
    except OSError as error:
        logger.warning("no stall watch: %s: %s", log, error.strerror or error)
        yield
        return

    def put_off() -> None:
        while True:
            faulthandler.dump_traceback_later(seconds, file=file, exit=True)
            if ended.wait(min(_BEAT_SECONDS, seconds / 4)):
                return

    thread = threading.Thread(target=put_off, name="stall watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        faulthandler.cancel_dump_traceback_later()
        file.close()
