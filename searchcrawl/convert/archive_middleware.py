"""Answers requests for files in archives from the archive, which is fetched once a run (C8)."""

from __future__ import annotations

from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.headers import Headers as ScrapyHeaders

from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import MARK, find_archive
from searchcrawl.convert.archive_shelf import ArchiveShelf, Fetched, Unpacked
from searchcrawl.exceptions import ConversionFailed, WorkersUnavailable
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import build_visit_end, find_claim
from searchcrawl.items import Claim, Headers
from searchcrawl.run import Run, Shutdown
from searchcrawl.stages import stages_of

_OK: Final = 200
_NOT_MODIFIED: Final = 304
_GONE: Final = 404
_NO_ARCHIVE: Final = frozenset({_OK, 404, 410})
_CODED: Final = b"Content-Encoding"


class ArchiveMiddleware:
    """A URL that is made like that of a file in an archive gets its content from there, and the archive's validators.

    Without such a file in the archive the answer is 404; where the archive cannot be had, it is that of the archive. Where
    nothing is before the mark, or no archive, the URL is an ordinary one, and is requested.
    """

    def __init__(self, side: SideRequests, *, max_bytes: int, shutdown: Shutdown) -> None:
        self._side = side
        self._max_bytes = max_bytes
        self._shutdown = shutdown
        self._policy = SidePolicy(kind="archive", max_bytes=max_bytes + 1)
        self._shelf: ArchiveShelf | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ArchiveMiddleware:
        stages = stages_of(crawler)
        run = stages.get(Run)
        middleware = cls(stages.get(SideRequests), max_bytes=run.source.fetch.max_bytes, shutdown=run.shutdown)
        crawler.signals.connect(middleware.close, signal=signals.spider_closed)
        return middleware

    async def process_request(self, request: Request) -> Response | None:
        if MARK not in request.url:
            return None
        claim, place = find_claim(request), find_archive(request.url)
        if claim is None or place is None:
            return None
        archive, path = place
        try:
            found = await self._get_shelf().open(archive)
        except SideRequestFailed as error:
            raise build_visit_end(request, claim, error.code, error=str(error), transient=error.transient) from error
        except (ConversionFailed, BrokenCoding) as error:
            code = error.code if isinstance(error, ConversionFailed) else Code.READ_ERROR
            raise build_visit_end(request, claim, code, error=f"{error}") from error
        except WorkersUnavailable as error:
            self._shutdown.fail(error)
            raise
        if isinstance(found, Fetched):
            # Nothing there, or no archive: whatever is made like this URL is asked for itself.
            is_other = not found.is_within and found.status in _NO_ARCHIVE
            status = _GONE if found.status == _OK else found.status
            return None if is_other else _answer(request, status, found.headers)
        return self._answer_from(found, path, request, claim)

    def process_response(self, request: Request, response: Response) -> Response:
        # The files of an archive that was just fetched come next.
        if (
            response.status == _OK
            and find_claim(request) is not None
            and MARK not in request.url
            and response.body[:2] in _FIRST
            and _CODED not in response.headers
        ):
            self._get_shelf().note(response.url, _list_headers(response.headers), response.body)
        return response

    async def close(self) -> None:
        if self._shelf is not None:
            await self._shelf.close()

    def _answer_from(self, found: Unpacked, path: str, request: Request, claim: Claim) -> Response:
        if path not in found.kept:
            return _answer(request, _GONE, ())
        headers = found.list_headers(path)
        if _is_unchanged(request, headers):
            return _answer(request, _NOT_MODIFIED, headers)
        body = found.read(path)
        if body is None:
            raise build_visit_end(
                request, claim, Code.CONVERSION_FAILED, error="it cannot be unpacked, or needs a password"
            )
        if len(body) > self._max_bytes:
            raise build_visit_end(request, claim, Code.TOO_LARGE, error=f"it has {len(body)} bytes")
        return _answer(request, _OK, headers, body)

    def _get_shelf(self) -> ArchiveShelf:
        if self._shelf is None:
            self._shelf = ArchiveShelf(self._fetch)
        return self._shelf

    async def _fetch(self, url: str) -> Fetched:
        answer = await self._side.fetch(url, self._policy, inside=True)
        headers = _list_headers(answer.headers)
        if answer.status != _OK:
            return Fetched(answer.status, headers, b"")
        body = answer.decoded_body(self._max_bytes + 1)
        if len(body) > self._max_bytes:
            raise SideRequestFailed(f"the archive has over {self._max_bytes} bytes", code=Code.TOO_LARGE)
        return Fetched(answer.status, headers, body)


#: The first bytes of archives.
_FIRST: Final = frozenset({b"PK", b"\x1f\x8b", b"BZ", b"\xfd7"})


def _is_unchanged(request: Request, headers: Headers) -> bool:
    """Whether the archive is the one of the last visit, by its own validator."""
    own = dict(headers).get(b"ETag")
    return own is not None and request.headers.get(b"If-None-Match") == own


def _answer(request: Request, status: int, headers: Headers, body: bytes = b"") -> Response:
    sent = ScrapyHeaders()
    for name, value in headers:
        sent.appendlist(name, value)
    return Response(request.url, status=status, headers=sent, body=body, request=request)


def _list_headers(headers: ScrapyHeaders) -> Headers:
    return tuple((name, value) for name, values in headers.items() for value in values)
