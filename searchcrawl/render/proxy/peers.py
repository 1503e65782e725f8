"""Who has opened a connection on loopback: a page's port is for the browser of the crawl, and for no other user (L7)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: Linux lists the sockets of IPv4 there, each with its owner.
_SOCKETS: Final = Path("/proc/net/tcp")
_ESTABLISHED: Final = "01"


def find_owner(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """The user of the other end of a connection between two addresses of this machine; None where nothing says it.

    A socket that its owner has closed belongs to nobody, and Linux shows it as one of root.
    """
    wanted = f" {_write(peer)} {_write(own)} "
    try:
        for line in _SOCKETS.read_text(encoding="ascii").splitlines():
            if wanted in line:
                fields = line.split()
                is_owned = fields[3] == _ESTABLISHED and fields[9] != "0"
                return int(fields[7]) if is_owned else None
    except (OSError, ValueError, IndexError):
        return None
    return None


def _write(address: tuple[str, int]) -> str:
    """An address as Linux writes it there: the bytes of the host backwards, in hexadecimal."""
    host = bytes(reversed([int(part) for part in address[0].split(".")]))
    return f"{host.hex().upper()}:{address[1]:04X}"
