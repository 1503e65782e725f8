"""The wall of a login in the browser: what it may request, and where it may send what (C10, L7, X-N7)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import Form, SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.render.crawl_wall import CrawlWall, read_answer
from searchcrawl.render.resource_cache import ResourceCache
from searchcrawl.render.wall import Answer, FetchFailed, Refused, resolve

#: The kind of these requests: their cookies are those of the browser.
BROWSER_LOGIN: Final = "browser_login"
_MAX_BYTES: Final = 16 << 20
_KEEP_METHOD: Final = frozenset({307, 308})
_METHODS: Final = frozenset({"GET", "POST"})
_NAME_IT: Final = "render.allow_hosts may name its host"
_NO_URL: Final = "not an http or https URL"


class LoginWall:
    """Asks the rules of one source, for one login. For the event loop.

    A login goes to ``origins`` (those of ``login.url`` and of the start URLs) and to the hosts of ``render.allow_hosts``, and
    sends forms there only; there no rule of the boundary and no robots.txt holds, as for a login by a form. For all other
    hosts ``wall`` decides as about a page until something was typed: then a script has it, and none of them is asked for
    more than was asked for before. After a page of https there is no http any more.
    """

    def __init__(self, wall: CrawlWall, side_requests: SideRequests, *, origins: Collection[str]) -> None:
        self._wall = wall
        self._side_requests = side_requests
        self._origins = frozenset(origins)
        self._page_policy = SidePolicy(kind=BROWSER_LOGIN, max_bytes=_MAX_BYTES + 1, followed=frozenset())
        self._form_policy = SidePolicy(kind=BROWSER_LOGIN, max_bytes=_MAX_BYTES + 1, followed=_KEEP_METHOD)
        self._resource_policy = SidePolicy(kind=BROWSER_LOGIN, max_bytes=_MAX_BYTES + 1)
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

    def check(self, url: str, kind: str, method: str, *, is_frame: bool) -> str | None:
        """The rule that forbids a request; None if none does."""
        known = resolve(url)
        if known is None:
            return _NO_URL
        if method not in _METHODS:
            return f"method {method[:20]}"
        if self.is_https and known.startswith("http:"):
            return "http after https"
        if self.is_own(known):
            return None
        if self._has_typed and self._of_others.find(known, kind, {}) is None:
            return f"{urls.origin_of(known)} is none of the login: {_NAME_IT}"
        if method != "GET" or is_frame:
            return f"{urls.origin_of(known)} is none of the login: {_NAME_IT}"
        if kind != "document":
            return self._wall.check_resource(url, kind)
        refusal = self._wall.check_navigation(url)
        return None if refusal is None else f"{refusal}: {_NAME_IT}"

    async def fetch(self, url: str, kind: str, headers: Mapping[str, str], *, body: bytes | None = None) -> Answer:
        """The answer to a GET, or to a POST of ``body``; redirects of a document are answers, those of all else followed.

        Raises Refused and FetchFailed.
        """
        kept = None if body is not None or self.is_own(url) else self._of_others.find(url, kind, {})
        if kept is not None:
            return kept
        policy = self._choose_policy(kind, body)
        found = await self._send(url, kind, headers, policy, body)
        try:
            answer = await asyncio.to_thread(read_answer, found, policy.max_bytes)
        except BrokenCoding as error:
            raise FetchFailed(str(error), code=Code.READ_ERROR) from error
        if len(answer.body) >= policy.max_bytes:
            raise FetchFailed(f"more than {policy.max_bytes - 1} bytes", code=Code.TOO_LARGE)
        if not self.is_own(url):
            self._of_others.keep(url, kind, {}, answer)
        elif kind == "document" and url.startswith("https:"):
            self.is_https = True
        return answer

    async def _send(
        self, url: str, kind: str, headers: Mapping[str, str], policy: SidePolicy, body: bytes | None
    ) -> SideAnswer:
        async def check(target: str) -> None:
            refusal = self.check(target, kind, "GET" if body is None else "POST", is_frame=False)
            if refusal is not None:
                raise Refused(refusal)
            if not self.is_own(target):
                await self._wall.check_robots(target)

        form = None
        if body is not None:
            form = Form(body, headers.get("referer", url), headers.get("content-type", "text/plain"))
        try:
            return await self._side_requests.fetch(
                url, policy, form=form, headers=headers, check=check, is_public_only=self._is_public_only
            )
        except SideRequestFailed as error:
            raise FetchFailed(str(error), code=error.code) from error

    def _is_public_only(self, url: str) -> bool:
        """Whether ``url`` is reached at a public address only: what the source does not name is, as for a page."""
        return not self.is_own(url) and self._wall.is_public_only(url)

    def _choose_policy(self, kind: str, body: bytes | None) -> SidePolicy:
        if kind != "document":
            return self._resource_policy
        return self._page_policy if body is None else self._form_policy
