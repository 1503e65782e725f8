"""The robots.txt files of all origins of a run: each is requested once and kept for a day (RFC 9309 §2.4; C5, X-B2, X-B7)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.codes import ROBOTS_UNAVAILABLE, ROOT_CAUSES, Code
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import ENDLESS, SideAnswer, SideLimits, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import describe_status
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.run import Run
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Transaction

logger = logging.getLogger(__name__)

#: The parser reads 500 KiB; a few bytes more show that the file is longer.
_MAX_BYTES: Final = 600_000
_POLICY: Final = SidePolicy(kind="robots", max_bytes=_MAX_BYTES, limits=SideLimits.SITES)
_FRESH_SECONDS: Final = 24 * 3600.0
_PAUSE_SECONDS: Final = 1.0
_MAX_ORIGINS: Final = 10_000
#: The memory for all files; if it is exceeded, the oldest files are dropped, and requested again.
_MAX_MEMORY_BYTES: Final = 64 * 1024 * 1024
#: Longer files are parsed in a thread.
_THREAD_FROM_BYTES: Final = 64 * 1024
#: So long files are collected that are stored in one transaction.
_COLLECT_SECONDS: Final = 0.5
#: The longest time for which a stored file is used.
_MAX_STORED_MS: Final = 30 * clock.DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsCopy:
    """The robots.txt of an origin as it is known until ``expires``, in monotonic seconds.

    Without ``file`` it could not be fetched: ``error`` says why; it has a ``code``, and may be ``transient``.
    """

    expires: float
    file: RobotsFile | None = None
    code: int = Code.ROBOTS
    error: str = ""
    transient: bool = True

    @property
    def pause_seconds(self) -> float | None:
        """The seconds until the next try; None: no more in this run."""
        return max(self.expires - clock.monotonic(), 0.0) if self.transient else None

    @property
    def rule(self) -> str | None:
        """What the rows of visits keep that end because it could not be fetched; None where they have a code of their own."""
        return ROBOTS_UNAVAILABLE if self.code == Code.ROBOTS else None

    @property
    def memory_bytes(self) -> int:
        """About how much memory it takes."""
        return 0 if self.file is None else self.file.memory_bytes


class StoredRobots:
    """The bodies of robots.txt files in the database, by origin; for the event loop.

    Only those that this run was sent, or the interrupted run that it continues: a run of its own requests
    them anew, and a file that it cannot fetch forbids everything. They are written beside the requests, those that came
    meanwhile in one transaction: nothing waits for it, and what a killed process had not written is requested again.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._swept = False
        #: what waits to be written, and what is being written: None where an origin has no file any more
        self._waiting: dict[str, bytes | None] = {}
        self._under_way: dict[str, bytes | None] = {}
        self._writing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def save(self, origin: str, body: bytes | None) -> None:
        """Has the body of a robots.txt stored; None deletes the stored one, as the origin has no file any more.

        An error of the database is only logged: after a restart the file is requested again.
        """
        self._waiting[origin] = body
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_all())

    async def close(self) -> None:
        """Returns once all is written."""
        self._closing.set()
        if self._writing is not None:
            await self._writing

    async def load(self, origin: str, *, of_any_run: bool = False) -> bytes | None:
        """The last good answer of an origin, None without one. Raises SearchcrawlError."""
        for known in (self._waiting, self._under_way):
            if origin in known:
                return known[origin]
        since_ms = clock.now_ms() - _MAX_STORED_MS
        if not of_any_run:
            since_ms = max(self._run.row.horizon_ms, since_ms)

        def find(transaction: Transaction) -> bytes | None:
            return host_table.find_robots(transaction, origin, since_ms=since_ms)

        return await asyncio.to_thread(self._run.read, find)

    async def _write_all(self) -> None:
        while self._waiting:
            self._under_way, self._waiting = self._waiting, {}
            try:
                await asyncio.to_thread(self._run.write, self._write)
            except SearchcrawlError as error:
                first, *others = self._under_way
                also = f" (and of {len(others)} more)" if others else ""
                logger.warning("the copy of %s/robots.txt is not kept: %s", first, f"{error}{also}")
            self._under_way = {}
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _COLLECT_SECONDS)
        self._writing = None

    def _write(self, transaction: Transaction) -> None:
        now_ms = clock.now_ms()
        bodies = {origin: body for origin, body in self._under_way.items() if body is not None}
        if bodies and not self._swept:
            host_table.drop_robots_before(transaction, now_ms - _MAX_STORED_MS)
            self._swept = True
        host_table.save_robots(transaction, bodies, now_ms)
        # Most origins have no file, and had none.
        host_table.drop_robots(transaction, self._under_way.keys() - bodies.keys())


