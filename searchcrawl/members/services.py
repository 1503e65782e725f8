"""What the process of a run does for its members: the limits of hosts, which are one set, robots.txt files, probes, counts."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.documents.user_pipeline import PluginErrors
from searchcrawl.exceptions import HostBlocked, SearchcrawlError
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Withdrawn
from searchcrawl.members.messages import Call, Reply
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.robots.files import RobotsCopy, RobotsFiles
from searchcrawl.soft404.signature import LEAST_PAGES, ProbeResult, Signature
from searchcrawl.soft404.taken_pages import TakenPage, TakenPages, build_withdrawn

_MOST: Final = 10_000
#: So many pages of a host are remembered, and so many where there are many hosts.
_MOST_OF_HOST: Final = 100
_LEAST_OF_HOST: Final = 5
_MANY_HOSTS: Final = 500


class SharedProbes:
    """What the members have found out, and which of them is asking a host; for the event loop of the run.

    ``withdraw`` hands pages to the writer that are to be judged again. Of pages that were taken for content each member
    knows its own: those of several may be alike, and one of them finds out what the host answers.
    """

    def __init__(self, withdraw: Callable[[Withdrawn], object] = lambda withdrawn: None) -> None:
        self._hand_on = withdraw
        self._withdrawn: set[int] = set()
        #: by last use
        self._taken: OrderedDict[str, TakenPages] = OrderedDict()
        #: by last use
        self._found: OrderedDict[str, ProbeResult] = OrderedDict()
        self._asking: dict[str, tuple[object, asyncio.Event]] = {}

    async def begin(self, member: object, origin: str, *, again: bool) -> ProbeResult | None:
        """What is known of a host; None: ``member`` is to ask it. Waits while another one does."""
        if again and origin not in self._asking:
            self._found.pop(origin, None)
        while origin in self._asking:
            await self._asking[origin][1].wait()
        if (found := self._found.get(origin)) is not None:
            self._found.move_to_end(origin)
            return found
        self._asking[origin] = member, asyncio.Event()
        return None

    def note_taken(self, origin: str, page: TakenPage) -> bool:
        """Remembers a page of a host that nobody has asked; returns whether it is like that of another member instead."""
        if origin in self._found:
            return False
        taken = self._taken.setdefault(origin, TakenPages())
        self._taken.move_to_end(origin)
        if len(taken) >= LEAST_PAGES - 1 and page.place is not None and taken.has_alike(page.outline):
            return True
        taken.add(page, most=_MOST_OF_HOST if len(self._taken) < _MANY_HOSTS else _LEAST_OF_HOST)
        if len(self._taken) > _MOST:
            self._taken.popitem(last=False)
        return False

    def withdraw(self, withdrawn: Withdrawn) -> None:
        """Has pages taken back, each once."""
        new, known = (
            tuple(each for each in rows if each not in self._withdrawn) for rows in (withdrawn.new, withdrawn.known)
        )
        if new or known:
            self._withdrawn.update(new, known)
            self._hand_on(Withdrawn(new, known))

    def _withdraw_alike(self, origin: str, signature: Signature) -> None:
        taken, outline = self._taken.pop(origin, None), signature.sample.outline
        if taken is not None:
            pages = taken.take(lambda each: each.outline.is_alike(outline) and not signature.lands_on(each.place))
            self.withdraw(build_withdrawn(pages))

    def end(self, member: object, origin: str, result: ProbeResult | None) -> None:
        """Notes what came of a probe; without a ``result`` the next one who waits asks."""
        if result is not None and result.signature is not None:
            self._withdraw_alike(origin, result.signature)
        if result is not None:
            self._taken.pop(origin, None)
            self._found[origin] = result
            if len(self._found) > _MOST:
                self._found.popitem(last=False)
        asking = self._asking.get(origin)
        if asking is not None and asking[0] is member:
            del self._asking[origin]
            asking[1].set()

    def drop(self, member: object) -> None:
        """Notes that a member has ended: what it was asking is asked by others."""
        for origin in [origin for origin, (owner, _) in self._asking.items() if owner is member]:
            self.end(member, origin, None)


logger = logging.getLogger(__name__)

#: Calls that take something of a host, each with what gives it back.
_GIVES_BACK: Final = {"acquire_request": "release_request", "acquire_host": "release_host"}
ROBOTS: Final = "robots"
BEGIN_PROBE: Final = "begin_probe"
END_PROBE: Final = "end_probe"
WITHDRAW: Final = "withdraw"
NOTE_TAKEN: Final = "note_taken"
NOTE_GOOD: Final = "note_good"
ADD_ERROR: Final = "add_error"
FIND_NAME: Final = "find_name"
CONFIRM_NAME: Final = "confirm_name"
FORGET_NAME: Final = "forget_name"


class Services:
    """Answers the calls of one member with ``send``; ``close`` gives back what it held. For the event loop."""

    def __init__(
        self,
        rate_limiter: RateLimiter,
        robots: RobotsFiles | None,
        probes: SharedProbes,
        plugin_errors: PluginErrors,
        lookups: NameLookups,
        send: Callable[[Reply], None],
    ) -> None:
        self._rate_limiter = rate_limiter
        self._robots = robots
        self._probes = probes
        self._plugin_errors = plugin_errors
        self._lookups = lookups
        self._send = send
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: Counter[tuple[str, str]] = Counter()

    def take(self, call: Call) -> None:
        """Begins to answer a call, or does what needs no answer."""
        if call.number is None:
            self._note(call)
            return
        task = asyncio.ensure_future(self._answer(call.number, call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note(self, call: Call) -> None:
        if call.name == END_PROBE:
            self._probes.end(self, **call.arguments)
            return
        if call.name == CONFIRM_NAME:
            self._lookups.confirm(**call.arguments)
            return
        if call.name == FORGET_NAME:
            self._lookups.forget(**call.arguments, before=clock.monotonic())
            return
        if call.name == WITHDRAW:
            self._probes.withdraw(**call.arguments)
            return
        if call.name in {NOTE_GOOD, ADD_ERROR}:
            getattr(self._plugin_errors, call.name)(**call.arguments)
            return
        if call.name in _GIVES_BACK.values():
            held = call.name, call.arguments["host"]
            self._held[held] -= 1
            if not self._held[held]:
                # A run sees a million hosts.
                del self._held[held]
        getattr(self._rate_limiter, call.name)(**call.arguments)

    def close(self) -> None:
        """Ends what is under way, and gives back what the member held: it has ended."""
        for task in self._tasks:
            task.cancel()
        self._probes.drop(self)
        for (name, host), count in self._held.items():
            for _ in range(count):
                getattr(self._rate_limiter, name)(host)
        self._held.clear()

    async def _answer(self, number: int, call: Call) -> None:
        try:
            reply = Reply(number, await self._find(call))
        except HostBlocked as error:
            reply = Reply(number, error=str(error), code=error.code)
        except Exception as error:
            # Whatever it is: who asked would wait for ever.
            if not isinstance(error, SearchcrawlError):
                logger.exception("a process of the run gets no answer: %s", call.name)
            # Not every error has a text.
            reply = Reply(number, error=join_lines(str(error) or repr(error)))
        self._send(reply)

    async def _find(self, call: Call) -> Any:
        if call.name == ROBOTS:
            return await self._find_robots(**call.arguments)
        if call.name == NOTE_TAKEN:
            return self._probes.note_taken(**call.arguments)
        if call.name == BEGIN_PROBE:
            return await self._probes.begin(self, **call.arguments)
        if call.name == FIND_NAME:
            return await self._lookups.find_answer(**call.arguments)
        await getattr(self._rate_limiter, call.name)(**call.arguments)
        if call.name in _GIVES_BACK:
            self._held[_GIVES_BACK[call.name], call.arguments["host"]] += 1
        # When it was allowed: a member that hears of it late asks again.
        return clock.monotonic()

    async def _find_robots(self, origin: str, *, inside: bool) -> RobotsCopy | None:
        if self._robots is None:
            return None
        copy = self._robots.find(origin) or await self._robots.fetch(origin, inside=inside)
        # It is for pages that are requested here: there are none, and a run sees a million hosts.
        self._robots.slowed.discard(origin)
        return copy
