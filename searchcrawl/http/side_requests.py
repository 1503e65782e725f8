"""Requests beside the pages: for robots.txt, sitemaps, login pages and soft-404 probes.

One way to wait for the host, to send, to follow redirects and to say what went wrong. The requests pass the
same middlewares as those for pages: so the address guard, the proxy and the login hold for them, and a
Retry-After is kept for the host (``RedirectMiddleware``). They have no row in the URL table.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final

from scrapy import Request
from scrapy.http import Response
from scrapy.http.headers import Headers

from searchcrawl import urls
from searchcrawl.bodies import Body, LargeBody, Spool
from searchcrawl.codes import REDIRECT_STATUSES, Code
from searchcrawl.exceptions import CrawlEnds, HostBlocked, InvalidUrl
from searchcrawl.http.content_coding import decode_large_prefix, decode_prefix, parse_codings
from searchcrawl.http.large_response import MAY_BE_LARGE, find_body
from searchcrawl.http.visit_end import PUBLIC_ONLY, describe_failure, find_failure, join_lines
from searchcrawl.politeness.backoff import parse_retry_after
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.redirects import TargetRules

#: The code of a failure of redirects that lead nowhere.
ENDLESS: Final = frozenset({Code.REDIRECT_LOOP, Code.NO_LOCATION})
#: After these statuses a form is sent again, to its own origin only.
_KEEP_METHOD: Final = frozenset({307, 308})
#: The key of ``Request.meta`` that names the kind of a side request.
META_KEY: Final = "side_request"
#: The key of ``Request.meta`` for the URL whose redirects led to a side request.
ASKED_FOR: Final = "asked_for"
#: The key of ``Request.meta`` of a request that has no credentials: no password, no header of the source, no client certificate.
ANONYMOUS: Final = "anonymous"
#: The key of ``Request.meta`` for what counts the bytes of a body as they come, and raises BodyTooLarge.
COUNT_BYTES: Final = "count_bytes"
#: A flag of a response: nobody was logged in.
LOST_LOGIN: Final = "lost_login"


class SideLimits(Enum):
    """Which limits a side request keeps besides the delay of its host."""

    #: none: a page that waits for the answer counts already
    DELAY_ONLY = "delay"
    #: ``fetch.sites``, by its first host for all redirects together
    SITES = "sites"
    #: ``fetch.host_concurrency``; no page waits for it, so it is not sent once the crawl ends
    HOST_CONCURRENCY = "host_concurrency"


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePolicy:
    """How one kind of side requests is sent.

    ``kind`` names it in ``Request.meta``. The body is cut after ``max_bytes``. Redirects with a status of
    ``followed`` are followed, ``max_redirects`` at most. One to what an exclude rule names fails, or is the answer if
    ``ends_at_excluded``. The source's own headers (``fetch.headers``) go along to the origins that get them. The body
    ``may_be_large``: on the disk.
    """

    kind: str
    max_bytes: int
    limits: SideLimits = SideLimits.DELAY_ONLY
    followed: frozenset[int] = REDIRECT_STATUSES
    ends_at_excluded: bool = False
    max_redirects: int = 5
    may_be_large: bool = False


class SideRequestFailed(Exception):
    """There is no usable answer; ``code`` is as for a page, and ``rule`` is what refuses it, as rows keep it.

    A ``transient`` failure may be gone after ``retry_after_seconds``.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        rule: str | None = None,
        transient: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.code = code
        self.rule = rule
        self.transient = transient
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideAnswer:
    """The answer at the end of all redirects, whatever its status; ``body`` as it was sent, cut at the limit.

    Where the policy allows it a large body is ``large`` in its place.
    """

    url: str
    status: int
    headers: Headers
    body: bytes = field(repr=False)
    redirected: bool
    large: LargeBody | None = field(default=None, repr=False)
    #: that nobody was logged in, of what a page loads: to the page this may be an answer as any other
    lost_login: bool = False

    def header(self, name: str) -> str:
        """The last value of a header, empty where there is none."""
        return (self.headers.get(name) or b"").decode("latin-1")

    @property
    def codings(self) -> list[str]:
        """The content codings of the body, in the order in which they were applied."""
        return parse_codings(self.headers.getlist("Content-Encoding"))

    @property
    def retry_after_seconds(self) -> float | None:
        """The seconds that the answer asks to wait, None where it names none."""
        return parse_retry_after(self.headers.get("Retry-After"))

    def decoded_body(self, max_bytes: int) -> bytes:
        """The first ``max_bytes`` of the body without content codings; raises BrokenCoding."""
        return decode_prefix(self.body, self.codings, max_bytes=max_bytes)

    def decoded_large_body(self, max_bytes: int, spools: Path) -> Body:
        """As ``decoded_body``, but a large body is put into the folder ``spools``; raises SpoolFailed as well."""
        body = self.large or self.body
        return decode_large_prefix(body, self.codings, max_bytes=max_bytes, new_spool=partial(Spool, spools))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserPayload:
    """What a browser sends, as it sends it."""

    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    anonymous: bool = False
    count_bytes: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """What is sent by POST, and the page that it is sent from."""

    body: bytes = field(repr=False)
    page_url: str
    content_type: str = "application/x-www-form-urlencoded"


