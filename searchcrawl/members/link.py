"""A member's side of the link to the process of its run: what it asks there, and what it hands on."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.documents.user_pipeline import PluginErrors
from searchcrawl.exceptions import HostBlocked, SearchcrawlError, StoreError, WorkersUnavailable
from searchcrawl.http.visit_end import join_lines
from searchcrawl.members.channel import Channel
from searchcrawl.members.messages import Call, Failed, Logged, Ping, Pong, Reply, Setup, Stopped
from searchcrawl.members.services import (
    ADD_ERROR,
    BEGIN_PROBE,
    CONFIRM_NAME,
    END_PROBE,
    FIND_NAME,
    FORGET_NAME,
    NOTE_GOOD,
    NOTE_TAKEN,
    ROBOTS,
    WITHDRAW,
)
from searchcrawl.politeness.host_registry import LATE_SECONDS
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsCopy, RobotsFiles
from searchcrawl.run import Shutdown
from searchcrawl.soft404.signature import ProbeResult, Probes
from searchcrawl.soft404.taken_pages import TakenPage
from searchcrawl.store.name_table import DnsAnswer
from searchcrawl.worker_process import pack, unpack

#: So often it asks again for a turn of which it has heard late: a machine may have no time for it at all.
_MOST_TURNS: Final = 20
#: Of so many hosts it is remembered that they have answered.
_MOST_THERE: Final = 10_000
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class MemberLink:
    """The link of one member; ``listener`` is called with what is no reply. The process ends when the other side has."""

    def __init__(
        self, connection: socket.socket, files: socket.socket, setup: Setup, *, lost: Callable[[], None]
    ) -> None:
        self.setup = setup
        self._connection, self._files = connection, files
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self.listener: Callable[[Any], None] = lambda message: None
        self.channel = Channel(self._take, lost)
        self.send = self.channel.send

    async def open(self) -> None:
        """Begins to send, and to hear."""
        await self.channel.open(self._connection, self._files)

    async def ask(self, name: str, /, **arguments: Any) -> Any:
        """What the process of the run answers; raises HostBlocked, and StoreError for all else."""
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(Call(number, name, arguments))
            return await self._asked[number]
        finally:
            del self._asked[number]

    def tell(self, name: str, /, **arguments: Any) -> None:
        """The same without an answer."""
        self.send(Call(None, name, arguments))

    def _take(self, message: Any) -> None:
        if isinstance(message, Ping):
            self.send(Pong())
            return
        if not isinstance(message, Reply):
            self.listener(message)
            return
        waiting = self._asked.get(message.number)
        if waiting is None or waiting.done():
            return
        if message.code is not None:
            waiting.set_exception(HostBlocked(message.error or "", code=message.code))
        elif message.error is not None:
            waiting.set_exception(StoreError(message.error))
        else:
            waiting.set_result(message.value)


class LinkedRateLimiter(RateLimiter):
    """The limits that the process of the run keeps for all."""

    def __init__(self, link: MemberLink) -> None:
        self._link = link
        self._there: set[str] = set()

    async def wait_until_allowed(self, host: str) -> None:
        for _ in range(_MOST_TURNS):
            allowed_at: float = await self._link.ask("wait_until_allowed", host=host)
            if clock.monotonic() <= allowed_at + LATE_SECONDS:
                return

    async def acquire_request(self, host: str) -> None:
        await self._link.ask("acquire_request", host=host)

    def release_request(self, host: str) -> None:
        self._link.tell("release_request", host=host)

    async def acquire_host(self, host: str) -> None:
        await self._link.ask("acquire_host", host=host)

    def release_host(self, host: str) -> None:
        self._link.tell("release_host", host=host)

    def set_crawl_delay(self, host: str, *, delay_seconds: float, starts: bool = True) -> None:
        self._link.tell("set_crawl_delay", host=host, delay_seconds=delay_seconds, starts=starts)

    def start_delay(self, host: str) -> None:
        self._link.tell("start_delay", host=host)

    def note_there(self, host: str) -> None:
        # One message for each host, about.
        if host not in self._there:
            if len(self._there) >= _MOST_THERE:
                self._there.clear()
            self._there.add(host)
            self._link.tell("note_there", host=host)

    def pause(self, host: str, *, seconds: float) -> None:
        self._link.tell("pause", host=host, seconds=seconds)

    def has_delay(self, host: str) -> bool:
        # Only the process of the run knows.
        return True

    def give_turn_back(self, host: str) -> None:
        self._link.tell("give_turn_back", host=host)

    def may_send(self, host: str, since: float = math.inf) -> bool:
        # The turn that the process of the run gave ends before its lease does.
        return True


class LinkedNames:
    """The look-ups of host names, which the process of the run does for all (``name_lookups.OtherProcesses``)."""

    #: It is that process which keeps an answer for longer.
    confirmed_seconds = 0.0
    look_all_up = True

    def __init__(self, link: MemberLink) -> None:
        self._link = link

    async def find(self, name: str) -> DnsAnswer:
        answer: DnsAnswer = await self._link.ask(FIND_NAME, name=name)
        return answer

    def tell(self, name: str, answer: DnsAnswer) -> None:
        """Tells nothing: all answers come from there."""

    def confirm(self, name: str) -> None:
        self._link.tell(CONFIRM_NAME, name=name)

    def forget(self, name: str) -> None:
        self._link.tell(FORGET_NAME, name=name)

    def close(self) -> None:
        """Does nothing: the link is not its own."""


class LinkedRobots(RobotsFiles):
    """The robots.txt files that the process of the run fetches for all."""

    def __init__(self, link: MemberLink, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._link = link

    async def _fetch(self, origin: str, *, inside: bool) -> RobotsCopy:
        copy: RobotsCopy = await self._link.ask(ROBOTS, origin=origin, inside=inside)
        if copy.file is not None and self._find_delay(copy.file):
            self.slowed.add(origin)
        self._keep(origin, copy)
        return copy


class LinkedProbes(Probes):
    """What the members of a run have found out of hosts."""

    are_shared = True

    def __init__(self, link: MemberLink) -> None:
        super().__init__(lambda withdrawn: link.tell(WITHDRAW, withdrawn=withdrawn))
        self._link = link

    async def note_taken(self, origin: str, page: TakenPage) -> bool:
        is_alike: bool = await self._link.ask(NOTE_TAKEN, origin=origin, page=page)
        return is_alike

    async def begin(self, origin: str, *, again: bool) -> ProbeResult | None:
        found: ProbeResult | None = await self._link.ask(BEGIN_PROBE, origin=origin, again=again)
        return found

    def end(self, origin: str, result: ProbeResult | None) -> None:
        self._link.tell(END_PROBE, origin=origin, result=result)


class LinkedPluginErrors(PluginErrors):
    """The errors of plug-ins, which the process of the run counts for all."""

    def __init__(self, link: MemberLink) -> None:
        self._link = link

    def note_good(self, name: str, documents: int = 1) -> None:
        self._link.tell(NOTE_GOOD, name=name, documents=documents)

    def add_error(self, name: str, url: str, text: str) -> None:
        self._link.tell(ADD_ERROR, name=name, url=url, text=text)


class LinkedShutdown(Shutdown):
    """Has the process of the run end it."""

    def __init__(self, link: MemberLink) -> None:
        super().__init__()
        self._link = link

    def stop(self, reason: str) -> None:
        self._link.send(Stopped(reason))

    def fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            self._link.send(Failed(make_portable(error)))


class LinkedLog(logging.Handler):
    """Has records written to the log of the run."""

    def __init__(self, link: MemberLink) -> None:
        super().__init__(link.setup.log_level)
        self._link = link
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._link.send(Logged(self._describe(record)))
        except Exception:  # noqa: BLE001  # as all handlers do
            self.handleError(record)

    def _describe(self, record: logging.LogRecord) -> dict[str, Any]:
        names = ("name", "levelno", "levelname", "pathname", "lineno", "created", "msecs")
        facts = {name: getattr(record, name) for name in names}
        text = self._formatter.formatException(record.exc_info) if record.exc_info else record.exc_text
        plain = type(record.msg) is str and _is_plain(record.args)
        message = {"msg": record.msg, "args": record.args} if plain else {"msg": record.getMessage(), "args": ()}
        return {**facts, **message, "exc_text": text}


def _is_plain(arguments: Any) -> bool:
    """Whether the arguments of a record are values that any process can read: those of a class of its own may be anything."""
    if isinstance(arguments, dict):
        return _is_plain((*arguments, *arguments.values()))
    return arguments is None or all(type(value) in _PLAIN for value in arguments)


def make_portable(error: BaseException) -> Exception:
    """The error, or one that can be pickled and says the same."""
    try:
        known = unpack(bytearray(pack(error)))
    except Exception:  # noqa: BLE001  # whatever a class of a user or of a library does there
        known = None
    same = isinstance(known, SearchcrawlError) and str(known) == str(error)
    return known if same else WorkersUnavailable(f"a process of the run cannot go on: {join_lines(repr(error))}")
