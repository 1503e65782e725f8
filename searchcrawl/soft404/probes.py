"""Which hosts were asked for a path that they do not have, and what came of it."""

from __future__ import annotations

from typing import NamedTuple

from searchcrawl.soft404.signature import Signature


class ProbeResult(NamedTuple):
    """What a host answers to any path (None: it says that there is none), and whether it did so before this run, too."""

    signature: Signature | None
    answers_any: bool = False


class Probes:
    """Has the processes of one run ask each host once. This one is for a single process, which knows what it asked."""

    async def begin(self, origin: str, *, again: bool) -> ProbeResult | None:
        """What another process has found out; None: this one is to ask, and calls ``end``.

        ``again``: what was found before does not count any more.
        """
        return None

    def end(self, origin: str, result: ProbeResult | None) -> None:
        """Notes what came of a probe; None: the host could not be asked."""
