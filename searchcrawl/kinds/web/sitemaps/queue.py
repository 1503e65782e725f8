"""Which sitemaps of a run are still to be read: each once, within limits, indexes before what they name."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from searchcrawl import urls
from searchcrawl.rules.boundary import Boundary

logger = logging.getLogger(__name__)

#: The most sitemaps of a run, of all origins together.
MAX_SITEMAPS: Final = 100_000
#: The most to which one origin leads: as many as one index may name.
MAX_OF_ORIGIN: Final = 50_000
#: So many of each origin are read, however many others lead to.
SURE_OF_ORIGIN: Final = 100
#: An index may name indexes; the protocol knows one level.
MAX_LEVEL: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSitemap:
    """A sitemap to be read. ``level`` counts the indexes above it.

    If it is ``in_robots_txt``, that of its own origin, this is not asked whether it may be requested. ``is_guess`` marks a
    /sitemap.xml that nobody names. ``is_feed``: it is a feed, and only pages name it. ``is_root``: its own robots.txt or the source file names it. Its lastmods count for URLs of ``origins``, whose robots.txt leads to it, or whose
    guess does; None: for all URLs, as when the source file names it. ``named_by`` is the first of them, empty where it is
    the source file.
    """

    url: str
    level: int = 0
    in_robots_txt: bool = False
    is_guess: bool = False
    is_root: bool = False
    is_feed: bool = False
    origins: frozenset[str] | None = None
    named_by: str = ""

    @property
    def is_own(self) -> bool:
        """Whether its own origin, or the source file, leads to it: then it speaks for its own URLs."""
        return self.speaks_for(self.url)

    def speaks_for(self, url: str) -> bool:
        """Whether it may say something of the origin of ``url``."""
        return self.origins is None or urls.origin_of(url) in self.origins


class _Stage(Enum):
    """How far a sitemap is."""

    #: its turn has not come
    WAITING = "waiting"
    #: it is requested or read
    BEGUN = "begun"
    #: it was read, or could not be
    ENDED = "ended"
    #: the boundary refuses it
    REFUSED = "refused"


@dataclass(slots=True)
class _Known:
    """A sitemap with all that those who named it grant; ``again``: its own origin named it while it was read."""

    wanted: WantedSitemap
    stage: _Stage = _Stage.WAITING
    again: bool = False


class SitemapQueue:
    """Remembers all sitemaps by key, so that cycles end and nothing is read twice.

    One that foreign origins named before its own does is read a second time, with the rights that this gives.
    """

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._known: dict[int, _Known] = {}
        self._count_of: Counter[str] = Counter()
        self._full: set[str] = set()
        self._too_deep: set[int] = set()

    def accept(self, wanted: WantedSitemap) -> bool:
        """Whether a sitemap is to be read now; logs why not, unless it was named before."""
        key = urls.key(wanted.url)
        known = self._known.get(key)
        if known is not None:
            return _grant(known, wanted)
        # One that is named too deep here may be named by its own host.
        if self._is_too_deep(wanted, key) or not self._has_room(wanted.named_by):
            return False
        decision = self._boundary.decide_sitemap(wanted.url)
        self._known[key] = _Known(wanted, _Stage.WAITING if decision.allowed else _Stage.REFUSED)
        self._count_of[wanted.named_by] += 1
        if not decision.allowed:
            logger.warning("sitemap %s is outside the boundary (%s: %s)", wanted.url, decision.key, decision.rule)
        return decision.allowed

    def find(self, url: str) -> WantedSitemap:
        """An accepted sitemap with all rights that it has by now."""
        return self._known[urls.key(url)].wanted

    def begin(self, url: str) -> WantedSitemap:
        """The same, as it is read: what its own origin grants later has it read again."""
        known = self._known[urls.key(url)]
        known.stage, known.again = _Stage.BEGUN, False
        return known.wanted

    def end(self, url: str) -> bool:
        """Whether a sitemap that was read to its end is to be read again."""
        known = self._known[urls.key(url)]
        known.stage = _Stage.WAITING if known.again else _Stage.ENDED
        return known.again

    def _is_too_deep(self, wanted: WantedSitemap, key: int) -> bool:
        if wanted.level <= MAX_LEVEL:
            return False
        if key not in self._too_deep and len(self._too_deep) < MAX_SITEMAPS:
            self._too_deep.add(key)
            logger.warning("sitemap %s is not read: below more than %d indexes", wanted.url, MAX_LEVEL)
        return True

    def _has_room(self, origin: str) -> bool:
        count = self._count_of[origin]
        # What others name takes no origin the place for its first ones.
        if count < SURE_OF_ORIGIN or (count < MAX_OF_ORIGIN and len(self._known) < MAX_SITEMAPS):
            return True
        if origin not in self._full:
            self._full.add(origin)
            logger.warning(
                "more than %d sitemaps that %s leads to: the rest is not read", count, origin or "the source"
            )
        return False


def _grant(known: _Known, wanted: WantedSitemap) -> bool:
    """Adds what a further naming grants; whether the sitemap, which was read with less, is to be read again."""
    before = known.wanted
    known.wanted = _join(before, wanted)
    if before.is_own or not wanted.is_own:
        return False
    if known.stage is _Stage.ENDED:
        known.stage = _Stage.WAITING
        return True
    known.again = known.stage is _Stage.BEGUN
    return False


def _join(one: WantedSitemap, other: WantedSitemap) -> WantedSitemap:
    """A sitemap that is named twice; its own origin answers for what it leads to."""
    return replace(
        one,
        level=min(one.level, other.level),
        in_robots_txt=one.in_robots_txt or other.in_robots_txt,
        is_guess=one.is_guess or other.is_guess,
        is_root=one.is_root or other.is_root,
        is_feed=one.is_feed and other.is_feed,
        origins=None if one.origins is None or other.origins is None else one.origins | other.origins,
        named_by=one.named_by if one.is_own or not other.is_own else other.named_by,
    )


def build_child(index: WantedSitemap, url: str) -> WantedSitemap:
    """A sitemap that an index names; it speaks for the same origins: not for its own, if that names neither of them.

    See "Sitemaps & Cross Submits" in sitemaps.org, protocol.html.
    """
    same_origin = urls.origin_of(index.url) == urls.origin_of(url)
    return WantedSitemap(
        url=url,
        level=index.level + 1,
        in_robots_txt=index.in_robots_txt and same_origin,
        origins=index.origins,
        named_by=index.named_by,
    )
