"""Has the members of a run ask each host once for a path that it does not have (L9)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from searchcrawl.soft404.probes import ProbeResult

_MOST: Final = 10_000


class SharedProbes:
    """What the members have found out, and which of them is asking a host; for the event loop of the run."""

    def __init__(self) -> None:
        #: by last use
        self._found: OrderedDict[str, ProbeResult] = OrderedDict()
        self._asking: dict[str, tuple[object, asyncio.Event]] = {}

    async def begin(self, member: object, origin: str, *, again: bool) -> ProbeResult | None:
        """What is known of a host; None: ``member`` is to ask it. Waits while another one does."""
        if again and origin not in self._asking:
            self._found.pop(origin, None)
        while origin in self._asking:
            await self._asking[origin][1].wait()
        if (found := self._found.get(origin)) is not None:
            self._found.move_to_end(origin)
            return found
        self._asking[origin] = member, asyncio.Event()
        return None

    def end(self, member: object, origin: str, result: ProbeResult | None) -> None:
        """Notes what came of a probe; without a ``result`` the next one who waits asks."""
        if result is not None:
            self._found[origin] = result
            if len(self._found) > _MOST:
                self._found.popitem(last=False)
        asking = self._asking.get(origin)
        if asking is not None and asking[0] is member:
            del self._asking[origin]
            asking[1].set()

    def drop(self, member: object) -> None:
        """Notes that a member has ended: what it was asking is asked by others."""
        for origin in [origin for origin, (owner, _) in self._asking.items() if owner is member]:
            self.end(member, origin, None)
