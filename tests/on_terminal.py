"""Runs a command on a terminal of 80 columns, interrupts it, and returns what it showed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.acceptance.support_project import environment

COLUMNS: Final = 80
LIMIT_SECONDS: Final = 90.0
#: What steers the terminal.
STEERING: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][AB0]")
_LINE_END: Final = re.compile(r"\r*\n|\r")


class Shown(NamedTuple):
    """What a command showed on the terminal, with what steers it, and how it ended."""

    exit_code: int
    raw: str

    @property
    def lines(self) -> list[str]:
        """The lines without what steers the terminal; a line that is drawn anew is another one."""
        return [line.rstrip() for line in _LINE_END.split(STEERING.sub("", self.raw))]


class Terminal:
    """A terminal that one command has."""

    def __init__(self, command: Sequence[str], folder: Path, **variables: str) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment(**variables), "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def wait_for(self, condition: Callable[[str], object]) -> None:
        """Reads until what was shown meets a condition, or the command has ended."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline and not condition(self.shown):
            if not self._read(0.1):
                return
        assert condition(self.shown), self.shown

    def type(self, keys: str) -> None:
        """Sends keys."""
        os.write(self._fd, keys.encode())

    def interrupt(self) -> None:
        """What Ctrl-C does: a signal to all processes of the terminal."""
        os.killpg(self._process.pid, signal.SIGINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._fd)

    def end(self) -> Shown:
        """Reads to the end of the command; one that does not end is killed."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline and self._read(0.2):
            pass
        if time.monotonic() >= deadline:
            self._process.kill()
        return Shown(self._process.wait(), self.shown)

    def _read(self, seconds: float) -> bool:
        """Whether there may be more."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return self._process.poll() is None
        try:
            found = os.read(self._fd, 65536)
        except OSError:
            return False
        self.shown += found.decode("utf-8", "replace")
        return bool(found)


def show(folder: Path, *arguments: str, **variables: str) -> Shown:
    """What a command of ours shows on a terminal."""
    with Terminal([sys.executable, "-m", "searchcrawl", *arguments], folder, **variables) as terminal:
        return terminal.end()


def find_misfits(shown: Shown, piped: str) -> list[str]:
    """Lines that are too wide, and words of ``piped``, the same answer in a pipe, that are cut on the terminal."""
    wide = [line for line in shown.lines if len(line) > COLUMNS and len(max(line.split(), key=len)) < COLUMNS]
    words = {word for line in shown.lines for word in line.split()}
    cut = [word for word in piped.split() if word not in words and "/" not in word and "─" not in word]
    return wide + cut
