"""Renders the pages that need it, after their plain answer and within the same visit (C10, C11)."""

from __future__ import annotations

import asyncio
import html
import logging
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Headers, HtmlResponse, Response

from searchcrawl import urls
from searchcrawl.codes import Code, facts_of, is_retried
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.html.encoding import decode
from searchcrawl.html.raw_page import has_scripts, read_shell
from searchcrawl.http.large_response import find_body
from searchcrawl.http.side_requests import LOST_LOGIN
from searchcrawl.http.visit_end import PAGES, VisitEnded, build_visit_end, find_claim, find_redirects, join_lines
from searchcrawl.items import Claim, Hop, Outcome
from searchcrawl.politeness.backoff import may_retry
from searchcrawl.render.browser_request import DecodedAnswer, resolve
from searchcrawl.render.rendered_page import RENDERED_TYPE, BrowserUnavailable, RenderedPage, RenderFailed
from searchcrawl.render.renderer import Renderer, RenderPlan
from searchcrawl.rules import rendering
from searchcrawl.rules.redirects import write_target
from searchcrawl.rules.rendering import ENOUGH_BYTES, Look, Missing, Need, Shell, has_gained, judge
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: The key of ``Request.meta`` for the reason why a page was rendered.
RENDERED: Final = "rendered"
#: That for how it was (``rules.rendering``), and for what it lacked.
WHOLENESS: Final = "wholeness"
#: Rules that one line of the log names.
_MOST_SHOWN: Final = 10
#: Why all pages of a source are.
_ALWAYS: Final = RenderPlan(Need.CERTAIN, "render.mode: always", True)
#: Why a page is whose URL has a route, which the server does not see.
_ROUTE: Final = RenderPlan(Need.CERTAIN, "a route of its own: scope.hash_routes", True)
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


class _Seen(NamedTuple):
    """A rendered page: whether it has more text than its plain answer, what that needs, its bytes of text, and how whole it is."""

    gain: bool
    need: Need
    text: int
    look: Look


