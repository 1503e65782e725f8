"""The wall of a crawl: the browser of a source keeps to its boundary, to robots.txt and to the turns of hosts (C2, C5, L7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchcrawl import urls
from searchcrawl.http.side_requests import SideRequestFailed, SideRequests
from searchcrawl.render.credentials import Credentials
from searchcrawl.render.page_rules import KEY, PageRules
from searchcrawl.render.resource_cache import ResourceCache
from searchcrawl.render.wall import Refused, resolve
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules

#: What a page may load of any public host where ``render.allow_hosts`` names none: without these nothing is built.
_FROM_ANYWHERE: Final = frozenset({"script", "stylesheet", "unknown"})
#: The limit on a body where ``fetch.max_bytes`` names none.
_MAX_BYTES: Final = 256 << 20


class CrawlWall:
    """The rules of one source about the pages of its browser. For the event loop.

    A page may go where a link of it would be followed, and load what is inside the boundary or what ``allow_hosts`` names;
    exclude rules and robots.txt hold for all of it. ``robots`` is None where robots.txt is not obeyed. With ``posts`` scripts
    may send data to the origin of their page and to ``allow_hosts``.
    """

    def __init__(
        self,
        boundary: Boundary,
        *,
        allow_hosts: Sequence[str],
        targets: TargetRules,
        side_requests: SideRequests,
        robots: RobotsFiles | None,
        max_bytes: int,
        credentials: Credentials | None = None,
        posts: bool = False,
        file: str = "",
    ) -> None:
        self._boundary = boundary
        self._allowed = Boundary(include_hosts=allow_hosts, file=file) if allow_hosts else None
        self._targets = targets
        self._robots = robots
        self.side_requests = side_requests
        self.credentials = credentials or Credentials()
        self.posts = posts
        self.max_bytes = max_bytes or _MAX_BYTES
        self.cache = ResourceCache()

    def admit(self, url: str) -> PageRules:
        """The rules for one page, which the crawl has decided to visit."""
        return PageRules(self, resolve(url, routes=True) or url)

    def find_refusal(self, url: str) -> str | None:
        """The rule that forbids a page to go to ``url``, an identity; None if none does."""
        decision = self._boundary.decide(url)
        if not decision.allowed:
            return decision.text
        exclusions = self._targets.list_exclusions(url)
        return exclusions[0].text if exclusions else self._ask_robots(url)

    def find_resource_refusal(self, url: str, kind: str) -> str | None:
        """The rule that forbids a page to load ``url``, an identity; None if none does."""
        exclusions = self._targets.list_exclusions(url)
        if exclusions:
            return exclusions[0].text
        if self.is_inside(url) or self._is_allowed(url, kind):
            return self._ask_robots(url)
        return f"{KEY}: {urls.parse(url).host} is outside the boundary"

    async def check_robots(self, url: str) -> None:
        """Raises Refused for what the robots.txt of ``url`` forbids; reads it before the first request to an origin."""
        if self._robots is None:
            return
        try:
            decision = (await self._robots.get_rules(urls.origin_of(url))).decide(url)
        except SideRequestFailed as error:
            raise Refused(f"robots.txt of {urls.origin_of(url)}: {error}", code=error.code) from error
        if not decision.allowed:
            raise Refused(f"robots.txt: {decision.rule}")

    def is_public_only(self, url: str) -> bool:
        """Whether ``url`` is reached at a public address only: what neither the boundary nor ``allow_hosts`` names is."""
        if self.is_named(url):
            return False
        return not self.is_inside(url) or self._targets.is_public_only(url)

    def is_inside(self, url: str) -> bool:
        """Whether ``url``, an identity, is inside the boundary, or of an origin that is."""
        return self._boundary.includes_origin(url) or self._boundary.decide(url).allowed

    def is_named(self, url: str) -> bool:
        """Whether ``render.allow_hosts`` names the host of ``url``, an identity, and no rule excludes it."""
        return (
            self._allowed is not None and self._allowed.decide(url).allowed and not self._targets.list_exclusions(url)
        )

    def may_be_data(self, url: str) -> bool:
        """Whether a page may load data from ``url``, and not only scripts and styles."""
        return self.is_inside(url) or (self._allowed is not None and self._allowed.decide(url).allowed)

    def _is_allowed(self, url: str, kind: str) -> bool:
        if self._allowed is None:
            return kind in _FROM_ANYWHERE
        return self._allowed.decide(url).allowed

    def _ask_robots(self, url: str) -> str | None:
        """The line of a robots.txt that is known by now."""
        copy = None if self._robots is None else self._robots.find(urls.origin_of(url))
        if copy is None or copy.file is None:
            return None
        decision = copy.file.decide(url)
        return None if decision.allowed else f"robots.txt: {decision.rule}"
