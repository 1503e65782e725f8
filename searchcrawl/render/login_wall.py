"""The wall of a login in the browser: what it may request, and where it may send what (C10, L7, X-N7)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from searchcrawl import urls
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, resolve
from searchcrawl.render.budget import PageBudget
from searchcrawl.render.crawl_wall import NO_URL, CrawlWall, choose_headers, send
from searchcrawl.render.resource_cache import Key, ResourceCache, build_key

#: The kind of these requests: their cookies are those of the browser.
BROWSER_LOGIN: Final = "browser_login"
_MAX_BYTES: Final = 16 << 20
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
_NAME_IT: Final = "render.allow_hosts may name its host"


class LoginWall:
    """Asks the rules of one source, for one login. For the event loop.

    A login goes to ``origins`` (those of ``login.url`` and of the start URLs) and to the hosts of ``render.allow_hosts``, and
    shows pages and sends forms of these only; there no rule of the boundary and no robots.txt holds, as for a login by a form.
    For scripts and styles of all other hosts ``wall`` decides as about a page until something was typed: then a script has it,
    and none of them is asked for more than was asked for before. After a page of https there is no http any more.
    """

    def __init__(self, wall: CrawlWall, side_requests: SideRequests, *, origins: Collection[str]) -> None:
        self._wall = wall
        self._side_requests = side_requests
        self._origins = frozenset(origins)
        self._has_typed = False
        self._of_others = ResourceCache()
        #: whether a page of the login came over https: then its cookies go there only
        self.is_https = False

    def note_typing(self) -> None:
        """Notes that a value is typed next."""
        self._has_typed = True

    def is_own(self, url: str) -> bool:
        """Whether a login may send there what it likes; ``url`` is an identity."""
        return urls.origin_of(url) in self._origins or self._wall.is_named(url)

    def has_host(self, domain: str) -> bool:
        """Whether an origin of the login is of a host that has the cookies of ``domain``."""
        name = domain.removeprefix(".")
        hosts = [urls.parse(f"{origin}/").host for origin in self._origins]
        return any(host == name or (domain != name and host.endswith(f".{name}")) for host in hosts)

    def check(self, request: BrowserRequest) -> str | None:
        """The rule that forbids a request; None if none does."""
        known = resolve(request.url)
        if known is None:
            return NO_URL
        method = request.fields["access-control-request-method"] if request.is_preflight else request.method
        if method not in _METHODS:
            return f"method {method[:20]}"
        if self.is_https and known.startswith("http:"):
            return "http after https"
        if self.is_own(known):
            return None
        is_new = self._has_typed and self._of_others.find(_build_key(known), request.kind) is None
        # Whoever shows the page gets what is typed into it.
        if is_new or method == "POST" or request.is_navigation:
            return f"{urls.origin_of(known)} is none of the login: {_NAME_IT}"
        return self._wall.find_resource_refusal(known, request.kind)

    async def fetch(self, request: BrowserRequest, budget: PageBudget) -> DecodedAnswer:
        """The answer to a request, also a redirect, which the browser follows; raises Refused and FetchFailed."""
        url = urls.resolve(request.url)
        is_kept = request.method == "GET" and not self.is_own(url)
        kept = self._of_others.find(_build_key(url), request.kind) if is_kept else None
        if kept is not None:
            return kept

        async def check(target: str) -> None:
            if not self.is_own(target):
                await self._wall.check_robots(target)

        cookies = request.fields.get("cookie", "")
        headers = [*choose_headers(request), *([("cookie", cookies)] if cookies else [])]
        answer = await send(
            self._side_requests,
            url,
            request,
            headers,
            budget,
            kind=BROWSER_LOGIN,
            max_bytes=_MAX_BYTES,
            anonymous=False,
            check=check,
            is_public_only=self._is_public_only,
        )
        if is_kept:
            self._of_others.keep(_build_key(url), request.kind, answer)
        elif request.is_navigation and url.startswith("https:"):
            self.is_https = True
        return answer

    def _is_public_only(self, url: str) -> bool:
        """Whether ``url`` is reached at a public address only: what the source does not name is, as for a page."""
        return not self.is_own(url) and self._wall.is_public_only(url)


def _build_key(url: str) -> Key:
    """One login asks once for what hosts of others have, whatever it says with it."""
    return build_key("", url, (), has_credentials=False)
