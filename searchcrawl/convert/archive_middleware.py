"""Answers requests for files in archives from the archive, which is fetched once a run (C8).

The archive is requested within the same rules as a page: robots.txt, and what redirects may lead to (C8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.headers import Headers as ScrapyHeaders

from searchcrawl import urls
from searchcrawl.bodies import Body
from searchcrawl.codes import TEMPORARY_REDIRECTS, Code
from searchcrawl.convert.archive_reader import ARCHIVE, find_archive
from searchcrawl.convert.archive_shelf import ArchiveShelf, Fetched, Unpacked
from searchcrawl.convert.detection import detect
from searchcrawl.exceptions import ConversionFailed, DiskFull, WorkersUnavailable
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.large_response import build_response, find_body
from searchcrawl.http.side_requests import SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import VisitEnded, build_visit_end, find_claim
from searchcrawl.items import Claim, Headers, Hop, Link, Outcome
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules import redirects
from searchcrawl.rules.archives import MARK, is_called_archive, list_archives
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.rules.redirects import Redirect, RedirectKind, write_target
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

_NOT_MODIFIED: Final = 304
_GONE: Final = 404
_CODED: Final = b"Content-Encoding"
_NOTHING_THERE: Final = frozenset({_GONE, 410})
#: No status, so that none agrees with it.
_UNKNOWN: Final = -1
#: A flag of a response: it is what an archive says, or what says that there is none.
_OF_ARCHIVE: Final = "of_archive"


class ArchiveMiddleware:
    """A URL that is made like that of a file in an archive gets its content from there, and the archive's validators.

    Without such a file in the archive the answer is 404; where the archive cannot be had, it is that of the archive, and
    where a page came in its place, the visit fails. What forbids the archive forbids its files. Where the URL before the
    mark is not called like an archive, is none, and the row was no file in one, the URL is an ordinary one. ``robots`` is
    None if robots.txt is not obeyed.
    """

    def __init__(self, run: Run, side: SideRequests, robots: RobotsFiles | None) -> None:
        self._side = side
        self._robots = robots
        self._boundary = run.boundary
        self._rewriting = run.rewriting
        self._max_bytes = run.source.fetch.max_bytes
        self._spools = run.project.cache_dir
        self._max_redirects = run.source.fetch.max_redirects
        self._shutdown = run.shutdown
        # Redirects for good move the row of the archive, and so those of its files.
        self._policy = SidePolicy(
            kind="archive",
            max_bytes=self._max_bytes + 1,
            followed=TEMPORARY_REDIRECTS,
            max_redirects=self._max_redirects,
            may_be_large=True,
        )
        self._shelf: ArchiveShelf | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ArchiveMiddleware:
        stages = stages_of(crawler)
        middleware = cls(stages.get(Run), stages.get(SideRequests), stages.find(RobotsFiles))
        crawler.signals.connect(middleware.close, signal=signals.spider_closed)
        return middleware

    async def process_request(self, request: Request) -> Response | None:
        if MARK not in request.url:
            return None
        claim, place = find_claim(request), find_archive(request.url)
        marked = list_archives(request.url, in_archive=True)
        if claim is None or place is None or not marked:
            return None
        try:
            return await self._read(place, marked[0], request, claim)
        except ConversionFailed as error:
            raise build_visit_end(request, claim, error.code, error=f"{error}") from error
        except (WorkersUnavailable, DiskFull) as error:
            # It says nothing against the file: the next run visits it.
            self._shutdown.fail(error)
            raise VisitEnded(Outcome(claim=claim, code=Code.NOT_FETCHED, error=str(error), released=True)) from error

    async def _read(self, place: tuple[str, str], first: str, request: Request, claim: Claim) -> Response | None:
        """The answer to a URL whose part before the first mark is ``first``; None where it is to be requested itself."""
        archive, path = place
        outermost, doubt = await self._find_outermost(first, request, claim)
        # What was read from an archive is never requested: a server knows nothing of it.
        is_member = claim.in_archive or is_called_archive(outermost)
        if (refusal := self._refuse(outermost, request, claim)) is not None:
            if is_member:
                raise _build_lost(request, claim) if doubt else refusal
            return None
        try:
            found = await self._get_shelf().open(archive, outermost)
        except (SideRequestFailed, BrokenCoding) as error:
            if not is_member:
                return None
            ended = _build_lost(request, claim) if doubt else _build_failed(outermost, request, claim, error)
            raise ended from error
        if isinstance(found, Fetched):
            if doubt and not found.is_within and found.status != doubt:
                raise _build_lost(request, claim)
            return _answer_without(found, request, claim, is_member=is_member)
        return await self._answer_from(found, path, request, claim)

    async def _find_outermost(self, first: str, request: Request, claim: Claim) -> tuple[str, int]:
        """The outermost archive of a URL, and the answer that has to agree before it counts as none; 0: any will do.

        A mark may be part of the path of an archive. So the outermost is the first that is called like one, unless what
        stands before that is one as well.
        """
        named = list_archives(request.url)
        if not named or named[0] == first:
            return first, 0
        if self._refuse(first, request, claim) is not None:
            return named[0], _UNKNOWN if claim.in_archive else 0
        try:
            found = await self._get_shelf().open(first, first)
        except (SideRequestFailed, BrokenCoding):
            # It cannot be had, and may be one: the file stays unless the other one has it.
            return named[0], _UNKNOWN if claim.in_archive else 0
        if isinstance(found, Unpacked):
            return first, 0
        return named[0], found.status if claim.in_archive and found.status not in _NOTHING_THERE else 0

    def process_response(self, request: Request, response: Response) -> Response:
        # The files of an archive that was just fetched come next.
        claim = find_claim(request)
        if (
            response.status == HTTPStatus.OK
            and claim is not None
            and _OF_ARCHIVE not in response.flags
            and _CODED not in response.headers
            and detect(find_body(response)) in ARCHIVE.mime_types
        ):
            # Its files are called by the URL of the row, wherever redirects led.
            self._get_shelf().note(claim.url, list_headers(response.headers), find_body(response))
        return response

    async def close(self) -> None:
        if self._shelf is not None:
            await self._shelf.close()

    def _refuse(self, archive: str, request: Request, claim: Claim) -> VisitEnded | None:
        """The end of a visit whose archive may not be requested by the boundary, or by robots.txt."""
        decision = self._boundary.decide_known(archive, claim.depth)
        if not decision.allowed:
            rule = decision.text
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

    async def _answer_from(self, found: Unpacked, path: str, request: Request, claim: Claim) -> Response:
        if path not in found.kept:
            return _answer(request, _GONE, ())
        headers = found.list_headers(path)
        if _is_unchanged(request, headers):
            return _answer(request, _NOT_MODIFIED, headers)
        size = found.measure(path)
        if size is None:
            error = "it cannot be unpacked, or needs a password"
            raise build_visit_end(request, claim, Code.CONVERSION_FAILED, error=error)
        if size > self._max_bytes:
            raise build_visit_end(request, claim, Code.TOO_LARGE, error=f"it has {size} bytes")
        body = await asyncio.to_thread(found.read, path)
        return _answer(request, HTTPStatus.OK, headers, b"" if body is None else body)

    def _get_shelf(self) -> ArchiveShelf:
        if self._shelf is None:
            self._shelf = ArchiveShelf(self._fetch)
        return self._shelf

    async def _fetch(self, url: str) -> Fetched:
        """The answer in the place of an archive; raises SideRequestFailed, BrokenCoding."""
        answer = await self._follow(url)
        headers = list_headers(answer.headers)
        if answer.status != HTTPStatus.OK:
            return Fetched(answer.status, headers, b"")
        body = await asyncio.to_thread(answer.decoded_large_body, self._max_bytes + 1, self._spools)
        if len(body) > self._max_bytes:
            raise SideRequestFailed(f"the archive has over {self._max_bytes} bytes", code=Code.TOO_LARGE)
        return Fetched(answer.status, headers, body)

    async def _follow(self, url: str) -> SideAnswer:
        asked = url
        for _ in range(self._max_redirects + 1):
            # robots.txt may forbid it: that is raised as well.
            check = None if self._robots is None else self._robots.check
            answer = await self._side.fetch(asked, self._policy, check=check, inside=asked == url)
            verdict = redirects.decide(
                answer.status,
                answer.headers.getlist(b"Location"),
                base_url=answer.url,
                boundary=self._boundary,
                max_redirects=self._max_redirects,
                rewriting=self._rewriting,
                own_url=url,
            )
            if verdict.kind is not RedirectKind.FOLLOW or verdict.url is None:
                return _take(answer, verdict)
            # It moved for good to itself, with parameters that are no part of its identity.
            asked = verdict.url
        raise SideRequestFailed(f"more than {self._max_redirects} redirects", code=Code.REDIRECT_LOOP)


def _build_failed(archive: str, request: Request, claim: Claim, error: SideRequestFailed | BrokenCoding) -> VisitEnded:
    """The end of a visit whose archive cannot be had: that of the archive itself."""
    if isinstance(error, BrokenCoding):
        return build_visit_end(request, claim, Code.READ_ERROR, error=f"{error}")
    ended = build_visit_end(
        request,
        claim,
        error.code,
        error=str(error),
        rule=error.rule,
        transient=error.transient,
        retry_after_seconds=error.retry_after_seconds,
    )
    if isinstance(error, ArchiveMoved):
        target = f"{error.target}{request.url[len(archive) :]}"
        links = () if error.rule else (Link(target),)
        hops = (Hop(archive, 301),)
        return VisitEnded(replace(ended.outcome, links=links, redirects=hops, error=write_target(target)))
    if error.code == Code.OUTSIDE_BOUNDARY:
        # It leads to an excluded URL, perhaps for a while.
        return VisitEnded(replace(ended.outcome, redirects=(Hop(archive, 302),)))
    return ended


def _answer_without(found: Fetched, request: Request, claim: Claim, *, is_member: bool) -> Response | None:
    """The answer where there is no archive; None where the URL is to be requested itself."""
    if found.is_within:
        return _answer(request, _GONE if found.status == HTTPStatus.OK else found.status, found.headers)
    if not is_member:
        return None
    if found.status == HTTPStatus.OK:
        # A page in its place, as while a site is repaired, says nothing about what is in the archive.
        raise _build_lost(request, claim)
    return _answer(request, found.status, found.headers)


def _build_lost(request: Request, claim: Claim) -> VisitEnded:
    return build_visit_end(request, claim, Code.CONVERSION_FAILED, error="its archive is none now")


def _is_unchanged(request: Request, headers: Headers) -> bool:
    """Whether the archive is the one of the last visit, by its own validator."""
    own = dict(headers).get(b"ETag")
    return own is not None and request.headers.get(b"If-None-Match") == own


def _answer(request: Request, status: int, headers: Headers, body: Body = b"") -> Response:
    sent = ScrapyHeaders()
    for name, value in headers:
        sent.appendlist(name, value)
    return build_response(
        Response, request.url, status=status, headers=sent, body=body, flags=[_OF_ARCHIVE], request=request
    )


class ArchiveMoved(SideRequestFailed):
    """An archive has moved to another URL for good."""

    def __init__(self, message: str, *, code: int, rule: str | None, target: str) -> None:
        super().__init__(message, code=code, rule=rule)
        self.target = target


def list_headers(headers: Mapping[Any, Any]) -> Headers:
    """The headers of an answer, each value on its own."""
    return tuple((name, value) for name, values in headers.items() for value in values)


def _take(answer: SideAnswer, verdict: Redirect) -> SideAnswer:
    """The answer, unless it is a redirect that is not followed."""
    if verdict.kind is RedirectKind.NONE:
        return answer
    code = Code.NO_LOCATION if verdict.code is None else verdict.code
    decision = verdict.decision
    rule = None if decision.allowed else decision.text
    error = verdict.error or "its archive has moved"
    if verdict.kind is RedirectKind.MOVE and verdict.url is not None:
        raise ArchiveMoved(error, code=code, rule=rule, target=verdict.url)
    raise SideRequestFailed(error, code=code, rule=rule)
