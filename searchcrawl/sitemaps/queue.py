"""Which sitemaps of a run are still to be read: each once, within limits, indexes before what they name."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from searchcrawl import urls
from searchcrawl.rules.boundary import Boundary

logger = logging.getLogger(__name__)

#: The most sitemaps of a run, of all origins together.
MAX_SITEMAPS: Final = 50_000
#: An index may name indexes; the protocol knows one level.
MAX_LEVEL: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSitemap:
    """A sitemap to be read. ``level`` counts the indexes above it.

    If it is ``in_robots_txt``, that of its own origin, this is not asked whether it may be requested. ``is_guess`` marks a
    /sitemap.xml that nobody names. Its lastmods count for URLs of ``origins``, whose robots.txt leads to it, or whose
    guess does; None: for all URLs, as when the source file names it. ``attempt`` counts the failed tries.
    """

    url: str
    level: int = 0
    in_robots_txt: bool = False
    is_guess: bool = False
    origins: frozenset[str] | None = None
    attempt: int = 0

    @property
    def is_own(self) -> bool:
        """Whether its own origin, or the source file, leads to it: then it speaks for its own URLs."""
        return self.origins is None or urls.origin_of(self.url) in self.origins


class SitemapQueue:
    """Remembers all sitemaps by key, so that cycles end and nothing is read twice."""

    def __init__(self, boundary: Boundary, *, max_sitemaps: int = MAX_SITEMAPS, max_level: int = MAX_LEVEL) -> None:
        self._boundary = boundary
        self._max_sitemaps = max_sitemaps
        self._max_level = max_level
        self._keys: set[int] = set()
        self._full = False

    def accept(self, wanted: WantedSitemap) -> bool:
        """Whether a sitemap is to be read; logs why not, unless it was accepted before."""
        key = urls.key(wanted.url)
        if key in self._keys:
            return False
        if len(self._keys) >= self._max_sitemaps:
            if not self._full:
                self._full = True
                logger.warning("more than %d sitemaps: the rest is not read", self._max_sitemaps)
            return False
        self._keys.add(key)
        if wanted.level > self._max_level:
            logger.warning("sitemap %s is not read: below more than %d indexes", wanted.url, self._max_level)
            return False
        decision = self._boundary.decide_sitemap(wanted.url)
        if not decision.allowed:
            logger.warning("sitemap %s is outside the boundary (%s: %s)", wanted.url, decision.key, decision.rule)
        return decision.allowed


def build_child(index: WantedSitemap, url: str) -> WantedSitemap:
    """A sitemap that an index names; it speaks for the same origins: not for its own, if that names neither of them.

    See "Sitemaps & Cross Submits" in sitemaps.org, protocol.html.
    """
    same_origin = urls.origin_of(index.url) == urls.origin_of(url)
    return WantedSitemap(
        url=url, level=index.level + 1, in_robots_txt=index.in_robots_txt and same_origin, origins=index.origins
    )
