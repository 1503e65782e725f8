"""The cap on hosts that are requested at once (``fetch.sites``, C3)."""

from __future__ import annotations

from typing import Final

_IN_USE: Final = float("inf")


class HostCap:
    """Lets at most ``most`` hosts (0: any number) be in use at once.

    A host is in use while requests to it are under way and, after the last one, until its delay is over.
    So no more than ``most`` requests go out in the time of one delay, however many hosts there are. Times are
    monotonic seconds; not thread-safe: HostRegistry locks.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._until: dict[str, float] = {}

    def acquire(self, name: str, now: float) -> bool:
        """Takes the host into use; False where ``most`` others are in use."""
        if not self._most:
            return True
        if name not in self._until and not self.count_free(now):
            return False
        self._until[name] = _IN_USE
        return True

    def release(self, name: str, until: float) -> None:
        """The last request to the host has ended; it stays in use until ``until``."""
        if name in self._until:
            self._until[name] = until

    def count_free(self, now: float) -> int:
        """How many more hosts may be used; only if there is a cap."""
        if len(self._until) >= self._most:
            self._until = {name: until for name, until in self._until.items() if until > now}
        return self._most - len(self._until)

    def next_free(self) -> float | None:
        """When the delay of a host in use ends; None if requests to all of them are under way."""
        moment = min(self._until.values(), default=_IN_USE)
        return None if moment == _IN_USE else moment
