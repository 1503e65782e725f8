"""Obeys robots.txt, asked for once per scheme, host and port (RFC 9309; C5, D7)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from searchcrawl import clock, urls
from searchcrawl.codes import ROBOTS_UNAVAILABLE, UNREACHABLE, Code
from searchcrawl.exceptions import HostBlocked, InvalidUrl
from searchcrawl.http.content_coding import BrokenCoding, codings_of, undo_prefix
from searchcrawl.http.outcome_middleware import described, status_line
from searchcrawl.http.redirect_middleware import slot_of
from searchcrawl.http.visit_end import VisitEnded, claim_of, ended, failing_of
from searchcrawl.items import Claim
from searchcrawl.politeness.backoff import parse_retry_after
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.robots.robots_copies import RobotsCopies
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

#: A parser reads 500 KiB; a little more shows that there was more.
_MAX_BYTES: Final = 600_000
_MAX_REDIRECTS: Final = 5
_FRESH_SECONDS: Final = 24 * 3600.0
_PAUSE_SECONDS: Final = 1.0
_MAX_ORIGINS: Final = 10_000
#: What all copies may take together; the oldest are asked for again.
_MAX_MEMORY_BYTES: Final = 64 * 1024 * 1024
#: Longer files are read in a thread.
_THREAD_FROM_BYTES: Final = 64 * 1024
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """What is known of one origin's robots.txt; without ``file`` it could not be had, for ``error``."""

    expires: float
    file: RobotsFile | None = None
    code: Code = Code.ROBOTS
    error: str = ""
    transient: bool = True
    memory_bytes: int = 0


class RobotsUnavailable(Exception):
    """The robots.txt of an origin cannot be had now; ``pause_seconds`` is when to ask again, None: not at all."""

    def __init__(self, message: str, *, code: Code, pause_seconds: float | None) -> None:
        self.code = code
        self.pause_seconds = pause_seconds
        super().__init__(message)


