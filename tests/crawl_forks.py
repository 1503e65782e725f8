"""Starts many searchcrawl processes quickly: one process has everything imported, and forks for each command.

A forked command is a process of its own, with its own environment, folder and output, and may be killed.
``python -m tests.crawl_forks`` is the process that forks; ``Forks`` talks to it.
"""

from __future__ import annotations

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
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import scrapy.commands

ROOT: Final = Path(__file__).resolve().parents[1]
#: What a crawl imports late; loaded before the fork, since it is the same for each.
_LATE: Final = (
    "alembic.ddl.sqlite",
    "pydantic.v1",
    "scrapy.cmdline",
    "scrapy.contracts",
    "scrapy.core.scraper",
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
    "scrapy.statscollectors",
    "searchcrawl.__main__",
    "searchcrawl.addon",
    "searchcrawl.commands.crawl",
    "searchcrawl.fetch.guarded_handler",
    "searchcrawl.fetch.guarded_resolver",
    "searchcrawl.frontier.scheduler",
    "searchcrawl.index.local_receiver",
    "searchcrawl.index.solr_receiver",
    "searchcrawl.settings",
    "searchcrawl.spiders.spider_loader",
    "searchcrawl.spiders.web_spider",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlite3",
    "twisted.internet.asyncioreactor",
    "twisted.web.client",
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

    def __init__(self, free: queue.SimpleQueue[_Fork]) -> None:
        self._free = free
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crawl_forks"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that forks has ended")
        return line

    def send(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def give_back(self) -> None:
        self._free.put(self)

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
        self._all = [_Fork(self._free) for _ in range(processes)]

    def __enter__(self) -> Self:
        for fork in self._all:
            fork.read()
            fork.give_back()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fork in self._all:
            fork.stop()

    def start(self, folder: Path, *args: str, **variables: str) -> Running:
        """``searchcrawl ARGS`` in ``folder``; its output is appended to ``output.txt`` there."""
        fork = self._free.get()
        output = folder / "output.txt"
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("SCRAPY_", "SEARCHCRAWL_"))
        }
        fork.send(
            {"args": args, "folder": str(folder), "output": str(output), "environment": {**environment, **variables}}
        )
        return Running(fork, int(fork.read()), output)

    def run(self, folder: Path, *args: str, **variables: str) -> int:
        """The same, until its end; the exit code."""
        return self.start(folder, *args, **variables).wait()


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
    for name in _LATE:
        importlib.import_module(name)
    for module in pkgutil.iter_modules(scrapy.commands.__path__, "scrapy.commands."):
        importlib.import_module(module.name)
    # Its choice is the command's.
    assert "twisted.internet.reactor" not in sys.modules
    gc.collect()
    gc.freeze()


def _become(order: dict[str, Any]) -> None:
    """Goes on as the command that was ordered; ends the process."""
    from searchcrawl import __main__, failpoints

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"], PYTHONPATH=str(ROOT))
    os.chdir(order["folder"])
    sys.path.insert(0, str(ROOT))
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    # It reads the environment once, when it is loaded.
    importlib.reload(failpoints)
    __main__.main(["searchcrawl", *order["args"]])


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
