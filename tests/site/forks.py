"""One process that has the test site loaded, and forks for each site: most tests start one of their own.

``python -m tests.site.forks`` is that process; ``start_site`` talks to it.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
START_SECONDS: Final = 30.0
#: Longer than a site takes to end once it was told to.
_END_SECONDS: Final = 10.0
_PR_SET_PDEATHSIG: Final = 1


class ForkedSite:
    """A site that was started; ``ports`` are those of its pages and of its admin interface."""

    def __init__(self, pid: int, ports: tuple[int, int]) -> None:
        # It is no child of this process: its number could be another's once it has ended.
        self._handle = os.pidfd_open(pid)
        self.ports = ports

    def stop(self) -> None:
        """Ends it, by SIGKILL where it does not."""
        for number, seconds in ((signal.SIGTERM, _END_SECONDS), (signal.SIGKILL, None)):
            if self._has_ended(0.0):
                break
            signal.pidfd_send_signal(self._handle, number)
            if self._has_ended(seconds):
                break
        os.close(self._handle)

    def _has_ended(self, seconds: float | None) -> bool:
        return bool(select.select([self._handle], [], [], seconds)[0])


class _Forks:
    """The process that forks, started for the first site; any thread may ask it."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        with self._asking:
            process = self._process = self._process or self._launch()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
            line = process.stdout.readline() if ready else ""
            if not line:
                # What it says later would be taken for the answer to another.
                process.kill()
                self._process = None
        answer: dict[str, Any] = json.loads(line or '{"failed": "no answer"}')
        return answer

    def _launch(self) -> subprocess.Popen[str]:
        atexit.register(self.stop)
        return subprocess.Popen(
            [sys.executable, "-m", "tests.site.forks"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def stop(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(30)
            self._process.stdout.close()


_FORKS: Final = _Forks()


def start_site(arguments: Sequence[str]) -> ForkedSite:
    """A site with the arguments of ``python -m tests.site``, once it listens; RuntimeError when it doesn't."""
    answer = _FORKS.ask({"arguments": arguments, "folder": str(Path.cwd())})
    if "failed" in answer:
        raise RuntimeError(f"the test site did not start: {answer['failed']}")
    return ForkedSite(answer["pid"], (answer["port"], answer["admin"]))


def main() -> None:
    """Reads orders from standard input, a line each, and forks; each site answers for itself, on standard output."""
    from tests.site import __main__ as site

    # Ctrl-C is for whoever asked; nobody asks how a site ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while line := sys.stdin.readline():
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(json.loads(line), site.serve)
            return


def _become(order: dict[str, Any], serve: Any) -> None:
    # A site does not outlive a test run that was killed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    os.chdir(order["folder"])
    try:
        serve(order["arguments"])
    except OSError as failure:
        print(json.dumps({"failed": str(failure)}), flush=True)
    # Not as Python ends: after a fork that copies all memory.
    os._exit(0)


if __name__ == "__main__":
    main()
