"""The living processes of browsers, and of the drivers that start them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class _Process(NamedTuple):
    parent: int
    line: bytes


def list_browsers(ancestor: int | None = None) -> set[int]:
    """The processes of browsers; where ``ancestor`` is given, of those that it started."""
    return _find(b"searchcrawl-browser-", b"chromium", ancestor)


def list_drivers(ancestor: int | None = None) -> set[int]:
    """The processes that drive browsers; where ``ancestor`` is given, of those that it started."""
    return _find(b"playwright", b"run-driver", ancestor)


def list_network_services(ancestor: int) -> set[int]:
    """The processes in which the browsers that ``ancestor`` started send and receive."""
    return _find(b"--utility-sub-type=network", b"chromium", ancestor)


def _find(word: bytes, other: bytes, ancestor: int | None) -> set[int]:
    processes = dict(_read())
    return {
        pid
        for pid, process in processes.items()
        if word in process.line and other in process.line and (ancestor is None or _descends(pid, ancestor, processes))
    }


def _read() -> list[tuple[int, _Process]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                status = (entry / "status").read_text(encoding="utf-8")
            except OSError:
                continue
            if "State:\tZ" not in status:
                found.append((int(entry.name), _Process(int(status.partition("PPid:")[2].split()[0]), line)))
    return found


def _descends(pid: int, ancestor: int, processes: dict[int, _Process]) -> bool:
    while pid in processes:
        if pid == ancestor:
            return True
        pid = processes[pid].parent
    return False
