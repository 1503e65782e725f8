"""One member of a run, as the process of the run sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.process import BaseProcess
from socket import socket, socketpair
from typing import Any, Final, NamedTuple

from searchcrawl.documents.user_pipeline import PluginErrors
from searchcrawl.exceptions import ConfigurationError, LogError
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Claim
from searchcrawl.members.channel import Channel
from searchcrawl.members.messages import Call, Finish, Ping, Pong, Reply, Setup
from searchcrawl.members.services import Services, SharedProbes
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsFiles
from searchcrawl.run import Run
from searchcrawl.sources.secrets import list_hidden
from searchcrawl.traces import ParseMark, StackFile
from searchcrawl.worker_process import pack, spawn

#: A process whose socket has closed is ending, and then its exit code says why.
_EXIT_SECONDS: Final = 5.0
#: One that has no more visits may take so long to end: components of a user's own may have something to finish.
_CLOSE_SECONDS: Final = 60.0


class Death(NamedTuple):
    """How a process ended; ``stalled``: it did not turn any more, ``by_visit``: because of a page.

    ``parsed`` are the rows whose pages it was parsing.
    """

    how: str
    stalled: bool
    by_visit: bool
    parsed: frozenset[int] = frozenset()


def start_member(
    run: Run,
    settings: Mapping[str, tuple[Any, int]],
    serve: Callable[[socket, socket, Setup], None],
    number: int,
    *,
    rate_limiter: RateLimiter,
    robots: RobotsFiles | None,
    probes: SharedProbes,
    plugin_errors: PluginErrors,
    lookups: NameLookups,
) -> Member:
    """Starts the member of a number, whose process runs ``serve``; raises OSError where there is no process left."""
    setup = Setup(
        number=number,
        project=run.project,
        source=run.source,
        source_id=run.source_id,
        lease=run.lease,
        row=run.row,
        fingerprint=run.fingerprint,
        forced=run.forced,
        settings=settings,
        log_level=logging.getLogger("searchcrawl").getEffectiveLevel(),
        hidden=list_hidden(),
    )
    stacks = StackFile(run.project.logs_dir, run.source.name, member=number)
    mark = ParseMark(run.project.logs_dir, run.source.name, member=number)
    _require_portable(settings)
    files, theirs = socketpair()
    try:
        process, connection = spawn(serve, theirs, setup, is_leaf=False)
    except BaseException:
        files.close()
        raise
    finally:
        theirs.close()
    services = partial(Services, rate_limiter, robots, probes, plugin_errors, lookups)
    return Member(number, process, connection, files, stacks, mark, services)


def _require_portable(settings: Mapping[str, tuple[Any, int]]) -> None:
    """Raises ConfigurationError for a setting that no other process can have, as a function without a name."""
    for name, (value, _) in settings.items():
        try:
            pack(value)
        except Exception as error:
            message = f"cannot be handed to other processes, as fetch.processes asks: {join_lines(error)}"
            raise ConfigurationError("settings", name, message) from error


class Member:
    """A process that visits and reads pages; ``build_services`` makes what answers its calls with a function that sends."""

    def __init__(
        self,
        number: int,
        process: BaseProcess,
        connection: socket,
        files: socket,
        stacks: StackFile,
        mark: ParseMark,
        build_services: Callable[[Callable[[Reply], None]], Services],
    ) -> None:
        self.number = number
        self.is_ready = self.has_closed = False
        #: by row: the claim of each visit that it has begun, or is to begin
        self.under_way: dict[int, Claim] = {}
        self._process = process
        self._connection, self._files = connection, files
        self._stacks = stacks
        self._mark = mark
        self._ended = asyncio.Event()
        self._channel = Channel(self._take, self._lose)
        self.send = self._channel.send
        self._services = build_services(self.send)
        self._unanswered = 0
        self._is_open = self._is_held = False

    async def open(self, take: Callable[[Any], None], lost: Callable[[], None]) -> None:
        """Begins to hear: ``take`` gets each message that is no call, ``lost`` is called when the process has ended."""
        self._tell, self._tell_lost, self._is_open = take, lost, True
        await self._channel.open(self._connection, self._files)

    def hold_back(self) -> None:
        """Hears nothing for now."""
        self._is_held = True
        self._channel.hold_back()

    def let_through(self) -> None:
        """Hears again."""
        self._is_held = False
        self._channel.let_through()

    def ping(self) -> int:
        """Asks whether the process turns; returns how often it has not answered in a row."""
        if not self._is_held and not self.has_closed:
            self._unanswered += 1
            self.send(Ping())
        return self._unanswered

    def kill(self) -> None:
        """Ends the process, which is found out as any other death."""
        self._process.kill()

    async def finish(self) -> None:
        """Has it end what it has under way, if it has begun to visit; returns once the process has ended."""
        if not self._is_open:
            # The crawl did not begin.
            self._process.kill()
            self._connection.close()
            self._files.close()
            return
        if self.is_ready or self._ended.is_set():
            self.send(Finish())
        else:
            # It visits nothing, and a component of a user's own may hold it up.
            self.has_closed = True
            self._process.kill()
        await self._ended.wait()

    async def find_death(self) -> Death:
        """How the process ended; ends it where it did not."""
        return await asyncio.to_thread(self._find_death)

    def note_closed(self) -> None:
        """Notes that it ends; where it does not, it is ended."""
        self.has_closed = True
        asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._process.kill)

    def _take(self, message: Any) -> None:
        # Whatever it says, it turns.
        self._unanswered = 0
        if isinstance(message, Pong):
            return
        if isinstance(message, Call):
            self._services.take(message)
        else:
            self._tell(message)

    def _lose(self) -> None:
        self._services.close()
        self._ended.set()
        self._tell_lost()

    def _find_death(self) -> Death:
        self._process.join(_EXIT_SECONDS)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join(_EXIT_SECONDS)
        code = self._process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        try:
            stalled = self._stacks.is_written()
            by_visit = stalled and self._stacks.is_of_visit()
            self._stacks.remove()
            parsed = self._mark.read()
            self._mark.remove()
        except OSError as error:
            raise LogError(f"log {error.filename or self._stacks.path}: {error.strerror or error}") from error
        return Death("it stopped turning" if stalled else how, stalled, by_visit, parsed)
