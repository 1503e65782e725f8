"""Renders the pages that need it, after their plain answer and within the same visit (C10, C11)."""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Headers, HtmlResponse, Response

from searchcrawl import urls
from searchcrawl.codes import Code, facts_of
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.encoding import decode
from searchcrawl.html.shell import has_scripts, read_shell
from searchcrawl.http.side_requests import LOST_LOGIN
from searchcrawl.http.visit_end import PAGES, VisitEnded, build_visit_end, find_claim, find_redirects
from searchcrawl.items import Claim, Hop, Outcome
from searchcrawl.render.rendered_page import (
    RENDERED_TYPE,
    BrowserUnavailable,
    FailedPart,
    RenderedPage,
    RenderFailed,
)
from searchcrawl.render.renderer import Renderer
from searchcrawl.render.verdicts import Plan
from searchcrawl.render.wall import Answer
from searchcrawl.rules.rendering import ENOUGH_BYTES, Need, Shell, has_gained, judge
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: The key of ``Request.meta`` for the reason why a page was rendered.
RENDERED: Final = "rendered"
#: Why all pages of a source are.
_ALWAYS: Final = Plan(Need.CERTAIN, "render.mode: always", True)
#: Why a page is whose URL has a route, which the server does not see.
_ROUTE: Final = Plan(Need.CERTAIN, "a route of its own: scope.hash_routes", True)
_VALIDATORS: Final = (b"If-None-Match", b"If-Modified-Since")
#: They describe the bytes that were sent, or are credentials.
_NOT_OF_PAGE: Final = frozenset({
    "connection", "content-encoding", "content-length", "content-type", "keep-alive", "set-cookie", "transfer-encoding",
    "etag", "last-modified",
})  # fmt: skip
#: Larger bodies are read in a thread.
_THREAD_FROM_BYTES: Final = 256 * 1024
#: The status of a move by a script.
_MOVED: Final = 302
_MOVED_FOR_GOOD: Final = 301


class RenderMiddleware:
    """Replaces the plain answer of a page that needs a browser by what the browser makes of it.

    All later stages judge that: redirects, statuses, digests, copies, canonical links, placeholder pages; and the cache
    keeps it. It is rendered at each visit, also where its shell is unchanged (304). The validators stay those of the plain
    answer, which is asked for first the next time as well.
    """

    def __init__(self, renderer: Renderer, *, always: bool, max_bytes: int, default_charset: str) -> None:
        self._renderer = renderer
        self._always = always
        self._max_bytes = max_bytes
        self._default_charset = default_charset

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RenderMiddleware:
        stages = stages_of(crawler)
        renderer, source = stages.find(Renderer), stages.get(Run).source
        if renderer is None or not source.render.in_use:
            raise NotConfigured
        return cls(
            renderer,
            always=source.render.mode == "always",
            max_bytes=source.fetch.max_bytes,
            default_charset=source.fetch.default_charset,
        )

    def process_request(self, request: Request) -> None:
        """Asks for the whole page where it is not known whether it needs a browser now; it comes after the validators."""
        claim = find_claim(request)
        if claim is not None and not self._renderer.is_open:
            raise _release(claim, "no page can be rendered")
        if claim is None or self._always or urls.has_route(claim.url):
            return
        verdicts = self._renderer.verdicts
        if verdicts.is_sampled(claim.url) or (claim.rendered is None and verdicts.may_render(claim.url)):
            for name in _VALIDATORS:
                request.headers.pop(name, None)

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        claim = find_claim(request)
        if claim is None:
            return response
        of_route = urls.has_route(claim.url)
        if response.status == 304:
            if of_route:
                return self._render(request, response, claim, _ROUTE)
            if claim.rendered is None:
                return response
            return self._render(request, response, claim, Plan(Need.CERTAIN, claim.rendered, True))
        if response.status not in PAGES:
            return response
        if not isinstance(response, HtmlResponse):
            return _leave_route(request) if of_route else response
        if of_route:
            return self._render(request, response, claim, _ROUTE)
        if not self._always and len(response.body) >= _THREAD_FROM_BYTES:
            return self._render_if_needed(request, response, claim)
        plan = _ALWAYS if self._always else self._decide(claim, response)
        return response if plan is None else self._render(request, response, claim, plan)

    async def _render_if_needed(self, request: Request, response: Response, claim: Claim) -> Response:
        """Decides about a large page, which takes a while to read."""
        plan = await asyncio.to_thread(self._decide, claim, response)
        return response if plan is None else await self._render(request, response, claim, plan)

    def _decide(self, claim: Claim, response: Response) -> Plan | None:
        if not has_scripts(response.body):
            return None
        return self._renderer.verdicts.decide(claim.url, read_shell(self._decode(response), enough=ENOUGH_BYTES))

    def _decode(self, response: Response) -> bytes:
        content_type = (response.headers.get(b"Content-Type") or b"").decode("latin-1")
        text, _ = decode(response.body, content_type=content_type, default_charset=self._default_charset)
        return text.encode("utf-8", "replace")

    async def _render(self, request: Request, response: Response, claim: Claim, plan: Plan) -> Response:
        if self._renderer.trial is not None:
            headers = tuple((name, value) for name, values in response.headers.items() for value in values)
            self._renderer.trial.plain = (request.url, headers, response.body)
        try:
            page = await self._renderer.render(request.url, _read_answer(response))
        except RenderFailed as error:
            if plan.need is Need.NONE and not plan.is_known:
                logger.info("%s is taken as it was sent: it cannot be rendered: %s", request.url, error)
                return response
            raise _build_end(request, claim, error) from error
        except BrowserUnavailable as error:
            raise _release(claim, str(error)) from error
        gain = True
        if (plan.need is not Need.CERTAIN or page.failed is not None) and _find_target(request, page) is None:
            gain = await asyncio.to_thread(self._has_gained, response, page)
        if page.failed is not None and not gain:
            if plan.is_known and await asyncio.to_thread(self._is_lacking, claim, response, page, page.failed):
                raise _build_incomplete_end(request, claim, page.failed)
        elif plan.need is not Need.CERTAIN:
            await self._renderer.verdicts.note(claim.url, plan.need, gain=gain)
        if not gain and not plan.is_known:
            return response
        return self._build_response(request, response, claim, page, plan.reason)

    def _has_gained(self, response: Response, page: RenderedPage) -> bool:
        before, after = self._read_plain(response, page), read_shell(page.html.encode("utf-8", "replace"))
        return has_gained(before.text_bytes, after.text_bytes)

    def _is_lacking(self, claim: Claim, response: Response, page: RenderedPage, failed: FailedPart) -> bool:
        """Whether a page without any gain has its text from what failed, and not from its server.

        A part of another site may be gone for good: it costs no page that never had a document.
        """
        if not claim.has_document and urls.origin_of(urls.resolve(failed.url)) != urls.origin_of(claim.url):
            return False
        return not self._always or judge(self._read_plain(response, page)).need is Need.CERTAIN

    def _read_plain(self, response: Response, page: RenderedPage) -> Shell:
        """What the page was before a browser had it."""
        if response.status == 304:
            response = response.replace(body=page.body, headers=dict(page.headers))
        return read_shell(self._decode(response))

    def _build_response(
        self, request: Request, response: Response, claim: Claim, page: RenderedPage, reason: str
    ) -> Response:
        """What the browser saw, as the answer of the request."""
        target = _find_target(request, page)
        if target is not None:
            url, status = target
            return _redirect(request, url, status)
        body = build_body(page)
        if self._max_bytes and len(body) > self._max_bytes:
            error = f"{len(body)} bytes rendered, more than {self._max_bytes}"
            raise build_visit_end(request, claim, Code.TOO_LARGE, error=error)
        request.meta[RENDERED] = reason
        request.meta[LOST_LOGIN] = page.lost_login
        rendered = HtmlResponse(request.url, status=page.status, body=body, request=request)
        rendered.headers = _build_headers(response, claim, page)
        return rendered


