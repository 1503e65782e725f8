"""Ends a command that does not turn any more, as the stall watch ends a crawl (X-D12).

A command has no reactor. What can stop it for good is code that keeps the lock of the interpreter: then no Ctrl-C is
heard, and the lease of its source, if it has one, runs out.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from searchcrawl.settings import SEARCHCRAWL_STALL_SECONDS

logger = logging.getLogger(__name__)

_BEAT_SECONDS: Final = 5.0
#: Its descriptor: faulthandler writes names of files and functions, escaped, and no text of strangers.
_STANDARD_ERROR: Final = 2


@contextmanager
def watch_stalls(log: Path | None = None, *, seconds: float | None = None) -> Iterator[None]:
    """Has the process end with exit code 1 and all its stacks in ``log`` if no thread can run for ``seconds`` (0: never).

    Without a log they go to standard error; without seconds it is as long as a crawl may stand still.
    """
    seconds = SEARCHCRAWL_STALL_SECONDS if seconds is None else seconds
    try:
        # A descriptor of its own, as the stream may be closed or replaced meanwhile.
        file = os.dup(_STANDARD_ERROR) if log is None else os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError as error:
        logger.warning("no stall watch: %s", error)
        seconds = file = 0
    if not seconds:
        yield
        return
    ended = threading.Event()
    # A thread of its own, as a heartbeat may have to wait for the store.
    thread = threading.Thread(target=_put_off, args=(file, seconds, ended), name="stall watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        faulthandler.cancel_dump_traceback_later()
        os.close(file)


def _put_off(file: int, seconds: float, ended: threading.Event) -> None:
    while True:
        faulthandler.dump_traceback_later(seconds, file=file, exit=True)
        if ended.wait(min(_BEAT_SECONDS, seconds / 4)):
            return