class RobotsFiles:
    """Fetches and keeps the robots.txt of each origin (``scheme://host[:port]``); for the event loop.

    A Crawl-delay is kept up to ``max_crawl_delay_seconds``, None: it is ignored. ``stored`` outlives the
    process. With ``learns_delays`` the stored file of any run tells the delay before the first request.
    """

    def __init__(
        self,
        side: SideRequests,
        rate_limiter: RateLimiter,
        *,
        user_agent: str,
        max_crawl_delay_seconds: float | None,
        stored: StoredRobots | None = None,
        learns_delays: bool = False,
    ) -> None:
        self._side = side
        self._user_agent = user_agent
        self._rate_limiter = rate_limiter
        self._max_crawl_delay_seconds = max_crawl_delay_seconds
        self._listeners: list[Callable[[str], None]] = []
        self._stored = stored
        self._learns_delays = learns_delays
        self._copies: OrderedDict[str, RobotsCopy] = OrderedDict()
        self._memory_bytes = 0
        self._parsing = asyncio.Lock()
        self._under_way: dict[str, asyncio.Task[RobotsCopy]] = {}
        #: origins that ask for a delay, and whose next page may have been handed out before that was known
        self.slowed: set[str] = set()

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener`` with the origin of each file that is read from now on."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """Returns once all copies are stored."""
        if self._stored is not None:
            await self._stored.close()

    def find(self, origin: str) -> RobotsCopy | None:
        """The known robots.txt of an origin; None if it has to be fetched."""
        copy = self._copies.get(origin)
        if copy is None or copy.expires <= clock.monotonic():
            return None
        # Those of hosts in use are kept.
        self._copies.move_to_end(origin)
        return copy

    async def fetch(self, origin: str, *, inside: bool = False) -> RobotsCopy:
        """Requests the robots.txt of an origin once for all who wait; returns what is known then.

        ``inside`` tells that a page of the origin is inside the boundary.
        """
        task = self._under_way.get(origin)
        if task is None:
            task = asyncio.ensure_future(self._fetch(origin, inside=inside))
            self._under_way[origin] = task
            task.add_done_callback(lambda _: self._under_way.pop(origin, None))
        # If one page is cancelled, the others must still get the answer.
        return await asyncio.shield(task)

    async def get_rules(self, origin: str) -> RobotsFile:
        """The rules in force at an origin; raises SideRequestFailed."""
        copy = self.find(origin) or await self.fetch(origin)
        if copy.file is None:
            raise SideRequestFailed(
                copy.error,
                code=copy.code,
                rule=copy.rule,
                transient=copy.transient,
                retry_after_seconds=copy.pause_seconds,
            )
        return copy.file

    async def check(self, url: str) -> None:
        """Raises SideRequestFailed for a URL that the rules in force at its origin forbid."""
        decision = (await self.get_rules(urls.origin_of(url))).decide(url)
        if not decision.allowed:
            raise SideRequestFailed(f"robots.txt: {decision.rule}", code=Code.ROBOTS, rule=decision.rule)

    async def _fetch(self, origin: str, *, inside: bool) -> RobotsCopy:
        url = f"{origin}/robots.txt"
        if self._stored is not None and self._learns_delays:
            known = await self._stored.load(origin, of_any_run=True)
            self._keep_delay(origin, await self._parse_body(known or b"", url), starts=False)
        try:
            copy = await self._read(await self._side.fetch(url, _POLICY, inside=inside), origin)
        except SideRequestFailed as error:
            if error.code in ENDLESS:
                # RFC 9309 §2.3.1.2
                copy = await self._take_as_missing(origin)
            else:
                # 951 is for what the host says, with a rule or with 5xx or 429. Evidence against the file is none against
                # the pages: no code that removes them.
                code = error.code if error.code in ROOT_CAUSES else Code.ROBOTS
                # Some failures that are final for a page may pass for robots.txt: it is requested again, after a long
                # pause.
                copy = self._build_failed(str(error), code=code, transient=error.transient)
        if copy.file is None:
            copy = await self._find_last_good(origin, copy)
        self._keep(origin, copy)
        if copy.file is not None:
            for listener in self._listeners:
                listener(origin)
        return copy

    async def _read(self, answer: SideAnswer, origin: str) -> RobotsCopy:
        status = answer.status
        if status == 429 or not 200 <= status < 500:
            return self._build_failed(describe_status(status), pause_seconds=answer.retry_after_seconds or 0.0)
        if not 200 <= status <= 299:
            return await self._take_as_missing(origin)
        try:
            body = answer.decoded_body(_MAX_BYTES)
        except BrokenCoding as error:
            return self._build_failed(str(error), code=Code.READ_ERROR)
        if self._stored is not None:
            self._stored.save(origin, body)
        return await self._parse(body, origin)

    async def _take_as_missing(self, origin: str) -> RobotsCopy:
        """Notes that an origin has no robots.txt: everything is allowed."""
        if self._stored is not None:
            self._stored.save(origin, None)
        return await self._parse(b"", origin)

    def _build_failed(
        self, error: str, *, code: int = Code.ROBOTS, transient: bool = True, pause_seconds: float = 0.0
    ) -> RobotsCopy:
        expires = clock.monotonic() + max(pause_seconds, _PAUSE_SECONDS)
        return RobotsCopy(expires=expires, code=code, error=f"robots.txt: {error}", transient=transient)

    async def _find_last_good(self, origin: str, failed: RobotsCopy) -> RobotsCopy:
        """The last good file, which stays in force while a newer one cannot be fetched (RFC 9309 §2.4)."""
        last = self._copies.get(origin)
        if last is not None and last.file is not None:
            return replace(last, expires=failed.expires)
        body = await self._stored.load(origin) if self._stored is not None else None
        if body is None:
            return failed
        logger.warning("%s: the copy of before is in force", failed.error)
        return replace(await self._parse(body, origin), expires=failed.expires)

    async def _parse(self, body: bytes, origin: str) -> RobotsCopy:
        file = await self._parse_body(body, f"{origin}/robots.txt")
        self._keep_delay(origin, file)
        return RobotsCopy(expires=clock.monotonic() + _FRESH_SECONDS, file=file)

    async def _parse_body(self, body: bytes, url: str) -> RobotsFile:
        if len(body) < _THREAD_FROM_BYTES:
            return RobotsFile.parse(body, self._user_agent, url=url)
        # One file at a time, because parsing takes many times the memory of the file.
        async with self._parsing:
            return await asyncio.to_thread(lambda: RobotsFile.parse(body, self._user_agent, url=url).prepare())

    def _keep_delay(self, origin: str, file: RobotsFile, *, starts: bool = True) -> None:
        if seconds := self._find_delay(file):
            self._rate_limiter.set_crawl_delay(urls.host_and_port(origin), delay_seconds=seconds, starts=starts)
            self.slowed.add(origin)

    def _find_delay(self, file: RobotsFile) -> float | None:
        asked, most = file.crawl_delay_seconds, self._max_crawl_delay_seconds
        return min(asked, most) if asked and most is not None else None

    def _keep(self, origin: str, copy: RobotsCopy) -> None:
        old = self._copies.pop(origin, None)
        self._memory_bytes += copy.memory_bytes - (old.memory_bytes if old else 0)
        self._copies[origin] = copy
        while len(self._copies) > _MAX_ORIGINS or (self._memory_bytes > _MAX_MEMORY_BYTES and len(self._copies) > 1):
            self._memory_bytes -= self._copies.popitem(last=False)[1].memory_bytes
