"""``searchcrawl run``: ticks in the foreground, restarts what died, and ends with its crawls (H8)."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from searchcrawl import clock
from searchcrawl.exceptions import ConfigurationError, StoreError
from searchcrawl.scheduling.ticking import Ticked, Ticking
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import holder, job_table, lease
from searchcrawl.store.runs.job_table import Job, JobState
from searchcrawl.store.runs.lease import Lease

_POLL_SECONDS: Final = 2.0
_STOP_POLL_SECONDS: Final = 0.2
#: How often a crawl is told to end: one that has just begun may not have heard of it.
_TELL_SECONDS: Final = 1.0
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Counts the signals that ask this process to end, and ends its waiting."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    @contextmanager
    def catch(self) -> Iterator[None]:
        """Catches them; a child that ends ends the waiting, too. In the main thread only."""
        # nohup has the signal of a terminal that is closed ignored.
        is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        caught = [*_STOPPING, *(() if is_kept else (signal.SIGHUP,))]
        before = {number: signal.signal(number, self._note) for number in caught}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, self._pass)
        wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._reader)
            os.close(self._writer)

    def wait(self, seconds: float) -> None:
        """Waits so long, or until the next signal."""
        if select.select([self._reader], [], [], seconds)[0]:
            os.read(self._reader, 4096)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self.count:
            # The terminal and the shell in it send one each: nobody asks twice.
            return
        self.count += 1
        self.last = number

    def _pass(self, number: int, frame: FrameType | None) -> None:
        """Only so that it is a signal with a handler, which ends the waiting."""


class Service:
    """The service of one project. ``tell`` gets what each tick did, ``warn`` each new error, once, and ``say_end`` is called
    when a signal has come and its crawls are to end.

    The files are read anew with each tick: an edit counts at once, and one that is refused leaves all as it was.
    """

    def __init__(
        self,
        load_project: Callable[[], Project],
        database: Database,
        *,
        tell: Callable[[Ticked], None],
        warn: Callable[[Exception], None],
        say_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._load_project = load_project
        self._database = database
        self._tell = tell
        self._warn = warn
        self._say_end = say_end
        self._warned: set[str] = set()
        self._children: list[subprocess.Popen[bytes]] = []

    def run(self) -> None:
        """Ticks until a signal, then has the crawls of this machine end, and waits for them.

        They go on when it runs again. A second signal ends them at once, as it does with a crawl. It does not matter
        whether they get the first one as well, as all processes of a unit of systemd do.
        """
        signals = Signals()
        project = self._load_project()
        with signals.catch():
            while not signals.count:
                project = self._tick(project, signals)
                signals.wait(_POLL_SECONDS)
                # Those that have ended would stay as zombies.
                self._children = [child for child in self._children if child.poll() is None]
            self._say_end()
            self._stop(signals)

    def _tick(self, project: Project, signals: Signals) -> Project:
        """One tick; an error of it may be gone with the next one."""
        errors: list[Exception] = []
        try:
            project = self._load_project()
        except ConfigurationError as error:
            errors.append(error)
        try:
            done = Ticking(project, self._database, is_stopped=lambda: signals.count > 0).tick()
        except StoreError as error:
            self._warn_once([*errors, error])
            return project
        self._warn_once(errors if done.error is None else [*errors, done.error])
        self._children += done.children
        self._tell(done)
        return project

    def _warn_once(self, errors: Iterable[Exception]) -> None:
        """Warns of those that the tick before did not have."""
        present = {str(error): error for error in errors}
        for text in present.keys() - self._warned:
            self._warn(present[text])
        self._warned = {*present}

    def _stop(self, signals: Signals) -> None:
        """Has the crawls of this machine end, cleanly where no second signal comes."""
        next_telling = 0.0
        while holders := self.find_crawls():
            if signals.count > 1:
                # Until they have ended: the second one that a crawl gets ends it at once.
                self._send(holders, signal.SIGTERM)
            elif clock.monotonic() >= next_telling:
                next_telling = clock.monotonic() + _TELL_SECONDS
                self._send(holders, job_table.END_CLEANLY)
            signals.wait(_STOP_POLL_SECONDS)
            for child in self._children:
                child.poll()

    def find_crawls(self) -> list[str]:
        """The processes of jobs that run here."""
        try:
            return self._database.write(_let_resume)
        except StoreError as error:
            self._warn_once([error])
            return [holder.describe_process(child.pid) for child in self._children if child.poll() is None]

    def _send(self, holders: list[str], number: int) -> None:
        for text in holders:
            pid = holder.find_pid(text)
            if pid is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _let_resume(transaction: Transaction) -> list[str]:
    """The living processes of this machine that run jobs; these go on with the next start."""
    found: list[str] = []
    holders = lease.find_holders(transaction)
    jobs = job_table.load(transaction, job_table.find_started(transaction), lock=True)
    for source_id, job in jobs.items():
        if job.place or not job.is_started:
            continue
        fence, text = holders.get(source_id, (0, ""))
        if job.state is JobState.LAUNCHING or fence != job.fence:
            text = job.child
        if text and holder.find_pid(text) is not None:
            found.append(text)
            if not job.resumes and not _is_stopped(transaction, source_id, job):
                job_table.let_resume(transaction, source_id, job.token)
    return found


def _is_stopped(transaction: Transaction, source_id: int, job: Job) -> bool:
    """Whether somebody has stopped the crawl of a job: it is not to go on by itself."""
    return job.state is JobState.RUNNING and lease.is_told_to_stop(transaction, Lease(source_id, job.fence))
