"""Decodes content codings within limits, and notices bodies that are cut (X-D6, X-R1, X-R2, L6)."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from pathlib import Path
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import run_in_thread

from searchcrawl.bodies import Spool
from searchcrawl.codes import Code
from searchcrawl.exceptions import SpoolFailed
from searchcrawl.http.content_coding import ACCEPTED, BrokenCoding, DecodedTooLarge, decode_large, parse_codings
from searchcrawl.http.large_response import build_response, find_body
from searchcrawl.http.visit_end import PAGES, build_visit_end, find_claim
from searchcrawl.items import Claim
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

#: Larger coded bodies are decoded in a thread.
_THREAD_FROM_BYTES: Final = 256 * 1024


class DecompressionMiddleware:
    """Replaces the body by the decoded one; a cut or broken body gets 958, one that is too large 960."""

    def __init__(self, *, max_bytes: int, spools: Path | None = None) -> None:
        """``spools`` is the folder for large bodies."""
        self._max_bytes = max_bytes
        self._spools = spools

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DecompressionMiddleware:
        run = stages_of(crawler).get(Run)
        return cls(max_bytes=run.source.fetch.max_bytes, spools=run.project.cache_dir)

    def process_request(self, request: Request) -> None:
        dict.setdefault(request.headers, b"Accept-Encoding", [ACCEPTED])

    def process_response(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        # The body of an error is not read to its end, and is not used.
        if response.status not in PAGES or b"Content-Encoding" not in response.headers:
            return response
        claim = find_claim(request)
        if claim is None:
            return response
        if len(find_body(response)) >= _THREAD_FROM_BYTES:
            return run_in_thread(self._decode, request, response, claim)
        return self._decode(request, response, claim)

    def _decode(self, request: Request, response: Response, claim: Claim) -> Response:
        codings = parse_codings(response.headers.getlist(b"Content-Encoding"))
        try:
            body = decode_large(
                find_body(response), codings, max_bytes=self._max_bytes, new_spool=partial(Spool, self._spools)
            )
        except BrokenCoding as error:
            raise build_visit_end(request, claim, Code.READ_ERROR, error=str(error), transient=error.cut) from error
        except SpoolFailed as error:
            raise build_visit_end(request, claim, Code.READ_ERROR, error=str(error), transient=True) from error
        except DecodedTooLarge as error:
            raise build_visit_end(request, claim, Code.TOO_LARGE, error=str(error)) from error
        headers = response.headers.copy()
        # These headers describe the bytes that were sent.
        for name in (b"Content-Encoding", b"Content-Length"):
            headers.pop(name, None)
        # Not replace(): that would guess the charset of the coded body.
        decoded = build_response(
            type(response),
            response.url,
            status=response.status,
            body=body,
            flags=response.flags,
            request=response.request,
            certificate=response.certificate,
            ip_address=response.ip_address,
            protocol=response.protocol,
        )
        decoded.headers = headers
        return decoded