class RobotsMiddleware:
    """Ends visits that robots.txt forbids (951, ``rule`` is its line).

    Where it answers 5xx or 429, all visits of that origin end with 951 and ``robots.unavailable``;
    where the host cannot be reached, with the code of that; both are asked again after a pause.
    ``download`` fetches a robots request through the downloader. ``copies`` outlive the process.
    """

    def __init__(
        self,
        *,
        download: Callable[[Request], Awaitable[Response]],
        rate_limiter: RateLimiter,
        user_agent: str,
        obey: bool,
        max_crawl_delay_seconds: float | None,
        copies: RobotsCopies | None = None,
        pause_seconds: float = _PAUSE_SECONDS,
        max_memory_bytes: int = _MAX_MEMORY_BYTES,
    ) -> None:
        self._download = download
        self._listeners: list[Callable[[str], None]] = []
        self._stored = copies
        self._rate_limiter = rate_limiter
        self._user_agent = user_agent
        self._obey = obey
        self._max_crawl_delay_seconds = max_crawl_delay_seconds
        self._pause_seconds = pause_seconds
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self._memory_bytes = 0
        self._max_memory_bytes = max_memory_bytes
        self._reading = asyncio.Lock()
        self._under_way: dict[str, asyncio.Task[_Copy]] = {}
        #: origins that ask for a delay, and whose next page may have been handed out before that was known
        self._slowed: set[str] = set()
        if not obey:
            logger.warning("robots.txt is not obeyed for this source (robots.obey = false)")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMiddleware:
        return stages_of(crawler).get(cls)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Has ``listener`` called with the origin of each file that is read from now on."""
        self._listeners.append(listener)

    def process_request(self, request: Request) -> Awaitable[None] | None:
        if not self._obey:
            return None
        claim = claim_of(request)
        if claim is None:
            return None
        origin = _origin(request.url)
        copy = self._copies.get(origin)
        if copy is None or copy.expires <= clock.monotonic():
            return self._ask_then_judge(request, claim, origin)
        if self._slowed and origin in self._slowed:
            return self._judge_in_turn(request, claim, origin, copy)
        self._judge(request, claim, copy)
        return None

    async def file_of(self, origin: str) -> RobotsFile:
        """The rules in force at ``scheme://host[:port]``, asked for where they are not known; or RobotsUnavailable."""
        copy = self._copies.get(origin)
        if copy is None or copy.expires <= clock.monotonic():
            copy = await self._asked(origin)
        if copy.file is None:
            pause = max(copy.expires - clock.monotonic(), 0.0) if copy.transient else None
            raise RobotsUnavailable(copy.error, code=copy.code, pause_seconds=pause)
        return copy.file

    async def _ask_then_judge(self, request: Request, claim: Claim, origin: str) -> None:
        await self._judge_in_turn(request, claim, origin, await self._asked(origin))

    async def _judge_in_turn(self, request: Request, claim: Claim, origin: str, copy: _Copy) -> None:
        self._judge(request, claim, copy)
        self._slowed.discard(origin)
        # The page's own turn went by while the file was fetched, for it or for a sitemap.
        await self._turn(request.url)

    async def _asked(self, origin: str) -> _Copy:
        task = self._under_way.get(origin)
        if task is None:
            task = asyncio.ensure_future(self._ask(origin))
            self._under_way[origin] = task
            task.add_done_callback(lambda _: self._under_way.pop(origin, None))
        # One page that is cancelled must not take the answer from the others.
        return await asyncio.shield(task)

    def _judge(self, request: Request, claim: Claim, copy: _Copy) -> None:
        if copy.file is None:
            raise self._unavailable(request, claim, copy)
        decision = copy.file.decide(request.url)
        if not decision.allowed:
            raise ended(request, claim, Code.ROBOTS, rule=decision.rule, error=f"robots.txt: {decision.rule}")

    @staticmethod
    def _unavailable(request: Request, claim: Claim, copy: _Copy) -> VisitEnded:
        pause = max(copy.expires - clock.monotonic(), 0.0)
        return ended(
            request,
            claim,
            copy.code,
            rule=ROBOTS_UNAVAILABLE if copy.code is Code.ROBOTS else None,
            error=copy.error,
            transient=copy.transient,
            retry_after_seconds=pause if copy.transient else None,
        )

    async def _turn(self, url: str) -> None:
        await self._rate_limiter.wait_until_allowed(slot_of(url))

    async def _ask(self, origin: str) -> _Copy:
        url = f"{origin}/robots.txt"
        try:
            response = await self._fetch_in_turn(url)
            copy = await self._read(response, url, origin)
        except HostBlocked as error:
            copy = _Copy(expires=_in(self._pause_seconds), error=f"robots.txt: {error}", transient=False)
        except Exception as error:
            failing = failing_of(error)
            if failing is None:
                raise
            code = failing.code if failing.code in UNREACHABLE else Code.ROBOTS
            text = f"robots.txt: {described(failing.code, error)}"
            # What is not tried again for a page might still be mended here; the pause keeps it rare.
            copy = _Copy(expires=_in(self._pause_seconds), code=code, error=text, transient=failing.transient)
        copy = await self._or_last_good(origin, copy)
        self._keep(origin, copy)
        if copy.file is not None:
            for listener in self._listeners:
                listener(origin)
        return copy

    async def _or_last_good(self, origin: str, copy: _Copy) -> _Copy:
        """A file that was there stays in force while its successor cannot be had (RFC 9309 §2.4)."""
        if copy.file is not None:
            return copy
        last = self._copies.get(origin)
        if last is not None and last.file is not None:
            return replace(last, expires=copy.expires)
        body = await self._stored.recall(origin) if self._stored is not None else None
        if body is None:
            return copy
        logger.warning("%s: the copy of before is in force", copy.error)
        return replace(await self._of_body(body, f"{origin}/robots.txt"), expires=copy.expires)

    async def _fetch_in_turn(self, url: str) -> Response:
        """The same under the cap on sites; where it redirects to another host, that one needs no slot of its own."""
        slot = slot_of(url)
        await self._rate_limiter.acquire_host(slot)
        try:
            return await self._fetch(url)
        finally:
            self._rate_limiter.release_host(slot)

    async def _fetch(self, url: str) -> Response:
        """The answer after at most five redirects; the last redirect itself where there are more."""
        asked_for = url
        for hop in range(_MAX_REDIRECTS + 1):
            await self._turn(url)
            meta: dict[str, Any] = {
                "robots": True,
                "asked_for": asked_for,
                "download_slot": slot_of(url),
                "verbatim_url": True,
                "body_prefix_bytes": _MAX_BYTES,
            }
            response = await self._download(Request(url, meta=meta, dont_filter=True))
            location = response.headers.get(b"Location")
            if hop == _MAX_REDIRECTS or response.status not in _REDIRECTS or not location:
                break
            try:
                url = urls.resolve(location.decode("utf-8", "replace"), url)
            except InvalidUrl:
                break
        return response

    async def _read(self, response: Response, url: str, origin: str) -> _Copy:
        status = response.status
        if status == 429 or status >= 500:
            pause = parse_retry_after(response.headers.get(b"Retry-After")) or 0.0
            return _Copy(expires=_in(max(pause, self._pause_seconds)), error=f"robots.txt: {status_line(status)}")
        try:
            codings = codings_of(response.headers.getlist(b"Content-Encoding"))
            body = undo_prefix(response.body, codings, max_bytes=_MAX_BYTES) if 200 <= status <= 299 else b""
        except BrokenCoding as error:
            return _Copy(expires=_in(self._pause_seconds), error=f"robots.txt: {error}")
        if self._stored is not None:
            await self._stored.keep(origin, body if 200 <= status <= 299 else None)
        return await self._of_body(body, url, status)

    async def _of_body(self, body: bytes, url: str, status: int = 200) -> _Copy:
        if len(body) < _THREAD_FROM_BYTES:
            file = RobotsFile.from_answer(status, body, self._user_agent, url=url)
        else:
            # One at a time: it takes many times the memory of the file.
            async with self._reading:
                file = await asyncio.to_thread(self._read_long, status, body, url)
        self._pass_on_delay(file, url)
        return _Copy(expires=_in(_FRESH_SECONDS), file=file, memory_bytes=file.memory_bytes)

    def _read_long(self, status: int, body: bytes, url: str) -> RobotsFile:
        return RobotsFile.from_answer(status, body, self._user_agent, url=url).prepare()

    def _pass_on_delay(self, file: RobotsFile, url: str) -> None:
        seconds = file.crawl_delay_seconds
        if seconds and self._max_crawl_delay_seconds is not None:
            delay_seconds = min(seconds, self._max_crawl_delay_seconds)
            self._rate_limiter.set_crawl_delay(slot_of(url), delay_seconds=delay_seconds)
            self._slowed.add(_origin(url))

    def _keep(self, origin: str, copy: _Copy) -> None:
        old = self._copies.pop(origin, None)
        self._memory_bytes += copy.memory_bytes - (old.memory_bytes if old else 0)
        self._copies[origin] = copy
        while len(self._copies) > _MAX_ORIGINS or (
            self._memory_bytes > self._max_memory_bytes and len(self._copies) > 1
        ):
            self._memory_bytes -= self._copies.popitem(last=False)[1].memory_bytes


def _in(seconds: float) -> float:
    return clock.monotonic() + seconds


def _origin(url: str) -> str:
    """``scheme://host[:port]`` of an identity, as it is written there."""
    slash = url.find("/", 8)
    return url if slash < 0 else url[:slash]
