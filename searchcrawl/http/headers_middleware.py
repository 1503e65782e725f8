"""Sets the headers of requests: the user agent, those of the source (X-N7), and conditions; handles 304 (D2, L5)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.html.links import find_header_canonical
from searchcrawl.html.metas import read_robots_directives
from searchcrawl.http.redirect_middleware import repeat_request
from searchcrawl.http.side_requests import ANONYMOUS, META_KEY
from searchcrawl.http.visit_end import VisitEnded, build_visit_end, find_claim, find_redirects
from searchcrawl.items import Claim, Outcome
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.index_filter import HEADER_RULE, IndexFilter, find_canonical_link, read_last_modified
from searchcrawl.rules.redirects import OwnOrigins
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.run import Run
from searchcrawl.sources.secrets import redact
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: The key of ``Request.meta`` for a request without validators, after a server failed by them.
_PLAIN: Final = "unconditional"
#: What some servers say to validators of a page that has changed; only methods that change something may be told so.
_PRECONDITION_FAILED: Final = 412
#: Whether Link headers of a page (its URL, their values) name a canonical URL, and which one counts then; None: none.
FindCanonical = Callable[[str, Sequence[bytes]], tuple[bool, str | None]]
_ACCEPT: Final = "text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,*/*;q=0.8"


class HeadersMiddleware:
    """Sets the headers of each request; only ``own_origins`` get those of the source."""

    def __init__(self, *, user_agent: str, headers: Mapping[str, str], own_origins: OwnOrigins) -> None:
        self._own_origins = own_origins
        self._common = _encode({"User-Agent": user_agent, "Accept": _ACCEPT})
        self._own = self._common | _encode(headers)
        self._has_own = bool(headers)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HeadersMiddleware:
        stages = stages_of(crawler)
        run, origins = stages.get(Run), stages.get(OwnOrigins)
        for origin in sorted(origins.refused):
            logger.warning("%s gets no headers of fetch.headers: it is not https, as all start URLs are", origin)
        return cls(user_agent=run.project.user_agent_header, headers=run.source.fetch.headers, own_origins=origins)

    def process_request(self, request: Request) -> None:
        headers = self._own if self._has_own and self._is_for_own(request) else self._common
        # dict's own method is faster: names and values need no normalisation.
        sent = request.headers
        for name, value in headers.items():
            dict.setdefault(sent, name, [value])

    def _is_for_own(self, request: Request) -> bool:
        meta = request.meta
        if find_claim(request) is None:
            from_https = meta.get("from_https", False)
            is_ours = META_KEY in meta and not meta.get(ANONYMOUS, False)
            return is_ours and self._own_origins.has(request.url, from_https=from_https)
        from_https = any(hop.url.startswith("https:") for hop in find_redirects(request))
        return self._own_origins.has(request.url, from_https=from_https)


def _encode(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.title().encode("ascii"): value.encode("latin-1", "replace") for name, value in headers.items()}


class ConditionalMiddleware:
    """Sends the validators of the last good body, or of one that nothing reads, with a row's own URL, never to the target of a redirect.

    A 304 to them ends the visit with 304, or with 908 where nothing reads the type of that body; a 412 has the page asked for without them. A 304 without a condition is a failure that is tried again. For a page that
    has not changed, ``index_filter`` decides again about its age: if it has become too old, the visit ends with 952. So
    does a visit whose 304 says noindex to ``user_agent`` (None: noindex is ignored). One whose 304 names another canonical
    URL than is known begins anew, for the whole page; ``find_canonical`` finds the URL that counts by those headers.
    """

    def __init__(
        self,
        index_filter: IndexFilter | None = None,
        *,
        user_agent: str | None = None,
        find_canonical: FindCanonical | None = None,
    ) -> None:
        self._filter = index_filter if index_filter is not None and index_filter.depends_on_time else None
        self._user_agent = user_agent
        self._find_canonical = find_canonical

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ConditionalMiddleware:
        run = stages_of(crawler).get(Run)
        agent = run.source.robots.user_agent or run.project.user_agent
        return cls(
            run.index_filter,
            user_agent=agent if run.source.keep.meta_robots else None,
            find_canonical=partial(_find_canonical, run),
        )

    def process_request(self, request: Request) -> None:
        claim = find_claim(request)
        if claim is None or find_redirects(request) or _PLAIN in request.meta:
            return
        if self._filter is not None and claim.code == Code.NOT_INDEXED and not self._refusal(claim.last_modified):
            # The page was refused as too old and no longer is: it is needed, and a 304 would not bring it.
            return
        if claim.etag is not None:
            _set(request, b"If-None-Match", claim.etag)
        if claim.last_modified is not None:
            _set(request, b"If-Modified-Since", claim.last_modified)

    def process_response(self, request: Request, response: Response) -> Response | Request:
        if response.status not in {304, _PRECONDITION_FAILED}:
            return response
        claim = find_claim(request)
        if claim is None:
            return response
        has_condition = b"If-None-Match" in request.headers or b"If-Modified-Since" in request.headers
        if response.status == _PRECONDITION_FAILED:
            return repeat_request(request, request.url, **{_PLAIN: True}) if has_condition else response
        if not has_condition:
            raise build_visit_end(request, claim, 304, error="304 without a condition", transient=True)
        raise self._end_unchanged(request, response, claim)

    def _end_unchanged(self, request: Request, response: Response, claim: Claim) -> VisitEnded:
        if claim.unread is not None:
            error = f"no converter for {claim.unread.mimetype}"
            ended = build_visit_end(request, claim, Code.NO_CONVERTER, error=error)
            return VisitEnded(replace(ended.outcome, unread=claim.unread))
        tags = response.headers.getlist(b"X-Robots-Tag")
        if tags and self._says_noindex([tag.decode("latin-1") for tag in tags]):
            return build_visit_end(request, claim, Code.NOT_INDEXED, rule=HEADER_RULE)
        if b"Link" in response.headers and self._names_another(claim, response.headers.getlist(b"Link")):
            return VisitEnded(Outcome(claim=claim, code=claim.code, again_ms=clock.now_ms(), whole=True))
        last_modified = _text(response.headers.get(b"Last-Modified"))
        refusal = self._refusal(last_modified or claim.last_modified) if self._filter is not None else None
        if refusal is not None:
            return build_visit_end(request, claim, Code.NOT_INDEXED, rule=refusal.text)
        outcome = replace(
            build_visit_end(request, claim, 304).outcome,
            etag=_text(response.headers.get(b"ETag")),
            last_modified=last_modified,
        )
        return VisitEnded(outcome)

    def _says_noindex(self, tags: Sequence[str]) -> bool:
        agent = self._user_agent
        return (
            agent is not None
            and read_robots_directives(metas=(), headers=tags, user_agent=agent, now=clock.now()).noindex
        )

    def _names_another(self, claim: Claim, links: Sequence[bytes]) -> bool:
        """Whether Link headers name a canonical URL, and it is not the one that the document has."""
        if self._find_canonical is None:
            return False
        named, counting = self._find_canonical(claim.url, links)
        return named and (None if counting is None else urls.key(counting)) != claim.canonical_key

    def _refusal(self, last_modified: str | None) -> Decision | None:
        return (
            None
            if self._filter is None
            else self._filter.refuse_unchanged(read_last_modified(last_modified), clock.now_ms())
        )


def _find_canonical(run: Run, url: str, links: Sequence[bytes]) -> tuple[bool, str | None]:
    canonical = read_canonical(links, base_url=url, rewriting=run.rewriting)
    if canonical is None:
        return False, None
    link = find_canonical_link(canonical, own_url=url, boundary=run.boundary, rewriting=run.rewriting)
    return True, None if link is None else link.url


def _set(request: Request, name: bytes, value: str) -> None:
    # A validator that is not plain text can't be sent back as it came (RFC 9110 §5.5).
    if value.isascii() and value.isprintable():
        request.headers[name] = value


def _text(value: bytes | None) -> str | None:
    return None if value is None else redact(value.decode("latin-1"))


def read_canonical(values: Iterable[bytes], *, base_url: str, rewriting: Rewriting) -> str | None:
    """What the Link headers ``values`` of the page at ``base_url`` name; None for none, or several."""
    routes = rewriting.identity.routes
    texts = [value.decode("latin-1") for value in values]
    canonical = find_header_canonical(texts, base_url=base_url, routes=routes)
    if canonical is not None and urls.has_route(base_url) and not urls.has_route(canonical):
        # The server knows nothing of routes: it names the frame that they share.
        return None
    if canonical is not None and not rewriting.rewrites:
        # A session id in it may be another one each time.
        canonical = rewriting.identity.strip(canonical)
    return canonical
