"""A project of ``selftest``: written into a folder, and run there by processes that may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol

import searchcrawl
from searchcrawl.selftest.site import ADDRESS
from searchcrawl.selftest.stored import select_from_file
from searchcrawl.sources.loading import load_project
from searchcrawl.sources.project import Project

SOURCE: Final = "selftest"
KILLED: Final = -signal.SIGKILL
#: A process that takes longer hangs.
_MOST_SECONDS: Final = 120.0
#: How often it is looked at whether a process has ended before it did anything.
_LOOK_SECONDS: Final = 0.1
_OUTPUT: Final = "output.txt"
#: Of the end of what a process said.
_SHOWN_LINES: Final = 3


class KillLater(NamedTuple):
    """SIGKILL, so many seconds after ``begun`` was set, if the process has not ended before."""

    begun: threading.Event
    seconds: float


class Starts(Protocol):
    """Starts crawls; any thread may call it."""

    def __call__(self, folder: Path, variables: Mapping[str, str], kill: KillLater | None = None) -> int:
        """Crawls the project in ``folder``, with these variables; the exit code, negative for a signal."""

    def stop(self) -> None:
        """Ends all crawls that run, and lets none begin."""


def write_project(folder: Path, visitor: str, origin: str) -> None:
    """Writes a project that is known to the site as ``visitor``; its cache is full several times in a crawl."""
    files = {
        "scrapy.cfg": "[settings]\ndefault = searchcrawl.settings\n",
        "searchcrawl.toml": (
            f'contact = "{origin}/"\nuser_agent = "{visitor}"\n\n'
            '[cache]\nthreshold_mb = 0.03\n\n[index]\ntype = "local"\n'
        ),
        f"sources/{SOURCE}.toml": (
            f'type = "web"\n\n[start]\nurls = ["{origin}/"]\n\n[scope]\ninclude_hosts = ["={ADDRESS}"]\ndepth = 6\n\n'
            f'[fetch]\ndelay_seconds = 0\nretries = 0\nprivate_networks = ["{ADDRESS}/32"]\n'
        ),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def open_project(folder: Path) -> Project:
    """The project in a folder."""
    return load_project(folder)


def select(folder: Path, statement: str) -> list[dict[str, Any]]:
    """Rows of the store of a project that ``write_project`` wrote."""
    return select_from_file(folder / "var" / "searchcrawl.db", statement)


def quote_end(folder: Path) -> str:
    """The last lines that a process said, or logged as errors."""
    lines: list[str] = []
    for path in (folder / _OUTPUT, *sorted(folder.glob("var/log/*.log"))):
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        lines += [line for line in text.splitlines() if path.name == _OUTPUT or "ERROR" in line]
    return " | ".join(lines[-_SHOWN_LINES:])


class Processes(Starts):
    """Starts crawls as processes of their own."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __call__(self, folder: Path, variables: Mapping[str, str], kill: KillLater | None = None) -> int:
        with (folder / _OUTPUT).open("ab") as output:
            process = self._start(folder, variables, output)
        try:
            while kill is not None and process.poll() is None and not kill.begun.wait(_LOOK_SECONDS):
                pass
            return process.wait(_MOST_SECONDS if kill is None else kill.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        except BaseException:
            # Ctrl-C, which the process does not get.
            process.kill()
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def _start(self, folder: Path, variables: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRAPY_", "SEARCHCRAWL_"))}
        package = str(Path(searchcrawl.__file__).resolve().parents[1])
        paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(  # noqa: S603 (our own command)
                [sys.executable, "-m", "searchcrawl", "crawl", SOURCE],
                cwd=folder,
                env={**kept, "PYTHONPATH": paths, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the process that asks; it ends these.
                start_new_session=True,
            )
            self._running.add(process)
        return process
