"""The wall of a crawl: the browser of a source keeps to its boundary, to robots.txt and to the turns of hosts (C2, C5, L7).

What a page may ask for, and with which credentials, its own rules say (L13, X-N7). It is sent as the crawl sends robots files
and sitemaps: turns, addresses and logins are theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from searchcrawl import urls
from searchcrawl.codes import REDIRECT_STATUSES, Code
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import BrowserPayload, SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import BodyTooLarge
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, FetchFailed, RequestRefused, resolve
from searchcrawl.render.budget import BudgetSpent, PageBudget
from searchcrawl.render.credentials import Credentials
from searchcrawl.render.login_steps import BrowserCookie
from searchcrawl.render.resource_cache import SHARED_TYPES, ResourceCache, build_key
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
        """Raises RequestRefused for what the robots.txt of ``url`` forbids; reads it before the first request to an origin."""
        if self._robots is None:
            return
        try:
            decision = (await self._robots.get_rules(urls.origin_of(url))).decide(url)
        except SideRequestFailed as error:
            raise RequestRefused(f"robots.txt of {urls.origin_of(url)}: {error}", code=error.code) from error
        if not decision.allowed:
            raise RequestRefused(f"robots.txt: {decision.rule}")

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


KEY: Final = "render.allow_hosts"
#: The kind of the requests of pages.
OF_PAGE: Final = "render"
#: What a browser posts without a script: pings of links, and reports.
_SENT_BY_BROWSER: Final = frozenset({"text/ping", "application/csp-report", "application/reports+json"})
NO_URL: Final = "not an http or https URL"


class Wall(Protocol):
    """The rules about the pages of a browser."""

    def admit(self, url: str) -> PageRules:
        """The rules for one page, which the crawl itself has decided to visit."""


class PageRules:
    """The rules for one page of the browser; ``url`` is its identity. For the event loop.

    A redirect may have led the crawl outside the boundary (C6). Such a page is rendered, and has neither credentials nor a
    private address.
    """

    def __init__(self, wall: CrawlWall, url: str) -> None:
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

    def _note_cookies(self, url: str, answer: DecodedAnswer) -> None:
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

    async def fetch(self, request: BrowserRequest, budget: PageBudget) -> DecodedAnswer:
        """The answer, or the one that is kept of it; raises RequestRefused and FetchFailed.

        It is sent as robots files and sitemaps are, so turns, addresses and logins are theirs.
        """
        url = urls.resolve(request.url)
        cookies = self._choose_cookies(request, url)
        headers = [*choose_headers(request), *([("cookie", cookies)] if cookies else [])]
        is_credited = not self._is_guest and self._wall.credentials.belong_to(
            request, self.url, has_other_frames=self._has_other_frames
        )
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

    async def _request(
        self,
        url: str,
        request: BrowserRequest,
        headers: Sequence[tuple[str, str]],
        budget: PageBudget,
        *,
        is_credited: bool,
    ) -> DecodedAnswer:
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

    def _check_type(self, url: str, request: BrowserRequest, answer: DecodedAnswer) -> None:
        """Raises RequestRefused for data of a host that may give scripts and styles only, where only the answer says what it is."""
        is_guessed = request.kind in {"unknown", "stylesheet"} and not request.tells_kind
        if not is_guessed or self._wall.may_be_data(url) or answer.status in REDIRECT_STATUSES:
            return
        kind = dict(answer.headers).get("content-type", "").partition(";")[0].strip().lower()
        if kind not in SHARED_TYPES:
            raise RequestRefused(f"{KEY}: {urls.parse(url).host} is outside the boundary")

    def _is_public_only(self, url: str) -> bool:
        return self._is_guest or (url != self._sent_url and self._wall.is_public_only(url))


def _may_be_frame(answer: DecodedAnswer) -> bool:
    """Whether an answer is a document, whatever it was asked for as."""
    content_type = dict(answer.headers).get("content-type", "").lower()
    return "html" in content_type or "xml" in content_type


#: They are about one connection, the crawler's own, or ask for a part: the browser keeps nothing from page to page.
_KEPT_BACK: Final = frozenset({
    "accept-encoding", "connection", "content-length", "cookie", "host", "if-match", "if-modified-since", "if-none-match",
    "if-range", "if-unmodified-since", "keep-alive", "range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip
#: Larger bodies are decoded in a thread.
_THREAD_FROM_BYTES: Final = 64 * 1024


def choose_headers(request: BrowserRequest) -> list[tuple[str, str]]:
    """The headers of a request that its server gets, but for cookies: what Chromium says, without what tells its build."""
    return [
        (name, value)
        for name, value in request.headers
        if name not in _KEPT_BACK and not name.startswith(("proxy-", "sec-ch-"))
    ]


async def send(
    side_requests: SideRequests,
    url: str,
    request: BrowserRequest,
    headers: Sequence[tuple[str, str]],
    budget: PageBudget,
    *,
    kind: str,
    max_bytes: int,
    anonymous: bool,
    check: Callable[[str], Awaitable[None]],
    is_public_only: Callable[[str], bool],
) -> DecodedAnswer:
    """The answer of ``url``, an identity, whatever it is, also a redirect; raises FetchFailed and what ``check`` raises.

    ``kind`` names the requests to other stages; ``max_bytes`` is the limit on a body. An ``anonymous`` request has none of the
    crawl's credentials.
    """
    limit = min(max_bytes, budget.left)
    # One byte more tells a body that is too large from one that is as large as it may be.
    policy = SidePolicy(kind=kind, max_bytes=limit + 1, followed=frozenset())
    sent = BrowserPayload(
        method=request.method, body=request.body, anonymous=anonymous, count_bytes=_build_counter(budget)
    )
    try:
        found = await side_requests.fetch(
            url, policy, sent=sent, headers=dict(headers), check=check, is_public_only=is_public_only
        )
        answer = await _decode(found, policy.max_bytes, budget)
        if limit < len(answer.body) <= max_bytes:
            budget.take(budget.left + 1)
    except SideRequestFailed as error:
        raise FetchFailed(str(error), code=error.code) from error
    except BrokenCoding as error:
        raise FetchFailed(str(error), code=Code.READ_ERROR) from error
    except BudgetSpent as error:
        raise FetchFailed(str(error), code=Code.TOO_LARGE) from error
    if len(answer.body) > max_bytes:
        raise FetchFailed(f"more than {max_bytes} bytes", code=Code.TOO_LARGE)
    return answer


def _build_counter(budget: PageBudget) -> Callable[[int], None]:
    def count(size: int) -> None:
        try:
            budget.take(size)
        except BudgetSpent as error:
            raise BodyTooLarge(str(error)) from error

    return count


async def _decode(found: SideAnswer, max_bytes: int, budget: PageBudget) -> DecodedAnswer:
    """An answer without content codings, at most ``max_bytes`` of it; raises BrokenCoding and BudgetSpent."""
    body = found.body
    if found.codings:
        # A body of some bytes may have any length.
        limit = min(max_bytes, budget.left + len(body) + 1)
        is_large = len(body) > _THREAD_FROM_BYTES
        body = await asyncio.to_thread(found.decoded_body, limit) if is_large else found.decoded_body(limit)
        budget.take(max(len(body) - len(found.body), 0))
    names = ((name.decode("latin-1"), values) for name, values in dict.items(found.headers))
    pairs = tuple((name.lower(), value.decode("latin-1")) for name, values in names for value in values)
    return DecodedAnswer(found.url, found.status, pairs, body, lost_login=found.lost_login)
