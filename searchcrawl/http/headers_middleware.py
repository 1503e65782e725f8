"""Sets User-Agent and Accept, and the headers of the source for the origins that they are meant for (X-N7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from searchcrawl import urls
from searchcrawl.http.visit_end import find_claim, find_redirects
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

_ACCEPT: Final = "text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,*/*;q=0.8"


class HeadersMiddleware:
    """Sets the headers of each request; a redirect to another origin gets the common ones only."""

    def __init__(self, *, user_agent: str, headers: Mapping[str, str]) -> None:
        self._common = _encode({"User-Agent": user_agent, "Accept": _ACCEPT})
        self._own = self._common | _encode(headers)
        self._has_own = bool(headers)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HeadersMiddleware:
        run = stages_of(crawler).get(Run)
        return cls(user_agent=run.project.user_agent_header, headers=run.source.fetch.headers)

    def process_request(self, request: Request) -> None:
        headers = self._own if self._has_own and _is_own_origin(request) else self._common
        # dict's own method is faster: names and values need no normalisation.
        sent = request.headers
        for name, value in headers.items():
            dict.setdefault(sent, name, [value])


def _encode(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.title().encode("ascii"): value.encode("latin-1", "replace") for name, value in headers.items()}


def _is_own_origin(request: Request) -> bool:
    """Whether the request goes to the origin of its row, or to one of the source itself (a sitemap)."""
    claim = find_claim(request)
    if claim is None:
        return bool(request.meta.get("own_headers"))
    return not find_redirects(request) or urls.parse(request.url).origin == urls.parse(claim.url).origin
