"""Which process holds a lease, as a text that other processes compare with what they see of it."""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")


def describe_own() -> str:
    """This process: the name of its machine, then pairs of a word and a value."""
    return describe_process(os.getpid())


def describe_process(pid: int) -> str:
    """A process of this machine, in the same form."""
    facts = {**_find_own_place(), "process": str(pid), "started": _read_start(pid)}
    return " ".join([socket.gethostname(), *(f"{name} {value}" for name, value in facts.items() if value)])


def describe(holder: str) -> str:
    """A holder, for messages."""
    host, facts = _parse(holder)
    return f"process {facts['process']} on {host}"


def shares_boot(holder: str) -> bool:
    """Whether a holder runs on this machine as it was started last; in a container of its own perhaps."""
    own = _find_own_place()["boot"]
    return bool(own) and _parse(holder)[1].get("boot") == own


def has_ended(holder: str) -> bool:
    """Whether a holder ran on this machine and has ended for certain; another process may have its number now."""
    host, facts = _parse(holder)
    own = _find_own_place()
    if not own["boot"]:
        return False
    if facts.get("boot") != own["boot"]:
        # The machine was started again. Another machine may have the same name.
        return host == socket.gethostname() and facts.get("machine", own["machine"]) == own["machine"]
    # In another container the numbers of processes mean others.
    if facts.get("namespace", own["namespace"]) != own["namespace"]:
        return False
    return _is_gone(int(facts["process"]), facts.get("started", ""))


def find_pid(holder: str) -> int | None:
    """The number of a process that runs on this machine, where it has one here; None for one that has ended."""
    facts = _parse(holder)[1]
    own = _find_own_place()
    if not own["boot"] or any(facts.get(name) != own[name] for name in ("boot", "namespace")) or has_ended(holder):
        return None
    return int(facts["process"])


def _parse(holder: str) -> tuple[str, dict[str, str]]:
    host, *words = holder.split(" ")
    return host, dict(zip(words[::2], words[1::2], strict=False))


@cache
def _find_own_place() -> dict[str, str]:
    """The machine, its boot, and the namespace in which processes have their numbers; empty where it is not known."""
    machine = _read(Path("/etc/machine-id"))
    try:
        namespace = (_PROC / "self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        namespace = ""
    return {
        # It is to be kept secret.
        "machine": hashlib.sha256(machine.encode()).hexdigest()[:16] if machine else "",
        "boot": _read(_PROC / "sys/kernel/random/boot_id"),
        "namespace": namespace,
    }


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip().replace(" ", "_")
    except OSError:
        return ""


def _is_gone(pid: int, started: str) -> bool:
    found = _read_start(pid)
    if found is not None:
        return found != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        # It belongs to another user, and /proc does not show those of others.
        pass
    return False


def _read_start(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; empty where it has ended, None where it cannot be seen."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat[stat.rfind(")") + 2 :].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]
