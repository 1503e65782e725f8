"""Starts many searchcrawl processes quickly: one process has everything imported, and forks for each command.

A forked command is a process of its own, with its own environment, folder and output, and may be killed.
``tests.fork_server`` is the process that forks; ``Forks`` talks to it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TextIO

ROOT: Final = Path(__file__).resolve().parents[1]


class Running:
    """A command under way, and its exit code once ``wait`` returned (negative: the signal that ended it)."""

    def __init__(self, answers: TextIO, output: Path, then: Callable[[], None]) -> None:
        self._answers = answers
        self.pid = int(_read(answers))
        self.output = output
        self._then = then
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
            # On a busy machine it would not come on in between.
            time.sleep(0.01)
        raise AssertionError("there is no such moment")

    def wait(self) -> int:
        """Waits for the end; one that takes over two minutes is killed."""
        if self._code is None:
            timer = threading.Timer(120, self.signal, [signal.SIGKILL])
            timer.start()
            try:
                self._code = int(_read(self._answers))
            finally:
                timer.cancel()
                self._answers.close()
                self._then()
        return self._code


def _read(answers: TextIO) -> str:
    line = answers.readline()
    if not line:
        raise RuntimeError("the process that forks has ended")
    return line


class _ForkServer:
    """The process that forks, for all tests of this process: started for the first command; any thread may ask it."""

    def __init__(self, **variables: str) -> None:
        self._variables = variables
        self._starting = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[str]

    def start(self) -> Path:
        """Has it loaded; the socket that it listens on."""
        with self._starting:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="forks-")
                self._process = self._launch(self._socket)
                assert self._process.stdout is not None
                _read(self._process.stdout)
            return self._socket

    @property
    def _socket(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name, "socket")

    def _launch(self, path: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self._variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, order: dict[str, Any]) -> TextIO:
        """Has a command started; its pid and later its exit code can be read, a line each."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.start()))
            connection.sendall(json.dumps(order).encode() + b"\n")
            return connection.makefile(encoding="ascii")

    def stop(self) -> None:
        if self._folder is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(30)
            self._process.stdout.close()
            self._folder.cleanup()


_SERVER: Final = _ForkServer()
atexit.register(_SERVER.stop)


class Forks:
    """So many commands at once; more wait for their turn. A context manager; any thread may start.

    With ``preload`` each loads that library before all others, and the process that forks ends with the context.
    """

    def __init__(self, processes: int, *, preload: Path | None = None) -> None:
        self._places = threading.Semaphore(processes)
        self._server = _SERVER if preload is None else _ForkServer(LD_PRELOAD=str(preload))
        self._server.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Where nothing was preloaded the process that forks serves the next tests."""
        if self._server is not _SERVER:
            self._server.stop()

    def start(self, folder: Path, *args: str, **variables: str) -> Running:
        """``searchcrawl ARGS`` in ``folder``; its output is appended to ``output.txt`` there."""
        self._places.acquire()
        output = folder / "output.txt"
        order = _order(folder, args, variables, output, output)
        return Running(self._server.ask(order), output, self._places.release)

    def run(self, folder: Path, *args: str, **variables: str) -> int:
        """The same, until its end; the exit code."""
        return self.start(folder, *args, **variables).wait()


class CommandRunner:
    """Commands with what they printed, as ``subprocess.run`` has them; as many at once as threads ask for."""

    def run(self, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """``searchcrawl ARGS`` in ``folder``, until its end."""
        return self._run(folder, args, variables)

    def run_as(self, program: str, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """``searchcrawl ARGS`` or ``scrapy ARGS``."""
        return self.run(folder, *([SCRAPY] if program == "scrapy" else []), *args, **variables)

    def run_beside(self, process: int, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The same, with the file systems that this process has mounted."""
        return self._run(folder, args, variables, mounts=f"/proc/{process}/ns/mnt")

    def fetch(self, job: Mapping[str, Any], **variables: str) -> dict[str, Any]:
        """What ``tests.fetch_crawl`` answers to a job, with the lines of its ``log``; it has this environment alone."""
        done = self._run(ROOT, (FETCH,), variables, text=json.dumps(job), environment=variables)
        done.check_returncode()
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer | {"log": done.stderr}

    def _run(
        self, folder: Path, args: Sequence[str], variables: Mapping[str, str], *, text: str = "", **more: Any
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(prefix="command-") as texts:
            given, printed, errors = (Path(texts, name) for name in ("input", "printed", "errors"))
            given.write_text(text, "utf-8")
            order = _order(folder, args, variables, printed, errors) | {"input": str(given)} | more
            code = Running(_SERVER.ask(order), errors, lambda: None).wait()
            return subprocess.CompletedProcess(args, code, printed.read_text("utf-8"), errors.read_text("utf-8"))


#: For all tests of a process.
COMMANDS: Final = CommandRunner()
#: A variable of a command: by how many seconds its clock is wrong.
CLOCK: Final = "SEARCHCRAWL_TEST_CLOCK"
#: Another one: the first pause of a host that fails, and of a crawl that died, in seconds; each later one is twice as long.
PAUSE: Final = "SEARCHCRAWL_TEST_PAUSE"
#: Another one: a page that failed is tried again no sooner than by a real command.
RETRIES: Final = "SEARCHCRAWL_TEST_RETRIES"
#: Another one: a source with more rows is a large one. After an edit so many are looked at at the start, and then at once.
SLICES: Final = "SEARCHCRAWL_TEST_SLICES"
#: Another one: for how many seconds a lease lasts; it is renewed six times in that time.
LEASE: Final = "SEARCHCRAWL_TEST_LEASE"
#: Another one: where the files of a browser of the tests are, in place of the real one (``tests.fake_browser``).
BROWSER: Final = "FAKE_BROWSER_FOLDER"
#: In place of the words of a command: a job of the fetch stage alone.
FETCH: Final = "(fetch)"
#: Before the words of a command: it is called as Scrapy's.
SCRAPY: Final = "(scrapy)"


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


@contextlib.contextmanager
def started(running: Running) -> Iterator[Running]:
    """Sees to it that a command has ended when a test has."""
    try:
        yield running
    finally:
        running.signal(signal.SIGCONT)
        running.signal(signal.SIGKILL)
        running.wait()
