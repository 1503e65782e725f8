"""Ends a process whose reactor does not turn any more, so that the next run can find the page that is the reason."""

from __future__ import annotations

import faulthandler
import threading
from typing import BinaryIO, Final

from scrapy import signals
from scrapy.crawler import Crawler
from twisted.internet.task import LoopingCall

from searchcrawl.exceptions import LogError
from searchcrawl.run import Run
from searchcrawl.stack_file import StackFile
from searchcrawl.stages import stages_of

_BEAT_SECONDS: Final = 5.0


class StallExtension:
    """Has the process end if the reactor does not turn for ``seconds`` (0: never): exit code 1, stacks in a file.

    The reactor puts the end off again and again. faulthandler waits for it without the interpreter's lock, which code in
    C may hold.
    """

    def __init__(self, run: Run, *, seconds: float) -> None:
        self._run = run
        self._file = StackFile(run.project.logs_dir, run.source.name)
        self._seconds = seconds
        self._beat = LoopingCall(self._put_off)
        self._opened: BinaryIO | None = None
        self._lock = threading.Lock()
        self._ended = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StallExtension:
        extension = stages_of(crawler).get(cls)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        return extension

    def engine_started(self) -> None:
        if not self._seconds:
            return
        try:
            self._opened = self._file.open()
        except OSError as error:
            self._run.shutdown.fail(LogError(f"{self._file.path}: {error.strerror or error}"))
            return
        self._beat.start(min(_BEAT_SECONDS, self._seconds / 4))

    def stop(self, reason: str) -> None:
        """Ends the watch; called in a thread once everything is delivered, before another process may take the source."""
        with self._lock:
            self._ended = True
            if self._opened is not None:
                faulthandler.cancel_dump_traceback_later()
                self._file.remove()

    def _put_off(self) -> None:
        with self._lock:
            if not self._ended and self._opened is not None:
                faulthandler.dump_traceback_later(self._seconds, file=self._opened, exit=True)