class RenderMiddleware:
    """Replaces the plain answer of a page that needs a browser by what the browser makes of it.

    All later stages judge that: redirects, statuses, digests, copies, canonical links, placeholder pages; and the cache
    keeps it. It is rendered at each visit, also where its shell is unchanged (304). The validators stay those of the plain
    answer, which is asked for first the next time as well.
    """

    def __init__(self, renderer: Renderer, run: Run) -> None:
        source = run.source
        self._renderer = renderer
        self._verdicts = renderer.verdicts
        self._always = source.render.mode == "always"
        self._max_bytes = source.fetch.max_bytes
        self._boundary = run.boundary
        self._rewriting = run.rewriting
        self._default_charset = source.fetch.default_charset
        self._retries = source.fetch.retries
        self._after_run = run.row.after_run
        self._logs_urls = run.project.logs.urls

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RenderMiddleware:
        stages = stages_of(crawler)
        renderer, run = stages.find(Renderer), stages.get(Run)
        if renderer is None or not run.source.render.in_use:
            raise NotConfigured
        return cls(renderer, run)

    def process_request(self, request: Request) -> None:
        """Asks for the whole page where it is not known whether it needs a browser now; it comes after the validators."""
        claim = find_claim(request)
        if claim is not None and not self._renderer.is_open:
            raise _release(claim, "no page can be rendered")
        if claim is None or self._always or urls.has_route(claim.url):
            return
        verdicts = self._verdicts
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
            return self._render(request, response, claim, RenderPlan(Need.CERTAIN, claim.rendered, True))
        if response.status not in PAGES:
            return response
        if not isinstance(response, HtmlResponse):
            # A file has no routes: its own URL is where it belongs.
            return _redirect(request, urls.without_route(request.url), _MOVED_FOR_GOOD) if of_route else response
        if of_route:
            return self._render(request, response, claim, _ROUTE)
        if not self._always and len(find_body(response)) >= _THREAD_FROM_BYTES:
            return self._render_if_needed(request, response, claim)
        plan = _ALWAYS if self._always else self._decide(claim, response)
        return response if plan is None else self._render(request, response, claim, plan)

    async def _render_if_needed(self, request: Request, response: Response, claim: Claim) -> Response:
        """Decides about a large page, which takes a while to read."""
        plan = await asyncio.to_thread(self._decide, claim, response)
        return response if plan is None else await self._render(request, response, claim, plan)

    def _decide(self, claim: Claim, response: Response) -> RenderPlan | None:
        if not has_scripts(response.body):
            return None
        return self._verdicts.decide(
            claim.url, read_shell(self._decode(response), enough=ENOUGH_BYTES), rendered=claim.rendered
        )

    def _decode(self, response: Response) -> bytes:
        content_type = (response.headers.get(b"Content-Type") or b"").decode("latin-1")
        text, _ = decode(response.body, content_type=content_type, default_charset=self._default_charset)
        return text.encode("utf-8", "replace")

    async def _render(self, request: Request, response: Response, claim: Claim, plan: RenderPlan) -> Response:
        if self._renderer.trial is not None:
            headers = tuple((name, value) for name, values in response.headers.items() for value in values)
            self._renderer.trial.plain = (request.url, headers, response.body)
        try:
            page = await self._renderer.render(request.url, _read_answer(response))
        except RenderFailed as error:
            if plan.need is Need.NONE and not plan.is_known and claim.rendered is None:
                logger.info("%s is taken as it was sent: it cannot be rendered: %s", request.url, error)
                return response
            raise _build_end(request, claim, error) from error
        except BrowserUnavailable as error:
            raise _release(claim, str(error)) from error
        self._log_refused(claim, page)
        target = _find_target(request, page)
        if target is not None:
            self._check_move(request, claim, page, target[0])
            if plan.need is not Need.CERTAIN:
                await self._verdicts.note(claim.url, plan.need, gain=True)
            return self._build_response(request, response, claim, page, plan.reason)
        seen = await asyncio.to_thread(self._look, claim, response, page)
        if self._is_held(claim, plan, seen):
            raise _build_incomplete_end(request, claim, seen.look, "the page has less text than it may have")
        if plan.need is not Need.CERTAIN and (seen.gain or not seen.look.missing):
            await self._verdicts.note(claim.url, plan.need, gain=seen.gain)
        if not seen.gain and not plan.is_known:
            return response
        request.meta[WHOLENESS] = rendering.dump(seen.look.taken), _describe_lacks(seen)
        return self._build_response(request, response, claim, page, plan.reason)

    def _check_move(self, request: Request, claim: Claim, page: RenderedPage, target: str) -> None:
        """Ends the visit where a script led outside the boundary, as a meta refresh would, or away from a page that lacks something."""
        if not page.moves:
            return
        if claim.has_document and claim.rendered is not None:
            known = rendering.parse(claim.parts) or rendering.RenderRecord()
            # It has no text: only what failed counts.
            found = rendering.Found(known.text or 0, known.plain or 0, page.parts)
            look = rendering.look(known, found, run=self._after_run)
            may_stay = not look.is_as_it_is or may_retry(claim.attempt + 1, retries=self._retries)
            if may_stay and any(each.is_new for each in look.missing):
                raise _build_incomplete_end(request, claim, look, "it went elsewhere")
        found_url = self._rewriting.normalise(target, claim.url)
        decision = found_url.decision if found_url.code else self._boundary.decide(found_url.url, claim.depth)
        if not decision.allowed:
            outcome = build_visit_end(request, claim, Code.META_REFRESH, rule=decision.text).outcome
            hops = (*find_redirects(request), Hop(request.url, _MOVED))
            raise VisitEnded(replace(outcome, redirects=hops, error=write_target(target)))

    def _log_refused(self, claim: Claim, page: RenderedPage) -> None:
        if self._logs_urls and page.refused:
            most = Counter(page.refused).most_common(_MOST_SHOWN)
            logger.info("%s was refused: %s", claim.url, join_lines(", ".join(f"{rule} ({n})" for rule, n in most)))

    def _look(self, claim: Claim, response: Response, page: RenderedPage) -> _Seen:
        """Compares a page with its plain answer, and with how its known text was made; for a thread."""
        plain, text = self._read_plain(response, page), read_shell(page.html.encode("utf-8", "replace")).text_bytes
        refused = {join_lines(rule): count for rule, count in page.refused.items()}
        found = rendering.Found(text, plain.text_bytes, page.parts, page.gave_up, refused)
        look = rendering.look(rendering.parse(claim.parts), found, run=self._after_run)
        return _Seen(has_gained(plain.text_bytes, text), judge(plain).need, text, look)

    def _is_held(self, claim: Claim, plan: RenderPlan, seen: _Seen) -> bool:
        """Whether what is known of a page stays, because what it is now may be for a while."""
        look = seen.look
        if not look.missing:
            return False
        if claim.has_document and look.is_as_it_is and not may_retry(claim.attempt + 1, retries=self._retries):
            return False
        if claim.has_document and claim.rendered is not None:
            return look.is_less
        # Nothing is known of its text as a browser shows it: only a page that is no more than its frame has it from what failed.
        if seen.gain or not plan.is_known or (self._always and seen.need is not Need.CERTAIN):
            return False
        # A part of another site may be gone for good: it costs no page that never had a document.
        return claim.has_document or any(_may_come(part, claim.url) for part in look.missing)

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
    target = resolve(page.redirects[1][0] if len(page.redirects) > 1 else page.url, request.url)
    # A page that loads itself once more has not moved.
    if target is None or target == urls.without_route(request.url):
        return None
    status = page.redirects[0][1]
    return target, status if 300 < status < 309 else _MOVED


