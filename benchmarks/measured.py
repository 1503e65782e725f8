"""What a process and its children cost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one process from start to end; ``cpu_seconds`` is user and system time, children included.

    ``peak_rss_bytes`` is the main process alone, as the kernel's VmHWM; ``peak_own_bytes`` without mapped files, as seen ten
    times a second.
    """

    exit_code: int
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    peak_own_bytes: int = 0


def run_measured(command: Sequence[str], *, cwd: Path, output: Path, env: Mapping[str, str] | None = None) -> Cost:
    """Runs ``command``; its standard output goes to ``output``, its errors to the same name with ``.err``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", **(env or {})}
    with output.open("wb") as out, output.with_suffix(".err").open("wb") as err:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=out, stderr=err)
        watch = _PeakWatch(process.pid)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        exit_code=process.returncode,
        wall_seconds=wall_seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_rss_bytes=watch.finish(),
        peak_own_bytes=watch.own_bytes,
    )


class _PeakWatch(threading.Thread):
    """Reads VmHWM until told to stop: wait4's own figure would be that of the largest child, or of us before exec."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status = Path(f"/proc/{pid}/status")
        self._over = threading.Event()
        self._peak_bytes = 0
        self.own_bytes = 0

    def run(self) -> None:
        while not self._over.wait(0.1):
            try:
                lines = self._status.read_text(encoding="utf-8").splitlines()
            except OSError:
                return
            for line in lines:
                if line.startswith("VmHWM:"):
                    self._peak_bytes = max(self._peak_bytes, int(line.split()[1]) * 1024)
                elif line.startswith("RssAnon:"):
                    self.own_bytes = max(self.own_bytes, int(line.split()[1]) * 1024)

    def finish(self) -> int:
        self._over.set()
        self.join()
        return self._peak_bytes
