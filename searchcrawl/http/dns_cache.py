"""What DNS said of hosts, for a while: one lookup for each host as long as its answer is fresh (C12, X-N2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchcrawl import clock

#: An answer is used no longer than this, whatever its own time to live, which the system's resolver does not tell.
DNS_SECONDS: Final = 60.0


class DnsCache:
    """Addresses by host, for ``DNS_SECONDS``, of the last ``most_hosts`` that were asked for.

    They are as DNS gave them: whether one may be reached is decided anew with each connection.
    """

    def __init__(self, *, most_hosts: int) -> None:
        self._most_hosts = most_hosts
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def find(self, host: str) -> tuple[str, ...] | None:
        """The addresses of ``host``; None where DNS is to be asked."""
        known = self._known.get(host)
        return known[1] if known is not None and clock.monotonic() < known[0] else None

    def keep(self, host: str, addresses: Sequence[str]) -> None:
        """Remembers an answer; an empty one is asked for again."""
        self._known.pop(host, None)
        if not addresses or self._most_hosts <= 0:
            return
        if len(self._known) >= self._most_hosts:
            del self._known[next(iter(self._known))]
        self._known[host] = (clock.monotonic() + DNS_SECONDS, tuple(addresses))
