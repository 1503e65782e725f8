"""A cap on the hosts that are asked at once (C3)."""

from __future__ import annotations

from typing import Final

_IN_USE: Final = float("inf")


class SiteSlots:
    """At most ``most`` hosts have a slot, each while requests to it are under way and until its delay is over.

    So no more than ``most`` requests go out in the time of one delay, whatever the number of hosts. Times
    are monotonic seconds; not thread-safe.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._until: dict[str, float] = {}

    def take(self, name: str, now: float) -> bool:
        """Whether a host may be asked now: it has a slot, or gets one."""
        if name not in self._until and not self.free(now):
            return False
        self._until[name] = _IN_USE
        return True

    def release(self, name: str, until: float) -> None:
        """The last request to a host is over; it keeps its slot until ``until``."""
        if name in self._until:
            self._until[name] = until

    def free(self, now: float) -> int:
        """How many slots are free."""
        if len(self._until) >= self._most:
            self._until = {name: until for name, until in self._until.items() if until > now}
        return self._most - len(self._until)

    def next_free(self) -> float | None:
        """When a slot will be free by itself; None where none will before a request is over."""
        moment = min(self._until.values(), default=_IN_USE)
        return None if moment == _IN_USE else moment
