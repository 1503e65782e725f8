"""Requests an archive for its files, within the same rules as a page: robots.txt, and what redirects may lead to (C8)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from searchcrawl import urls
from searchcrawl.codes import ROBOTS_UNAVAILABLE, TEMPORARY_REDIRECTS, Code
from searchcrawl.convert.archive_shelf import Fetched
from searchcrawl.http.side_requests import SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.items import Headers
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.rules import redirects
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import Redirect, RedirectKind
from searchcrawl.rules.rewriting import Rewriting


class ArchiveRefused(SideRequestFailed):
    """Robots.txt forbids an archive, or a redirect leads elsewhere: the ``rule``, and where it moved to for good."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        rule: str | None = None,
        transient: bool = False,
        retry_after_seconds: float | None = None,
        moved_to: str | None = None,
    ) -> None:
        super().__init__(message, code=code, rule=rule, transient=transient, retry_after_seconds=retry_after_seconds)
        self.moved_to = moved_to


class ArchiveFetching:
    """Requests archives beside the pages; for the event loop. ``robots`` is None if robots.txt is not obeyed."""

    def __init__(
        self,
        side: SideRequests,
        robots: RobotsFiles | None,
        boundary: Boundary,
        rewriting: Rewriting,
        *,
        max_bytes: int,
        max_redirects: int,
    ) -> None:
        self._side = side
        self._robots = robots
        self._boundary = boundary
        self._rewriting = rewriting
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        # Redirects for good move the row of the archive, and so those of its files.
        self._policy = SidePolicy(
            kind="archive", max_bytes=max_bytes + 1, followed=TEMPORARY_REDIRECTS, max_redirects=max_redirects
        )

    async def fetch(self, url: str) -> Fetched:
        """The answer in the place of an archive; raises SideRequestFailed, BrokenCoding."""
        answer = await self._follow(url)
        headers = list_headers(answer.headers)
        if answer.status != HTTPStatus.OK:
            return Fetched(answer.status, headers, b"")
        body = answer.decoded_body(self._max_bytes + 1)
        if len(body) > self._max_bytes:
            raise SideRequestFailed(f"the archive has over {self._max_bytes} bytes", code=Code.TOO_LARGE)
        return Fetched(answer.status, headers, body)

    async def _follow(self, url: str) -> SideAnswer:
        asked = url
        for _ in range(self._max_redirects + 1):
            answer = await self._side.fetch(asked, self._policy, check=self._check, inside=asked == url)
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

    async def _check(self, url: str) -> None:
        """Raises ArchiveRefused for a URL that robots.txt forbids."""
        if self._robots is None:
            return
        origin = urls.origin_of(url)
        copy = self._robots.find(origin) or await self._robots.fetch(origin)
        if copy.file is None:
            rule = ROBOTS_UNAVAILABLE if copy.code == Code.ROBOTS else None
            raise ArchiveRefused(
                copy.error,
                code=copy.code,
                rule=rule,
                transient=copy.transient,
                retry_after_seconds=copy.pause_seconds,
            )
        decision = copy.file.decide(url)
        if not decision.allowed:
            raise ArchiveRefused(f"robots.txt: {decision.rule}", code=Code.ROBOTS, rule=decision.rule)


def list_headers(headers: Mapping[Any, Any]) -> Headers:
    """The headers of an answer, each value on its own."""
    return tuple((name, value) for name, values in headers.items() for value in values)


def _take(answer: SideAnswer, verdict: Redirect) -> SideAnswer:
    """The answer, unless it is a redirect that is not followed."""
    if verdict.kind is RedirectKind.NONE:
        return answer
    code = Code.NO_LOCATION if verdict.code is None else verdict.code
    decision = verdict.decision
    rule = None if decision.allowed else f"{decision.key}: {decision.rule}"
    moved_to = verdict.url if verdict.kind is RedirectKind.MOVE else None
    raise ArchiveRefused(verdict.error or "its archive has moved", code=code, rule=rule, moved_to=moved_to)
