"""Ends a process whose reactor does not turn any more, so that the next run can find the page that is the reason."""

from __future__ import annotations

import faulthandler
import signal
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
#: So long writing the stacks to the log may take.
_WRITING_SECONDS: Final = 0.5


class StallExtension:
    """Has the process end if the reactor does not turn for ``seconds`` (0: never): exit code 1, all stacks in the log.

    The reactor puts the end off again and again. It needs no lock of the interpreter, which code in C may hold: a timer
    of the kernel has faulthandler write the stacks to the log, and a moment later to the file that the next run reads.
    """

    def __init__(self, run: Run, *, seconds: float, stacks: StackFile | None = None) -> None:
        self._run = run
        self._stacks = stacks or StackFile(run.project.logs_dir, run.source.name)
        self._log = run.project.logs_dir / f"{run.source.name}.log"
        self._seconds = seconds
        self._files: list[BinaryIO] = []
        self._lock = threading.Lock()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StallExtension:
        extension = stages_of(crawler).get(cls)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        return extension

    def engine_started(self) -> None:
        if not self._seconds:
            return
        try:
            self._files = [self._stacks.open(), self._log.open("ab", buffering=0)]
        except OSError as error:
            self._fail(error)
            return
        faulthandler.register(signal.SIGALRM, file=self._files[1])
        # Made here: it imports the reactor, which a process may install after this object.
        LoopingCall(self._put_off).start(min(_BEAT_SECONDS, self._seconds / 4))

    def stop(self, reason: str) -> None:
        """Ends the watch; called in a thread once everything is delivered, before another process may take the source."""
        with self._lock:
            if not self._files:
                return
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            self._files = []
            try:
                self._stacks.remove()
            except OSError as error:
                # The run has an end all the same: that is written after this.
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._run.shutdown.fail(LogError(f"log {error.filename}: {error.strerror or error}"))

    def _put_off(self) -> None:
        with self._lock:
            if self._files:
                signal.setitimer(signal.ITIMER_REAL, self._seconds)
                faulthandler.dump_traceback_later(self._seconds + _WRITING_SECONDS, file=self._files[0], exit=True)
