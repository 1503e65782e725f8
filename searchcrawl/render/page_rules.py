"""The rules for one page of the browser: what it may ask for, and with which credentials (C5, L7, L13, X-N7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from searchcrawl import urls
from searchcrawl.codes import REDIRECT_STATUSES
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.budget import PageBudget
from searchcrawl.render.credentials import Credentials
from searchcrawl.render.login_steps import BrowserCookie
from searchcrawl.render.resource_cache import SHARED_TYPES, ResourceCache, build_key
from searchcrawl.render.sending import choose_headers, send
from searchcrawl.render.wall import Answer, Refused, resolve

KEY: Final = "render.allow_hosts"
#: The kind of the requests of pages.
OF_PAGE: Final = "render"
#: What a browser posts without a script: pings of links, and reports.
_SENT_BY_BROWSER: Final = frozenset({"text/ping", "application/csp-report", "application/reports+json"})
NO_URL: Final = "not an http or https URL"


class SourceRules(Protocol):
    """What all pages of a source share; see CrawlWall."""

    side_requests: SideRequests
    credentials: Credentials
    posts: bool
    max_bytes: int
    cache: ResourceCache

    def find_refusal(self, url: str) -> str | None:
        """The rule that forbids a page to go to ``url``."""

    def find_resource_refusal(self, url: str, kind: str) -> str | None:
        """The rule that forbids a page to load ``url``."""

    async def check_robots(self, url: str) -> None:
        """Raises Refused for what a robots.txt forbids."""

    def is_public_only(self, url: str) -> bool:
        """Whether ``url`` is reached at a public address only."""

    def is_inside(self, url: str) -> bool:
        """Whether ``url`` is inside the boundary."""

    def is_named(self, url: str) -> bool:
        """Whether ``render.allow_hosts`` names its host."""

    def may_be_data(self, url: str) -> bool:
        """Whether a page may load data from it."""


class PageRules:
    """The rules for one page of the browser; ``url`` is its identity. For the event loop.

    A redirect may have led the crawl outside the boundary (C6). Such a page is rendered, and has neither credentials nor a
    private address.
    """

    def __init__(self, wall: SourceRules, url: str) -> None:
        self.url = url
        # A route in the fragment is not sent.
        self._sent_url = urls.without_route(url)
        self._wall = wall
        self._is_guest = not wall.is_inside(url)
        self._has_other_frames = False
        #: the origins whose answers have set a cookie, by ``name=value``: Chromium does not tell them
        self._set_by: dict[str, set[str]] = {}

    def list_cookies(self) -> Sequence[BrowserCookie]:
        """The cookies that the browser has before it opens the page."""
        return () if self._is_guest else self._wall.credentials.list_cookies(self.url)

    def keep_cookies(self, cookies: Sequence[BrowserCookie]) -> None:
        """Takes over what the page has changed of the cookies that it had, but for what another origin has set for its host."""
        if not self._is_guest:
            own = [cookie for cookie in cookies if self._is_own(cookie)]
            self._wall.credentials.keep_cookies(self.url, own)

    def _is_own(self, cookie: BrowserCookie) -> bool:
        set_by = self._set_by.get(f"{cookie.name}={cookie.value}")
        if set_by is not None:
            return urls.origin_of(self.url) in set_by
        # A script has set it, which may be that of a frame.
        return not self._has_other_frames

    def _note_cookies(self, url: str, answer: Answer) -> None:
        for name, value in answer.headers:
            if name.lower() == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                pair = f"{cookie.strip()}={content.strip()}"
                self._set_by.setdefault(pair, set()).add(urls.origin_of(url))

    def _choose_cookies(self, request: BrowserRequest, url: str) -> str:
        """The cookies that go with a request: to a port those that it has set, or that a page of this port has made."""
        credentials = self._wall.credentials
        header = "" if self._is_guest else credentials.choose_cookies(request)
        if not header:
            return ""
        known = credentials.list_of_port(url)
        of_page = urls.is_same_port(urls.parse(url).port, urls.parse(self.url).port)
        return "; ".join(
            pair for pair in header.split("; ") if pair in known or self._goes_to(pair, url, of_page=of_page)
        )

    def _goes_to(self, pair: str, url: str, *, of_page: bool) -> bool:
        set_by = self._set_by.get(pair)
        if set_by is None:
            return of_page
        port = urls.parse(url).port
        return any(urls.is_same_port(port, urls.parse(f"{origin}/").port) for origin in set_by)

    def check_navigation(self, url: str) -> str | None:
        """The rule that forbids the page or a frame to go to ``url``; None if none does."""
        known = resolve(url)
        if known is None:
            return NO_URL
        return None if known == self._sent_url else self._wall.find_refusal(known)

    def check(self, request: BrowserRequest) -> str | None:
        """The rule that forbids a request of the page, but for the page itself; None if none does."""
        known = resolve(request.url)
        if known is None:
            return NO_URL
        refusal = self._check_method(request, known)
        if refusal is not None:
            return refusal
        if request.is_navigation:
            # A frame that allow_hosts names is loaded as all else is.
            return None if self._wall.is_named(known) else self.check_navigation(known)
        if known == self._sent_url:
            return None
        return self._wall.find_resource_refusal(known, request.kind)

    def _check_method(self, request: BrowserRequest, url: str) -> str | None:
        method = request.method
        if request.is_preflight:
            method = request.fields["access-control-request-method"]
        if method in {"GET", "HEAD"}:
            return None
        if self._wall.posts and method == "POST" and self._is_post_of_script(request):
            own = urls.origin_of(self.url)
            if urls.origin_of(url) == own or self._wall.is_named(url):
                return None
        return f"method {method[:20]}"

    def _is_post_of_script(self, request: BrowserRequest) -> bool:
        """Whether the page itself sends data, and neither a form, nor a frame of another origin, nor the browser by itself."""
        kind = request.fields.get("content-type", "").partition(";")[0].strip().lower()
        is_own = request.fields.get("origin") == urls.origin_of(self.url)
        return is_own and not request.is_navigation and kind not in _SENT_BY_BROWSER

    async def fetch(self, request: BrowserRequest, budget: PageBudget) -> Answer:
        """The answer, or the one that is kept of it; raises Refused and FetchFailed.

        It is sent as robots files and sitemaps are, so turns, addresses and logins are theirs.
        """
        url = urls.resolve(request.url)
        cookies = self._choose_cookies(request, url)
        headers = [*choose_headers(request), *([("cookie", cookies)] if cookies else [])]
        is_credited = self._has_credentials(request)
        key = build_key(urls.origin_of(self.url), url, headers, has_credentials=is_credited)
        is_kept = request.method == "GET"
        answer = self._wall.cache.find(key, request.kind) if is_kept else None
        if answer is not None:
            self._note_cookies(url, answer)
            budget.take(len(answer.body))
            return answer
        answer = await self._request(url, request, headers, budget, is_credited=is_credited)
        self._note_cookies(url, answer)
        if is_kept:
            self._wall.cache.keep(key, request.kind, answer)
        if urls.origin_of(url) != urls.origin_of(self.url) and (request.is_navigation or _may_be_frame(answer)):
            self._has_other_frames = True
        return answer

    def _has_credentials(self, request: BrowserRequest) -> bool:
        return not self._is_guest and self._wall.credentials.belong_to(
            request, self.url, has_other_frames=self._has_other_frames
        )

    async def _request(
        self,
        url: str,
        request: BrowserRequest,
        headers: Sequence[tuple[str, str]],
        budget: PageBudget,
        *,
        is_credited: bool,
    ) -> Answer:
        async def check(target: str) -> None:
            if target != self._sent_url:
                await self._wall.check_robots(target)

        answer = await send(
            self._wall.side_requests,
            url,
            request,
            headers,
            budget,
            kind=OF_PAGE,
            max_bytes=self._wall.max_bytes,
            anonymous=not is_credited,
            check=check,
            is_public_only=self._is_public_only,
        )
        self._check_type(url, request, answer)
        return answer

    def _check_type(self, url: str, request: BrowserRequest, answer: Answer) -> None:
        """Raises Refused for data of a host that may give scripts and styles only, where only the answer says what it is."""
        is_guessed = request.kind in {"unknown", "stylesheet"} and not request.tells_kind
        if not is_guessed or self._wall.may_be_data(url) or answer.status in REDIRECT_STATUSES:
            return
        kind = dict(answer.headers).get("content-type", "").partition(";")[0].strip().lower()
        if kind not in SHARED_TYPES:
            raise Refused(f"{KEY}: {urls.parse(url).host} is outside the boundary")

    def _is_public_only(self, url: str) -> bool:
        return self._is_guest or (url != self._sent_url and self._wall.is_public_only(url))


def _may_be_frame(answer: Answer) -> bool:
    """Whether an answer is a document, whatever it was asked for as."""
    content_type = dict(answer.headers).get("content-type", "").lower()
    return "html" in content_type or "xml" in content_type
