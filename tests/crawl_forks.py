"""Starts many searchcrawl processes quickly: one process has everything imported, and forks for each command.

A forked command is a process of its own, with its own environment, folder and output, and may be killed.
``python -m tests.crawl_forks`` is the process that forks; ``Forks`` talks to it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[1]
#: What commands load late, beside the modules of searchcrawl: loaded before the fork, since it is the same for each.
_LATE: Final = (
    "chardet",
    "alembic.ddl.sqlite",
    "pydantic.v1",
    "queuelib",
    "resiliparse.parse.lang",
    "rich.table",
    "scrapy.cmdline",
    "scrapy.contracts",
    "scrapy.core.scraper",
    "scrapy.dupefilters",
    "scrapy.extensions.closespider",
    "scrapy.extensions.corestats",
    "scrapy.extensions.logcount",
    "scrapy.extensions.logstats",
    "scrapy.extensions.memdebug",
    "scrapy.extensions.memusage",
    "scrapy.extensions.remote_control",
    "scrapy.extensions.spiderstate",
    "scrapy.extensions.telnet",
    "scrapy.extensions.throttle",
    "scrapy.shell",
    "scrapy.squeues",
    "scrapy.statscollectors",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlite3",
    "twisted.internet.asyncioreactor",
)


class Running:
    """A command under way, and its exit code once ``wait`` returned (negative: the signal that ended it)."""

    def __init__(self, fork: _Fork, pid: int, output: Path) -> None:
        self._fork = fork
        self.pid = pid
        self.output = output
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

    def wait(self) -> int:
        """Waits for the end; one that takes over two minutes is killed."""
        if self._code is None:
            timer = threading.Timer(120, self.signal, [signal.SIGKILL])
            timer.start()
            try:
                self._code = int(self._fork.read())
            finally:
                timer.cancel()
                self._fork.give_back()
        return self._code


class _Fork:
    """One process that forks; it has one command under way at a time."""

    def __init__(self, give_back: Callable[[_Fork], None]) -> None:
        self._give_back = give_back
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crawl_forks"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ready = False

    def read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that forks has ended")
        return line

    def send(self, order: dict[str, Any]) -> None:
        if not self._ready:
            self.read()
            self._ready = True
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def give_back(self) -> None:
        self._give_back(self)

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class Forks:
    """So many commands at once; more wait for their turn. A context manager; any thread may start."""

    def __init__(self, processes: int) -> None:
        self._free: queue.SimpleQueue[_Fork] = queue.SimpleQueue()
        self._all = [_Fork(self._free.put) for _ in range(processes)]
        for fork in self._all:
            self._free.put(fork)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fork in self._all:
            fork.stop()

    def start(self, folder: Path, *args: str, **variables: str) -> Running:
        """``searchcrawl ARGS`` in ``folder``; its output is appended to ``output.txt`` there."""
        return _ordered(self._free.get(), folder, folder / "output.txt", folder / "output.txt", args, variables)

    def run(self, folder: Path, *args: str, **variables: str) -> int:
        """The same, until its end; the exit code."""
        return self.start(folder, *args, **variables).wait()


class CommandRunner:
    """Commands with what they printed, as ``subprocess.run`` has them; as many at once as threads ask for."""

    def __init__(self) -> None:
        self._free: queue.SimpleQueue[_Fork] = queue.SimpleQueue()
        self._all: list[_Fork] = []

    def run(self, folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """``searchcrawl ARGS`` in ``folder``, until its end."""
        try:
            fork = self._free.get_nowait()
        except queue.Empty:
            fork = _Fork(self._free.put)
            self._all.append(fork)
        with tempfile.TemporaryDirectory(prefix="command-") as texts:
            printed, errors = Path(texts, "printed"), Path(texts, "errors")
            code = _ordered(fork, folder, printed, errors, args, variables).wait()
            return subprocess.CompletedProcess(args, code, printed.read_text("utf-8"), errors.read_text("utf-8"))

    def stop(self) -> None:
        """Ends the processes that fork."""
        for fork in self._all:
            fork.stop()
        self._all.clear()


#: For all tests of a process.
COMMANDS: Final = CommandRunner()
atexit.register(COMMANDS.stop)


def _ordered(
    fork: _Fork, folder: Path, output: Path, errors: Path, args: Sequence[str], variables: Mapping[str, str]
) -> Running:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRAPY_", "SEARCHCRAWL_"))}
    fork.send(
        {
            "args": args,
            "folder": str(folder),
            "output": str(output),
            "errors": str(errors),
            "environment": {**kept, **variables},
        }
    )
    return Running(fork, int(fork.read()), errors)


def main() -> None:
    """Reads orders from standard input, forks for each, and tells the pid and then the exit code."""
    _load()
    # Ctrl-C is for the commands of a test, not for us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(1)
    os.write(answers, b"ready\n")
    while line := sys.stdin.readline():
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            _become(order)
            return
        os.write(answers, b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


def _load() -> None:
    # Not above: each worker process of a command loads this module again.
    import chardet
    import scrapy.commands

    import searchcrawl

    for name in (*_LATE, *_product_modules(searchcrawl.__path__)):
        importlib.import_module(name)
    # It reads its models for the first text.
    chardet.detect("Straßen".encode("latin-1"))
    for module in pkgutil.iter_modules(scrapy.commands.__path__, "scrapy.commands."):
        importlib.import_module(module.name)
    # Its choice is the command's.
    assert "twisted.internet.reactor" not in sys.modules
    gc.collect()
    gc.freeze()


def _product_modules(path: Iterable[str]) -> list[str]:
    """All modules of searchcrawl but those of its migrations, which Alembic loads."""
    found = (module.name for module in pkgutil.walk_packages(path, "searchcrawl."))
    return [name for name in found if ".migrations" not in name and not name.endswith("__main__")]


def _become(order: dict[str, Any]) -> None:
    """Goes on as the command that was ordered; ends the process."""
    from searchcrawl import failpoints
    from searchcrawl.cli import dispatch

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"], PYTHONPATH=str(ROOT))
    os.chdir(order["folder"])
    sys.path.insert(0, str(ROOT))
    nothing = os.open(os.devnull, os.O_RDONLY)
    time.tzset()
    output, errors = (
        os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in ("output", "errors")
    )
    for source, target in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(source, target)
    # It reads the environment once, when it is loaded.
    importlib.reload(failpoints)
    dispatch.main(["searchcrawl", *order["args"]])


@contextlib.contextmanager
def started(running: Running) -> Iterator[Running]:
    """Sees to it that a command has ended when a test has."""
    try:
        yield running
    finally:
        running.signal(signal.SIGCONT)
        running.signal(signal.SIGKILL)
        running.wait()


if __name__ == "__main__":
    main()
