"""Watches what a run needs: the lease of its source, space on disks, memory, a reactor that turns. Ends the run without it.

The heartbeat (X-S3, X-D18) looks at what other processes ask of the run as well, which are stops and submitted URLs (H4, H9).
A process whose reactor does not turn any more is ended, so that the next run can find the page that is the reason; the reactor
counts its pauses with a clock that nobody can set (X-S7).
"""

from __future__ import annotations

import faulthandler
import logging
import re
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.extensions.memusage import MemoryUsage
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.task import LoopingCall

from searchcrawl import clock
from searchcrawl.cache.disk_space import list_folders, refuse_low
from searchcrawl.exceptions import DiskFull, LeaseLost, LogError, StoreError
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs.lease import BEAT_SECONDS, is_told_to_stop
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import recrawl_table
from searchcrawl.traces import StackFile

logger = logging.getLogger(__name__)

_STATUS: Final = Path("/proc/self/status")
#: Submitted URLs that are taken at once.
_MOST_SUBMITTED: Final = 1000
_NOW: Final = "VmRSS"
_PEAK: Final = "VmHWM"
_AMOUNT: Final = re.compile(r"^(Vm\w+):\s+(\d+) kB$", re.MULTILINE)
#: How often the end of a process that hangs is put off.
_PUT_OFF_SECONDS: Final = 5.0
#: So long writing the stacks to the log may take.
_WRITING_SECONDS: Final = 0.5


class HeartbeatExtension:
    """Renews the lease and checks the disks, in its own thread: a busy reactor must not lose the lease.

    Ends the run if the lease is lost, or if a disk has less than ``min_free_bytes`` left: what was fetched can then
    still be stored. ``admit`` takes URLs that were submitted, and returns whether it did; without it they wait.
    """

    def __init__(
        self, run: Run, *, min_free_bytes: int, admit: Callable[[tuple[str, ...]], bool] = lambda urls: False
    ) -> None:
        self._run = run
        self._admit = admit
        #: those that are being admitted
        self._submitted: frozenset[str] = frozenset()
        self._min_free_bytes = min_free_bytes
        self._started = threading.Event()
        self._stopped = threading.Event()
        self._told = False
        self._thread = threading.Thread(target=self._renew_lease, name="heartbeat", daemon=True)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HeartbeatExtension:
        extension = stages_of(crawler).get(cls)
        crawler.signals.connect(extension.engine_started, signal=signals.engine_started)
        # Pages may be reviewed, and very many start URLs admitted, before the engine starts.
        extension.start()
        return extension

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def engine_started(self) -> None:
        """From now on the run can be ended."""
        self._started.set()

    def stop(self, reason: str) -> None:
        """Ends the thread; called once everything is delivered."""
        self._stopped.set()
        self._started.set()

    def _renew_lease(self) -> None:
        try:
            self._check_disks()
            while not self._stopped.wait(BEAT_SECONDS):
                self._run.renew_lease()
                self._check_disks()
                self._follow_orders()
        except (LeaseLost, StoreError, DiskFull) as error:
            self._started.wait()
            logger.warning("the run ends: %s", error)
            self._run.shutdown.fail(error)

    def _follow_orders(self) -> None:
        """Ends the run where somebody, on whatever machine, stopped the source; else takes in submitted URLs."""
        run = self._run
        if not self._started.is_set() or self._told:
            return
        self._told, submitted = run.read(self._read_orders)
        if self._told:
            logger.info("the run ends: it was stopped by a command")
            run.shutdown.stop(EndReason.STOPPED)
            return
        added = tuple(url for url in submitted if url not in self._submitted)
        if not added or self._admit(added):
            self._submitted = frozenset(submitted)

    def _read_orders(self, transaction: Transaction) -> tuple[bool, list[str]]:
        lease = self._run.lease
        submitted = recrawl_table.load_submitted(transaction, lease.source_id, most=_MOST_SUBMITTED)
        return is_told_to_stop(transaction, lease), submitted

    def _check_disks(self) -> None:
        if self._min_free_bytes:
            folders = list_folders(self._run.project, self._run.database.folder)
            refuse_low(folders, min_free_bytes=self._min_free_bytes)


class MemoryExtension(MemoryUsage):
    """Ends a crawl whose process takes more memory than MEMUSAGE_LIMIT_MB: what it gave back does not count.

    Scrapy's own extension reads ``getrusage``: the peak, which also counts that of the process before ``exec``.
    """

    def get_virtual_size(self) -> int:
        """The resident memory of this moment in bytes; the peak where the system does not say."""
        return _read_memory(_NOW) or super().get_virtual_size()

    def update(self) -> None:
        """Keeps the peak in the statistics: memory may come and go between two looks."""
        self._stats.max_value("memusage/max", self._read_peak())

    def _check_limit(self) -> None:
        present = self.get_virtual_size()
        if present > self.limit:
            super()._check_limit()
        else:
            # Scrapy's own line calls the present the peak.
            logger.info("memory: %d MiB, %d MiB at most so far", present >> 20, self._read_peak() >> 20)

    def _read_peak(self) -> int:
        return _read_memory(_PEAK) or super().get_virtual_size()


def _read_memory(name: str) -> int:
    """An amount of memory of this process in bytes; 0 where the system does not say."""
    with suppress(OSError):
        amounts = dict(_AMOUNT.findall(_STATUS.read_text(encoding="ascii", errors="replace")))
        return int(amounts.get(name, 0)) * 1024
    return 0


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
        LoopingCall(self._put_off).start(min(_PUT_OFF_SECONDS, self._seconds / 4))

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
