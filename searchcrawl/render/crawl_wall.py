"""The wall of a crawl: the browser of a source keeps to its boundary, to robots.txt and to the turns of hosts (C2, C5, L7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from searchcrawl import urls
from searchcrawl.exceptions import HostBlocked, InvalidUrl
from searchcrawl.http.address_guard import AddressGuard, PublicGuard
from searchcrawl.http.side_requests import SideRequestFailed
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.targets import TargetRules

#: What a page may load of any public host where ``render.allow_hosts`` names none: without these nothing is built.
_FROM_ANYWHERE: Final = frozenset({"script", "stylesheet"})
_KEY: Final = "render.allow_hosts"


class CrawlWall:
    """Asks the rules of one source. For the event loop.

    A page may go where a link of it would be followed, and load what is inside the boundary or what ``allow_hosts`` names;
    exclude rules and robots.txt hold for all of it. ``robots`` is None where robots.txt is not obeyed.
    """

    def __init__(
        self,
        boundary: Boundary,
        *,
        allow_hosts: Sequence[str],
        targets: TargetRules,
        rate_limiter: RateLimiter,
        robots: RobotsFiles | None,
        guard: AddressGuard,
        public_guard: PublicGuard,
        file: str = "",
    ) -> None:
        self._boundary = boundary
        self._allowed = Boundary(include_hosts=allow_hosts, file=file) if allow_hosts else None
        self._targets = targets
        self._rate_limiter = rate_limiter
        self._robots = robots
        self._guard = guard
        self._public_guard = public_guard
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def open_for(self, url: str) -> Iterator[None]:
        """While the page of ``url`` is rendered the browser may go there: a redirect may have led outside (C6)."""
        known = _resolve(url) or url
        self._under_way[known] += 1
        try:
            yield
        finally:
            self._under_way[known] -= 1
            if not self._under_way[known]:
                del self._under_way[known]

    def check_navigation(self, url: str) -> str | None:
        """The rule that forbids a page or a frame to go to ``url``; None if none does."""
        known = _resolve(url)
        if known is None:
            return "not an http or https URL"
        if known in self._under_way:
            return None
        decision = self._boundary.decide(known)
        return self._ask_robots(known) if decision.allowed else decision.text

    def check_resource(self, url: str, kind: str) -> str | None:
        """The rule that forbids a page to load ``url``, a resource of this kind; None if none does."""
        known = _resolve(url)
        if known is None:
            return "not an http or https URL"
        exclusions = self._boundary.list_exclusions(known)
        if exclusions:
            return exclusions[0].text
        if self._is_inside(known) or self._is_allowed(known, kind):
            return self._ask_robots(known)
        return f"{_KEY}: {urls.parse(known).host} is outside the boundary"

    async def take_turn(self, url: str) -> None:
        """Waits until the host of ``url`` may be sent one more request; reads its robots.txt before the first one.

        Raises PermissionError for what robots.txt forbids, which nobody knows until it is read, and for a host that asked for
        a long pause. A page under way holds its place
        among the requests of its host, as for its side requests.
        """
        known = _resolve(url)
        if known is None:
            raise PermissionError("not an http or https URL")
        origin = urls.origin_of(known)
        if self._robots is not None and known not in self._under_way:
            try:
                rules = await self._robots.get_rules(origin)
            except SideRequestFailed as error:
                raise PermissionError(f"robots.txt of {origin}: {error}") from error
            if not rules.decide(known).allowed:
                raise PermissionError(f"robots.txt: {rules.decide(known).rule}")
        try:
            await self._rate_limiter.wait_until_allowed(urls.host_and_port(known))
        except HostBlocked as error:
            raise PermissionError(str(error)) from error

    def choose_guard(self, url: str) -> AddressGuard:
        """The policy on the addresses of the host of ``url``: outside the boundary they are public ones."""
        known = _resolve(url)
        inside = known is not None and (known in self._under_way or self._is_inside(known))
        if known is not None and inside and not self._targets.is_public_only(known):
            return self._guard
        return self._public_guard

    def _is_inside(self, url: str) -> bool:
        return self._boundary.includes_origin(url) or self._boundary.decide(url).allowed

    def _is_allowed(self, url: str, kind: str) -> bool:
        if self._allowed is None:
            return kind in _FROM_ANYWHERE
        return self._allowed.decide(url).allowed

    def _ask_robots(self, url: str) -> str | None:
        """The line of a robots.txt that is known by now."""
        copy = None if self._robots is None else self._robots.find(urls.origin_of(url))
        if copy is None or copy.file is None or url in self._under_way:
            return None
        decision = copy.file.decide(url)
        return None if decision.allowed else f"robots.txt: {decision.rule}"


def _resolve(url: str) -> str | None:
    try:
        return urls.resolve(url)
    except InvalidUrl:
        return None