def _find_target(request: Request, page: RenderedPage) -> tuple[str, int] | None:
    """Where the page led, by a redirect or by a script, and the status of that; None where it stayed."""
    if not page.redirects:
        return None
    url = page.redirects[1][0] if len(page.redirects) > 1 else page.url
    try:
        target = urls.resolve(url, request.url)
    except InvalidUrl:
        return None
    status = page.redirects[0][1]
    # A page that loads itself once more has not moved.
    return None if target == urls.without_route(request.url) else (target, status if 300 < status < 309 else _MOVED)


def _redirect(request: Request, url: str, status: int) -> Response:
    # Without a fragment of its own it would get the route of the page that it leaves.
    location = f"{url}#" if urls.has_route(request.url) else url
    return Response(request.url, status=status, headers={b"Location": location.encode()}, request=request)


def _leave_route(request: Request) -> Response:
    """A file has no routes: its own URL is where it belongs."""
    return _redirect(request, urls.without_route(request.url), _MOVED_FOR_GOOD)


def build_body(page: RenderedPage) -> bytes:
    """The page with its routes as links without a text: so they are links of its record as well."""
    routes = "".join(f'<a href="{html.escape(url)}"></a>' for url in dict.fromkeys(page.routes))
    return f"{page.html}{routes}".encode("utf-8", "replace")


def _build_headers(response: Response, claim: Claim, page: RenderedPage) -> Headers:
    headers = Headers()
    for name, value in page.headers:
        if name.lower() not in _NOT_OF_PAGE:
            headers.appendlist(name, value)
    headers["Content-Type"] = RENDERED_TYPE
    for name, known in (("ETag", claim.etag), ("Last-Modified", claim.last_modified)):
        validator = response.headers.get(name) or (known if response.status == 304 else None)
        if validator is not None:
            headers[name] = validator
    return headers


def _read_answer(response: Response) -> Answer | None:
    """The plain answer as the browser gets it; None where the server sent no body, for the page is unchanged."""
    if response.status == 304:
        return None
    names = ((name.decode("latin-1"), values) for name, values in dict.items(response.headers))
    headers = tuple((name.lower(), value.decode("latin-1")) for name, values in names for value in values)
    return Answer(response.url, response.status, headers, response.body)


def _release(claim: Claim, error: str) -> VisitEnded:
    """Gives a row back as it is: the browser is to blame, and the run ends."""
    return VisitEnded(Outcome(claim=claim, code=Code.NOT_FETCHED, error=error, released=True))


def _build_incomplete_end(request: Request, claim: Claim, failed: FailedPart) -> VisitEnded:
    """The end of a visit to a page that has nothing without what failed: what is known of it stays."""
    error = f"not rendered: {failed.url} failed with {failed.code}, and the page has no more text without it"
    return build_visit_end(request, claim, Code.READ_ERROR, error=error, transient=True)


def _build_end(request: Request, claim: Claim, error: RenderFailed) -> VisitEnded:
    """The end of a visit whose page could not be rendered."""
    code = int(error.code)
    end = build_visit_end(request, claim, code, error=f"not rendered: {error}", transient=facts_of(code).retried)
    if code != Code.OUTSIDE_BOUNDARY:
        return end
    # The page was asked for, and led outside: its own URL is not refused.
    return VisitEnded(replace(end.outcome, redirects=(*find_redirects(request), Hop(request.url, _MOVED))))
