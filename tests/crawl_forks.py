"""Starts many searchcrawl processes quickly: one process has everything imported, and forks for each command.

A forked command is a process of its own, with its own environment, folder and output, and may be killed.
``tests.fork_server`` is the process that forks; ``Forks`` talks to it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[1]


class Running:
    """A command under way, and its exit code once ``wait`` returned (negative: the signal that ended it)."""

    def __init__(self, fork: _Fork, pid: int, output: Path, give_back: Callable[[_Fork], None]) -> None:
        self._fork = fork
        self.pid = pid
        self.output = output
        self._give_back = give_back
        self._code: int | None = None

    def signal(self, number: int) -> None:
        """Sends a signal, unless the command has ended."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so; AssertionError where it is not after a minute."""
        for _ in range(1200):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError(self.output.read_text("utf-8"))

    def freeze(self, may_stop: Callable[[], bool]) -> None:
        """Stops the process (SIGSTOP) at a moment when something is so."""
        for _ in range(200):
            self.signal(signal.SIGSTOP)
            if may_stop():
                return
            self.signal(signal.SIGCONT)
        raise AssertionError("there is no such moment")

    def wait(self) -> int:
        """Waits for the end; one that takes over two minutes is killed."""
        if self._code is None:
            timer = threading.Timer(120, self.signal, [signal.SIGKILL])
            timer.start()
            try:
                self._code = int(self._fork.read())
            finally:
                timer.cancel()
                self._give_back(self._fork)
        return self._code


class _Fork:
    """One process that forks; it has one command under way at a time."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._loaded = False

    def wait_until_loaded(self) -> None:
        if not self._loaded:
            self.read()
            self._loaded = True

    def read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that forks has ended")
        return line

    def send(self, order: dict[str, Any]) -> None:
        self.wait_until_loaded()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class _Pool:
    """The processes that fork, for all tests of this process: as many as there were commands at once."""

    def __init__(self, **variables: str) -> None:
        self._variables = variables
        self._free: queue.SimpleQueue[_Fork] = queue.SimpleQueue()
        self._all: list[_Fork] = []

    def grow(self, processes: int) -> None:
        """Has so many of them loaded: commands that are to run at once start at once."""
        new = [_Fork(self._variables) for _ in range(processes - len(self._all))]
        self._all += new
        for fork in new:
            fork.wait_until_loaded()
            self._free.put(fork)

    def take(self) -> _Fork:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            fork = _Fork(self._variables)
            self._all.append(fork)
            return fork

    def give_back(self, fork: _Fork) -> None:
        self._free.put(fork)

    def stop(self) -> None:
        for fork in self._all:
            fork.stop()


_POOL: Final = _Pool()
atexit.register(_POOL.stop)


class Forks:
    """So many commands at once; more wait for their turn. A context manager; any thread may start.

    With ``preload`` each loads that library before all others, and the processes that fork end with the context.
    """

    def __init__(self, processes: int, *, preload: Path | None = None) -> None:
        self._places = threading.Semaphore(processes)
        self._pool = _POOL if preload is None else _Pool(LD_PRELOAD=str(preload))
        self._pool.grow(processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Where nothing was preloaded the processes that fork serve the next tests."""
        if self._pool is not _POOL:
            self._pool.stop()

    def start(self, folder: Path, *args: str, **variables: str) -> Running:
        """``searchcrawl ARGS`` in ``folder``; its output is appended to ``output.txt`` there."""
        self._places.acquire()
        output = folder / "output.txt"

        def give_back(fork: _Fork) -> None:
            self._pool.give_back(fork)
            self._places.release()

        return _start(_order(folder, args, variables, output, output), self._pool, give_back)

    def run(self, folder: Path, *args: str, **variables: str) -> int:
        """The same, until its end; the exit code."""
        return self.start(folder, *args, **variables).wait()


class CommandRunner:
    """Commands with what they printed, as ``subprocess.run`` has them; as many at once as threads ask for."""

    def run(self, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """``searchcrawl ARGS`` in ``folder``, until its end."""
        return self._run(folder, args, variables)

    def run_beside(self, process: int, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The same, with the file systems that this process has mounted."""
        return self._run(folder, args, variables, mounts=f"/proc/{process}/ns/mnt")

    def fetch(self, job: Mapping[str, Any], **variables: str) -> subprocess.CompletedProcess[str]:
        """A job of ``tests.fetch_crawl``, with this environment alone; CalledProcessError where it fails."""
        done = self._run(ROOT, (FETCH,), variables, text=json.dumps(job), environment=variables)
        done.check_returncode()
        return done

    def _run(
        self, folder: Path, args: Sequence[str], variables: Mapping[str, str], *, text: str = "", **more: Any
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(prefix="command-") as texts:
            given, printed, errors = (Path(texts, name) for name in ("input", "printed", "errors"))
            given.write_text(text, "utf-8")
            order = _order(folder, args, variables, printed, errors) | {"input": str(given)} | more
            code = _start(order, _POOL, _POOL.give_back).wait()
            return subprocess.CompletedProcess(args, code, printed.read_text("utf-8"), errors.read_text("utf-8"))


#: For all tests of a process.
COMMANDS: Final = CommandRunner()
#: A variable of a command: by how many seconds its clock is wrong.
CLOCK: Final = "SEARCHCRAWL_TEST_CLOCK"
#: Another one: the first pause of a host that fails, in seconds; each later one is twice as long, as always.
PAUSE: Final = "SEARCHCRAWL_TEST_PAUSE"
#: In place of the words of a command: a job of the fetch stage alone.
FETCH: Final = "(fetch)"


def _order(
    folder: Path, args: Sequence[str], variables: Mapping[str, str], output: Path, errors: Path
) -> dict[str, Any]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRAPY_", "SEARCHCRAWL_"))}
    return {
        "args": args,
        "folder": str(folder),
        "input": os.devnull,
        "output": str(output),
        "errors": str(errors),
        "environment": {**kept, **variables},
    }


def _start(order: dict[str, Any], pool: _Pool, give_back: Callable[[_Fork], None]) -> Running:
    fork = pool.take()
    fork.send(order)
    return Running(fork, int(fork.read()), Path(order["errors"]), give_back)


@contextlib.contextmanager
def started(running: Running) -> Iterator[Running]:
    """Sees to it that a command has ended when a test has."""
    try:
        yield running
    finally:
        running.signal(signal.SIGCONT)
        running.signal(signal.SIGKILL)
        running.wait()