class SideRequests:
    """Sends side requests; for the event loop.

    ``download`` passes a request to the downloader; ``is_closing`` tells whether the spider is being closed.
    """

    def __init__(
        self,
        *,
        download: Callable[[Request], Awaitable[Response]],
        rate_limiter: RateLimiter,
        targets: TargetRules,
        is_closing: Callable[[], bool] = lambda: False,
    ) -> None:
        self._download = download
        self._targets = targets
        self._rate_limiter = rate_limiter
        self.is_closing = is_closing

    def check_open(self) -> None:
        """Raises CrawlEnds once the spider is being closed: one more request would keep it open."""
        if self.is_closing():
            raise CrawlEnds

    async def fetch(
        self,
        first_url: str,
        policy: SidePolicy,
        *,
        form: Form | None = None,
        sent: BrowserPayload | None = None,
        headers: Mapping[str, str] | None = None,
        check: Callable[[str], Awaitable[None]] | None = None,
        inside: bool = False,
        is_public_only: Callable[[str], bool] | None = None,
        count_bytes: Callable[[int], None] | None = None,
    ) -> SideAnswer:
        """The answer to ``first_url`` (an identity) at the end of all redirects; raises SideRequestFailed.

        ``headers`` go with the first request only, as does what ``sent`` says of it. ``check`` is called with each URL before it is requested,
        and raises what this method then raises. A ``form`` is sent to its own origin only. ``inside`` tells that a
        page of that origin is inside the boundary. ``is_public_only`` tells instead of the rules whether a URL must have
        a public address. ``count_bytes`` is called with the bytes of bodies as they come, those of redirects too.
        """
        must_be_public = is_public_only or self._targets.is_side_public_only
        url, from_https = first_url, False
        try:
            async with self._hold_site(policy, first_url):
                for _ in range(policy.max_redirects + 1):
                    if check is not None:
                        await check(url)
                    request = _build_request(url, policy, first_url, headers, form)
                    if count_bytes is not None:
                        request.meta[COUNT_BYTES] = count_bytes
                    if sent is not None:
                        more = {ANONYMOUS: sent.anonymous, COUNT_BYTES: sent.count_bytes}
                        request = request.replace(method=sent.method, body=sent.body, meta=request.meta | more)
                    from_https = from_https or url.startswith("https:")
                    request.meta["from_https"] = from_https
                    request.meta[PUBLIC_ONLY] = not inside and must_be_public(url)
                    response = await self._send(request, policy)
                    target = self._find_target(response, url, first_url, policy)
                    if target is None:
                        return _build_answer(response, redirected=url != first_url)
                    form = None if form is None else _form_after(response.status, form, url, target)
                    headers, sent, url, inside = None, None, target, False
        except HostBlocked as error:
            raise SideRequestFailed(str(error), code=error.code) from error
        raise SideRequestFailed(
            f"more than {policy.max_redirects} redirects from {_shown(first_url)}", code=Code.REDIRECT_LOOP
        )

    def _find_target(self, response: Response, url: str, first_url: str, policy: SidePolicy) -> str | None:
        """The target of a redirect that is to be followed; raises SideRequestFailed if an exclude rule names it."""
        target = _read_target(response, url, policy)
        refusal = None if target is None else self._targets.refuse(target, first_url)
        if target is None or refusal is None:
            return target
        if policy.ends_at_excluded:
            return None
        raise SideRequestFailed(
            f"{_shown(url)} redirects to {_shown(target)}, which is excluded ({refusal.text})",
            code=Code.OUTSIDE_BOUNDARY,
            rule=refusal.text,
        )

    async def _send(self, request: Request, policy: SidePolicy) -> Response:
        async with self._hold_request(policy, urls.host_and_port(request.url)):
            try:
                return await self._download(request)
            except Exception as error:
                failure = find_failure(error)
                if failure is None:
                    raise
                message = join_lines(describe_failure(failure.code, error))
                raise SideRequestFailed(message, code=failure.code, transient=failure.transient) from error

    @asynccontextmanager
    async def _hold_site(self, policy: SidePolicy, url: str) -> AsyncIterator[None]:
        """Waits until ``fetch.sites`` allows the host of ``url`` and holds its place; redirects to others need none."""
        if policy.limits is not SideLimits.SITES:
            yield
            return
        await self._rate_limiter.acquire_host(urls.host_and_port(url))
        try:
            yield
        finally:
            self._rate_limiter.release_host(urls.host_and_port(url))

    @asynccontextmanager
    async def _hold_request(self, policy: SidePolicy, host: str) -> AsyncIterator[None]:
        if policy.limits is not SideLimits.HOST_CONCURRENCY:
            await self._rate_limiter.wait_until_allowed(host)
            yield
            return
        await self._rate_limiter.acquire_request(host)
        try:
            self.check_open()
            yield
        finally:
            self._rate_limiter.release_request(host)


