"""The wall of a crawl: the browser of a source keeps to its boundary, to robots.txt and to the turns of hosts (C2, C5, L7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.render.resource_cache import ResourceCache
from searchcrawl.render.wall import Answer, FetchFailed, Refused
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.targets import TargetRules

#: What a page may load of any public host where ``render.allow_hosts`` names none: without these nothing is built.
_FROM_ANYWHERE: Final = frozenset({"script", "stylesheet"})
_KEY: Final = "render.allow_hosts"
#: The kind of the requests of pages.
OF_PAGE: Final = "render"
_NO_URL: Final = "not an http or https URL"
#: The limit on a body where ``fetch.max_bytes`` names none.
_MAX_BYTES: Final = 256 << 20


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
        side_requests: SideRequests,
        robots: RobotsFiles | None,
        max_bytes: int,
        file: str = "",
    ) -> None:
        self._boundary = boundary
        self._allowed = Boundary(include_hosts=allow_hosts, file=file) if allow_hosts else None
        self._targets = targets
        self._side_requests = side_requests
        self._robots = robots
        # One byte more tells a body that is too large from one that is as large as it may be.
        limit = (max_bytes or _MAX_BYTES) + 1
        self._page_policy = SidePolicy(kind=OF_PAGE, max_bytes=limit, followed=frozenset())
        self._resource_policy = SidePolicy(kind=OF_PAGE, max_bytes=limit)
        self._cache = ResourceCache()
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
            return _NO_URL
        if known in self._under_way:
            return None
        decision = self._boundary.decide(known)
        if not decision.allowed:
            return decision.text
        exclusions = self._targets.list_exclusions(known)
        return exclusions[0].text if exclusions else self._ask_robots(known)

    def check_resource(self, url: str, kind: str) -> str | None:
        """The rule that forbids a page to load ``url``, a resource of this kind; None if none does."""
        known = _resolve(url)
        if known is None:
            return _NO_URL
        exclusions = self._targets.list_exclusions(known)
        if exclusions:
            return exclusions[0].text
        if self._is_inside(known) or self._is_allowed(known, kind):
            return self._ask_robots(known)
        return f"{_KEY}: {urls.parse(known).host} is outside the boundary"

    async def fetch(self, url: str, kind: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a GET, or the one that is kept of it.

        It is sent as robots files and sitemaps are, so turns, addresses and logins are theirs.
        """
        known = _resolve(url)
        if known is None:
            raise Refused(_NO_URL)
        kept = self._cache.find(known, kind, headers)
        if kept is None:
            kept = await self._request(known, kind, headers)
            self._cache.keep(known, kind, headers, kept)
        return kept

    async def _request(self, url: str, kind: str, headers: Mapping[str, str]) -> Answer:
        async def check(target: str) -> None:
            is_page = kind == "document"
            refusal = self.check_navigation(target) if is_page else self.check_resource(target, kind)
            if refusal is not None:
                raise Refused(refusal)
            await self.check_robots(target)

        policy = self._page_policy if kind == "document" else self._resource_policy
        try:
            found = await self._side_requests.fetch(
                url, policy, headers=headers, check=check, is_public_only=self.is_public_only
            )
            answer = await asyncio.to_thread(read_answer, found, policy.max_bytes)
        except SideRequestFailed as error:
            raise FetchFailed(str(error), code=error.code) from error
        except BrokenCoding as error:
            raise FetchFailed(str(error), code=Code.READ_ERROR) from error
        if len(answer.body) >= policy.max_bytes:
            raise FetchFailed(f"more than {policy.max_bytes - 1} bytes", code=Code.TOO_LARGE)
        return answer

    async def check_robots(self, url: str) -> None:
        """Raises Refused for what the robots.txt of ``url`` forbids; reads it before the first request to an origin."""
        if self._robots is None or url in self._under_way:
            return
        try:
            decision = (await self._robots.get_rules(urls.origin_of(url))).decide(url)
        except SideRequestFailed as error:
            raise Refused(f"robots.txt of {urls.origin_of(url)}: {error}", code=error.code) from error
        if not decision.allowed:
            raise Refused(f"robots.txt: {decision.rule}")

    def is_public_only(self, url: str) -> bool:
        """Whether ``url`` is reached at a public address only: what lies outside the boundary is."""
        if url not in self._under_way and not self._is_inside(url):
            return True
        return self._targets.is_public_only(url)

    def _is_inside(self, url: str) -> bool:
        return self._boundary.includes_origin(url) or self._boundary.decide(url).allowed

    def is_named(self, url: str) -> bool:
        """Whether ``render.allow_hosts`` names the host of ``url``, an identity, and no rule excludes it."""
        return (
            self._allowed is not None and self._allowed.decide(url).allowed and not self._targets.list_exclusions(url)
        )

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


def read_answer(answer: SideAnswer, max_bytes: int) -> Answer:
    """An answer as a browser gets it, at most ``max_bytes`` of its body; raises BrokenCoding."""
    names = ((name.decode("latin-1"), values) for name, values in dict.items(answer.headers))
    pairs = tuple((name.lower(), value.decode("latin-1")) for name, values in names for value in values)
    body = answer.decoded_body(max_bytes)
    return Answer(answer.url, answer.status, pairs, body, lost_login=answer.lost_login)
