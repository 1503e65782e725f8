"""What DNS said of names, for as long as that holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchcrawl import clock
from searchcrawl.store.name_table import DnsAnswer

#: So long an answer holds once a server has answered at its address. Its time to live is unknown (see name_table), and a server
#: that answers is the right one. Where it moves without a failed connection, that is noticed after this time.
CONFIRMED_SECONDS: Final = 600.0
#: So long an answer that there is no address waits for its first use, where nobody waited for it.
_UNUSED_SECONDS: Final = 10.0


@dataclass(slots=True)
class _Entry:
    answer: DnsAnswer
    stored_at: float
    until: float
    #: an answer that there is no address holds from its first use: the visit that it is for must not ask once more
    is_unused: bool
    #: whether a server has answered at its address
    is_confirmed: bool = False


class NameCache:
    """What was found out about the last ``most_names`` names. Times are monotonic seconds."""

    def __init__(self, *, most_names: int, confirmed_seconds: float = CONFIRMED_SECONDS) -> None:
        self._most_names = most_names
        self._confirmed_seconds = confirmed_seconds
        self._known: dict[str, _Entry] = {}

    def find(self, name: str) -> DnsAnswer | None:
        """What is known of a name; None where it is to be looked up."""
        entry, now = self._known.get(name), clock.monotonic()
        if entry is None or now >= entry.until:
            return None
        if entry.is_unused:
            entry.is_unused = False
            entry.until = now + entry.answer.kept_ms / 1000
        return entry.answer

    def holds(self, name: str, *, seconds: float = 0.0) -> bool:
        """Whether what is known of a name holds, its addresses for so long; this is no use of it."""
        entry = self._known.get(name)
        if entry is None:
            return False
        return clock.monotonic() + (0.0 if entry.answer.error is not None else seconds) < entry.until

    def peek(self, name: str) -> DnsAnswer | None:
        """What was last known of a name, whether it holds or not; this is no use of it."""
        entry = self._known.get(name)
        return None if entry is None else entry.answer

    def store(self, name: str, answer: DnsAnswer, *, is_unused: bool = False) -> None:
        """Stores an answer; ``is_unused`` where nobody waited for it."""
        self._known.pop(name, None)
        if len(self._known) >= self._most_names:
            del self._known[next(iter(self._known))]
        now = clock.monotonic()
        is_unused = is_unused and answer.error is not None
        seconds = _UNUSED_SECONDS if is_unused else answer.kept_ms / 1000
        self._known[name] = _Entry(answer, now, now + seconds, is_unused)

    def confirm(self, name: str) -> bool:
        """Notes that a server answered at the address of a name; True the first time."""
        entry = self._known.get(name)
        if entry is None or entry.is_confirmed or entry.answer.error is not None:
            return False
        entry.is_confirmed = True
        entry.until = max(entry.until, entry.stored_at + self._confirmed_seconds)
        return True

    def forget(self, name: str, *, before: float) -> bool:
        """Has an answer that was known ``before`` looked up anew: no connection came of it. False where there is none."""
        entry = self._known.get(name)
        if entry is None or entry.answer.error is not None or entry.stored_at > before or not entry.until:
            return False
        entry.until = 0.0
        return True