def _build_request(
    url: str, policy: SidePolicy, first_url: str, headers: Mapping[str, str] | None, form: Form | None
) -> Request:
    meta: dict[str, Any] = {
        META_KEY: policy.kind,
        ASKED_FOR: first_url,
        "download_slot": urls.host_and_port(url),
        "verbatim_url": True,
        "body_prefix_bytes": policy.max_bytes,
        MAY_BE_LARGE: policy.may_be_large,
    }
    if form is None:
        return Request(url, headers=headers, meta=meta, dont_filter=True)
    # A browser sends these, and frameworks look at them to refuse forged forms.
    sent = {
        "Content-Type": form.content_type,
        "Origin": urls.origin_of(url),
        "Referer": form.page_url,
        **{name.title(): value for name, value in (headers or {}).items()},
    }
    return Request(url, method="POST", headers=sent, body=form.body, meta=meta, dont_filter=True)


def _build_answer(response: Response, *, redirected: bool) -> SideAnswer:
    body = find_body(response)
    large = None if isinstance(body, bytes) else body
    return SideAnswer(
        url=response.url,
        status=response.status,
        headers=response.headers,
        body=response.body if large is None else b"",
        large=large,
        redirected=redirected,
        lost_login=LOST_LOGIN in response.flags,
    )


def _read_target(response: Response, url: str, policy: SidePolicy) -> str | None:
    """The target of a redirect; None if the answer is no redirect or names no target."""
    location = response.headers.get(b"Location")
    if response.status not in policy.followed or not location:
        return None
    try:
        return urls.resolve(location.decode("utf-8", "replace"), url)
    except InvalidUrl as error:
        raise SideRequestFailed(f"{_shown(url)} redirects to what is no URL", code=Code.NO_LOCATION) from error


def _form_after(status: int, form: Form, url: str, target: str) -> Form | None:
    """The form to send to the target of a redirect; raises SideRequestFailed if it would leave its origin."""
    if status not in _KEEP_METHOD:
        return None
    if urls.origin_of(target) != urls.origin_of(url):
        raise SideRequestFailed(
            f"the form is sent on to another origin: {_shown(target)}; nothing was sent there",
            code=Code.OUTSIDE_BOUNDARY,
        )
    return replace(form, page_url=url)


def _shown(url: str) -> str:
    """A URL for messages, without its query, which may be a secret."""
    return url.partition("?")[0][:200]