def _redirect(request: Request, url: str, status: int) -> Response:
    # Without a fragment of its own it would get the route of the page that it leaves.
    location = f"{url}#" if urls.has_route(request.url) else url
    return Response(request.url, status=status, headers={b"Location": location.encode()}, request=request)


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


def _read_answer(response: Response) -> DecodedAnswer | None:
    """The plain answer as the browser gets it; None where the server sent no body, for the page is unchanged."""
    if response.status == 304:
        return None
    names = ((name.decode("latin-1"), values) for name, values in dict.items(response.headers))
    headers = tuple((name.lower(), value.decode("latin-1")) for name, values in names for value in values)
    return DecodedAnswer(response.url, response.status, headers, response.body)


def _release(claim: Claim, error: str) -> VisitEnded:
    """Gives a row back as it is: the browser is to blame, and the run ends."""
    return VisitEnded(Outcome(claim=claim, code=Code.NOT_FETCHED, error=error, released=True))


def _may_come(part: Missing, url: str) -> bool:
    """Whether a part of the page's own origin failed in a way that may pass."""
    if part.url is None or urls.origin_of(urls.resolve(part.url)) != urls.origin_of(url):
        return False
    return is_retried(part.code) or facts_of(part.code).retried or part.code == Code.ROBOTS


def _describe_lacks(seen: _Seen) -> str | None:
    """What the row of a page that is taken says that it lacks."""
    if seen.look.lacks is not None:
        return join_lines(seen.look.lacks)
    is_empty = rendering.is_next_to_empty(seen.text) and seen.need is not Need.NONE
    return rendering.NO_TEXT if is_empty else None


def _build_incomplete_end(request: Request, claim: Claim, look: Look, so: str) -> VisitEnded:
    """The end of a visit to a page that lacks something: what is known of it stays."""
    words = look.missing[0].words
    error = f"not rendered: {words}, and {so}"
    end = build_visit_end(request, claim, Code.READ_ERROR, error=error, transient=True)
    kept = rendering.dump(look.kept)
    return VisitEnded(replace(end.outcome, parts=kept, lacks=join_lines(words)))


def _build_end(request: Request, claim: Claim, error: RenderFailed) -> VisitEnded:
    """The end of a visit whose page could not be rendered."""
    code = int(error.code)
    end = build_visit_end(request, claim, code, error=f"not rendered: {error}", transient=facts_of(code).retried)
    if code != Code.OUTSIDE_BOUNDARY:
        return end
    # The page was asked for, and led outside: its own URL is not refused.
    return VisitEnded(replace(end.outcome, redirects=(*find_redirects(request), Hop(request.url, _MOVED))))


class BrowserPipeline:
    """A pipeline, because pipelines are opened before anything is requested; items pass as they are."""

    def __init__(self, run: Run, renderer: Renderer) -> None:
        self._run = run
        self._renderer = renderer

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BrowserPipeline:
        stages = stages_of(crawler)
        renderer = stages.find(Renderer)
        if renderer is None:
            raise NotConfigured
        return cls(stages.get(Run), renderer)

    async def open_spider(self) -> None:
        try:
            await self._renderer.open()
        except SearchcrawlError as error:
            logger.warning("no page can be rendered: %s", error)
            self._run.shutdown.fail(error)

    async def close_spider(self) -> None:
        await self._renderer.close()
