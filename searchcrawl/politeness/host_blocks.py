"""The pauses of hosts that hold for all processes, as far as this process knows them (X-R10)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import BUSY
from searchcrawl.politeness.backoff import MAX_RETRY_PAUSE_SECONDS
from searchcrawl.politeness.host_state import HostState
from searchcrawl.store.hosts.host_table import HostBlock

logger = logging.getLogger(__name__)

_MOST_NAMED: Final = 100


class HostBlocks:
    """All pauses that are in force, or where they are very many those of the hosts in use; HostRegistry locks it.

    In the second case a host is asked about before its first request.
    """

    def __init__(self) -> None:
        #: their ends in monotonic seconds, and their codes
        self._by_name: dict[str, tuple[float, int]] = {}
        #: the hosts that were asked about; None: all pauses are known
        self._known: set[str] | None = None
        self._unknown: set[str] = set()
        self._warned = 0

    def has_any(self, name: str) -> bool:
        """Whether a host is known to have a pause."""
        return name in self._by_name

    def apply(self, host: HostState) -> None:
        """Has a host wait for the end of its pause; a long one blocks it for this run."""
        known = self._by_name.get(host.name)
        if known is None:
            return
        until, code = known
        now = clock.monotonic()
        seconds = until - now
        host.next_at = max(host.next_at, now + min(seconds, MAX_RETRY_PAUSE_SECONDS))
        if host.blocked_code is None and seconds > MAX_RETRY_PAUSE_SECONDS:
            host.blocked_code = code
            if code in BUSY:
                self.warn(host.name, code, f"it asked another run for a pause, which lasts {seconds:.0f} s more")

    def warn(self, name: str, code: int, why: str) -> None:
        """Says once for each host that its pages have to wait for another run; the first hosts are named."""
        self._warned += 1
        if self._warned <= _MOST_NAMED:
            logger.warning("%s gets no request for the rest of this run (%d): %s", name, code, why)
        elif self._warned == _MOST_NAMED + 1:
            logger.warning("more hosts that get no request for the rest of this run are not named")

    def is_known(self, name: str) -> bool:
        """Whether it is known if a host has a pause; if not, it is to be asked about."""
        if self._known is None or name in self._known:
            return True
        self._unknown.add(name)
        return False

    def take_unknown(self) -> list[str]:
        """Takes out the hosts that are to be asked about."""
        names, self._unknown = sorted(self._unknown), set()
        return names

    def set_all(self, blocks: Iterable[HostBlock]) -> list[str]:
        """Sets all pauses that are in force; returns the hosts that have one, or wait to be asked about."""
        self._by_name = _find_ends(blocks)
        self._known = None
        return [*self._by_name, *self.take_unknown()]

    def set_some(self, names: Iterable[str], blocks: Iterable[HostBlock], *, only: bool) -> None:
        """Sets the pauses of these hosts; ``only`` these are known from now on."""
        found = _find_ends(blocks)
        if only or self._known is None:
            self._by_name, self._known = found, set(names)
        else:
            self._by_name |= found
            self._known |= set(names)


def _find_ends(blocks: Iterable[HostBlock]) -> dict[str, tuple[float, int]]:
    """Where pauses end in monotonic seconds: the clock may be set before they are used."""
    offset = clock.monotonic() - clock.now_ms() / 1000
    return {block.name: (block.until_ms / 1000 + offset, block.code) for block in blocks}
