"""A network of its own, which has one public address and loopback: what may be reached in it, and what may not."""

from __future__ import annotations

import ctypes
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.hostile_server import HostileServer

#: Of a documentation page that everybody knows; here nobody but the test has it.
ADDRESS: Final = "93.184.215.14"
_HOLD: Final = 'ip link set lo up && ip address add "$0/32" dev lo && echo ready && read -r end'
_NEW_NETWORK: Final = 0x40000000


@dataclass(frozen=True)
class PublicAddress:
    """The network, which lives as long as the process ``holder``."""

    holder: int

    @property
    def inside(self) -> tuple[str, ...]:
        """What stands before a command that runs in it."""
        return ("nsenter", "-t", str(self.holder), "-n", "--")

    def build_server(self, *, tls: ssl.SSLContext | None = None) -> HostileServer:
        """A server on all addresses of it: the socket stays where it was opened, whoever accepts."""
        made: list[HostileServer] = []
        thread = threading.Thread(target=lambda: made.append(self._build(tls)))
        thread.start()
        thread.join()
        return made[0]

    def _build(self, tls: ssl.SSLContext | None) -> HostileServer:
        libc = ctypes.CDLL(None, use_errno=True)
        handle = os.open(Path("/proc", str(self.holder), "ns", "net"), os.O_RDONLY)
        try:
            # For this thread alone.
            if libc.setns(handle, _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)
        return HostileServer("0.0.0.0", tls=tls)


@contextmanager
def public_address() -> Iterator[PublicAddress]:
    """Makes such a network; see ``may_make_networks``."""
    command = ["unshare", "-n", "sh", "-c", _HOLD, ADDRESS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError("there is no network of its own")
        yield PublicAddress(holder.pid)
        assert holder.stdin is not None
        holder.stdin.close()


def may_make_networks() -> bool:
    """Whether this user of this machine may make networks."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
