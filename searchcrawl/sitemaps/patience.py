"""How long a run waits for sitemaps: no host keeps the pages of others, or the end of the run, waiting for days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchcrawl import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Known pages wait ``revisit_seconds`` for all sitemaps, ``alone_seconds`` where these are of one origin.

    The sitemaps of one origin are read for ``origin_seconds``, and those that are left by the next run.
    """

    revisit_seconds: float = 300.0
    alone_seconds: float = 3600.0
    origin_seconds: float = 7200.0


DEFAULTS: Final = Limits()


class ReadingTime:
    """When the time of each origin is over, from its first sitemap on."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._ends: dict[str, float] = {}
        self._told: set[str] = set()

    @property
    def waits_for_many(self) -> bool:
        """Whether sitemaps of several origins are read."""
        return len(self._ends) > 1

    def is_over(self, origin: str) -> bool:
        """Whether no more sitemaps of an origin are read; the first question begins its time."""
        now = clock.monotonic()
        return now >= self._ends.setdefault(origin, now + self.limits.origin_seconds)

    def is_news(self, origin: str) -> bool:
        """Whether this was not asked before of an origin."""
        if origin in self._told:
            return False
        self._told.add(origin)
        return True
