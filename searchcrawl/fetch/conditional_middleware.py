"""Asks for pages only if they changed, and ends the visit of those that did not (D2, L5, R16)."""

from __future__ import annotations

from dataclasses import replace

from scrapy import Request
from scrapy.http import Response

from searchcrawl.fetch.ending import VisitEnded, claim_of, ended, trail_of


class ConditionalMiddleware:
    """Sends the validators of the last good body with a row's own URL, never with a redirect's target.

    A 304 to them ends the visit with 304; one that nobody asked for is a passing failure.
    """

    def process_request(self, request: Request) -> None:
        claim = claim_of(request)
        if claim is None or trail_of(request):
            return
        if claim.etag is not None:
            _set(request, b"If-None-Match", claim.etag)
        if claim.last_modified is not None:
            _set(request, b"If-Modified-Since", claim.last_modified)

    def process_response(self, request: Request, response: Response) -> Response:
        if response.status != 304:
            return response
        claim = claim_of(request)
        if claim is None:
            return response
        if b"If-None-Match" not in request.headers and b"If-Modified-Since" not in request.headers:
            raise ended(request, claim, 304, error="304 without a condition", transient=True)
        outcome = replace(
            ended(request, claim, 304).outcome,
            etag=_text(response.headers.get(b"ETag")),
            last_modified=_text(response.headers.get(b"Last-Modified")),
        )
        raise VisitEnded(outcome)


def _set(request: Request, name: bytes, value: str) -> None:
    # A validator that is not plain text can't be sent back as it came (RFC 9110 §5.5).
    if value.isascii() and value.isprintable():
        request.headers[name] = value


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
