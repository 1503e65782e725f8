"""Answers requests for files in archives from the archive, which is fetched once a run (C8)."""

from __future__ import annotations

from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.headers import Headers as ScrapyHeaders

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import MARK, find_archive, is_called_archive
from searchcrawl.convert.archive_shelf import ArchiveShelf, Fetched, Unpacked
from searchcrawl.exceptions import ConversionFailed, WorkersUnavailable
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import VisitEnded, build_visit_end, find_claim
from searchcrawl.items import Claim, Headers
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules.boundary import Boundary, refusal_code
from searchcrawl.run import Run, Shutdown
from searchcrawl.stages import stages_of

_OK: Final = 200
_NOT_MODIFIED: Final = 304
_GONE: Final = 404
_NO_ARCHIVE: Final = frozenset({_OK, 404, 410})
_CODED: Final = b"Content-Encoding"


class ArchiveMiddleware:
    """A URL that is made like that of a file in an archive gets its content from there, and the archive's validators.

    Without such a file in the archive the answer is 404; where the archive cannot be had, it is that of the archive, and
    where a page came in its place, the visit fails. What forbids the archive forbids its files. Where the URL before the
    mark is not called like an archive and is none, the URL is an ordinary one, and is requested.
    """

    def __init__(
        self, side: SideRequests, robots: RobotsFiles | None, boundary: Boundary, *, max_bytes: int, shutdown: Shutdown
    ) -> None:
        self._side = side
        self._robots = robots
        self._boundary = boundary
        self._max_bytes = max_bytes
        self._shutdown = shutdown
        self._policy = SidePolicy(kind="archive", max_bytes=max_bytes + 1)
        self._shelf: ArchiveShelf | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ArchiveMiddleware:
        stages = stages_of(crawler)
        run = stages.get(Run)
        middleware = cls(
            stages.get(SideRequests),
            stages.find(RobotsFiles),
            run.boundary,
            max_bytes=run.source.fetch.max_bytes,
            shutdown=run.shutdown,
        )
        crawler.signals.connect(middleware.close, signal=signals.spider_closed)
        return middleware

    async def process_request(self, request: Request) -> Response | None:
        if MARK not in request.url:
            return None
        claim, place = find_claim(request), find_archive(request.url)
        if claim is None or place is None:
            return None
        archive, path = place
        outermost = archive.partition(MARK)[0]
        is_named = is_called_archive(outermost)
        if (refusal := self._refuse(outermost, request, claim)) is not None:
            if is_named:
                raise refusal
            return None
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
            return _answer_without(found, request, claim, is_named=is_named)
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

    def _refuse(self, archive: str, request: Request, claim: Claim) -> VisitEnded | None:
        """The end of a visit whose archive may not be requested by the boundary, or by robots.txt."""
        decision = self._boundary.decide_known(archive, claim.depth)
        if not decision.allowed:
            rule = f"{decision.key}: {decision.rule}"
            error = f"its archive is outside the boundary ({rule})"
            return build_visit_end(request, claim, refusal_code(decision), rule=rule, error=error)
        # The file was fetched for the URL itself, which has the same origin.
        copy = self._robots.find(urls.origin_of(archive)) if self._robots is not None else None
        if copy is None or copy.file is None:
            return None
        decision = copy.file.decide(archive)
        if decision.allowed:
            return None
        return build_visit_end(request, claim, Code.ROBOTS, rule=decision.rule, error=f"robots.txt: {decision.rule}")

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


def _answer_without(found: Fetched, request: Request, claim: Claim, *, is_named: bool) -> Response | None:
    """The answer where there is no archive; None where the URL is to be requested itself."""
    if found.is_within:
        return _answer(request, _GONE if found.status == _OK else found.status, found.headers)
    if is_named and found.status == _OK:
        # A page in its place, as while a site is repaired, says nothing about what is in the archive.
        raise build_visit_end(request, claim, Code.CONVERSION_FAILED, error="its archive is none now")
    return _answer(request, found.status, found.headers) if is_named or found.status not in _NO_ARCHIVE else None


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
