"""Looks host names up, once for all parts of a crawl, and where several processes need them for all of these (C12).

Addresses are kept as DNS named them: for each connection the guard decides whether an address may be reached.
Names that are needed now go first, then those that will be needed soon.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from searchcrawl import clock
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.dns_threads import MOST_THREADS, TRY_AGAIN_MS, DnsThreads
from searchcrawl.http.name_cache import CONFIRMED_SECONDS, NameCache
from searchcrawl.store.name_table import DnsAnswer, Turn

logger = logging.getLogger(__name__)

_MOST_NAMES: Final = 20_000
#: So many names are asked for at once: at 100 ms each that makes 640 a second. A name whose server is silent for so long does not
#: count any more.
_AT_ONCE: Final = 64
_SILENT_SECONDS: Final = 1.0
#: So many names wait to be looked up ahead of need, and so long; then they are looked up once they are needed.
_MOST_AHEAD: Final = 10_000
_AHEAD_SECONDS: Final = 30.0
#: An answer that holds no longer than this is looked up anew ahead of need.
_HOLDS_SECONDS: Final = 15.0


def is_address(host: str) -> bool:
    """Whether the host of a URL is an address, with or without its brackets: no name of a host ends like one."""
    return host.startswith("[") or ":" in host or host[-1:].isdigit()


def choose_first(host: str, addresses: Iterable[str], guard: AddressGuard) -> str:
    """The first of the addresses of a host that may be reached; empty where none may."""
    return next((address for address in addresses if guard.may_connect(host, address)), "")


class OtherProcesses(Protocol):
    """Whom a process asks before it looks a name up."""

    #: how long an answer holds once it is confirmed
    confirmed_seconds: float
    #: whether all lookups are theirs, and so is the limit
    look_all_up: bool

    async def find(self, name: str) -> DnsAnswer | Turn | None:
        """What another process knows of a name, or when to look it up; None where nobody else is to be asked."""

    def tell(self, name: str, answer: DnsAnswer) -> None:
        """Tells the others what a lookup brought."""

    def confirm(self, name: str) -> None:
        """Tells that a server has answered at the address of a name."""

    def forget(self, name: str) -> None:
        """Tells that no connection came of the answer to a name."""

    def close(self) -> None:
        """Ends what it has begun; may block for a moment."""


class NameLookups:
    """The addresses of names for one crawl; requests that need the same name at the same time share one lookup.

    ``per_second`` limits the lookups, 0 does not; those of all processes together where ``others`` are asked. A name server
    that is silent for ``timeout_seconds`` counts as one that does not answer. All methods but ``look_ahead`` are for the
    event loop.
    """

    def __init__(
        self, others: OtherProcesses | None = None, *, per_second: float = 0.0, timeout_seconds: float = 30.0
    ) -> None:
        self._others = others
        #: whether a lookup may have to wait for its turn
        self.is_limited = per_second > 0
        own_limit = 0.0 if others is not None and others.look_all_up else per_second
        self._interval_seconds = 1 / own_limit if own_limit else 0.0
        self._timeout_seconds = timeout_seconds
        #: called with each name that was looked up
        self.on_answer: Callable[[str], None] = lambda name: None
        self._next_turn = 0.0
        #: names that wait for others, or for their turn, and how many may: what is needed now comes next, not after all of them
        self._in_turn = 0
        #: names that are asked for, and whose name server is silent
        self._silent = 0
        self._most_in_turn = min(max(int(own_limit), 1), _AT_ONCE) if own_limit else _AT_ONCE
        confirmed_seconds = CONFIRMED_SECONDS if others is None else others.confirmed_seconds
        self._cache = NameCache(most_names=_MOST_NAMES, confirmed_seconds=confirmed_seconds)
        self._threads = DnsThreads()
        self._answers: dict[str, asyncio.Future[DnsAnswer]] = {}
        self._lookups: dict[str, asyncio.Task[DnsAnswer]] = {}
        #: names that are needed now and not looked up yet
        self._needed: dict[str, None] = {}
        #: names that are needed soon, each with the moment at which that was said
        self._ahead: deque[tuple[float, str]] = deque(maxlen=_MOST_AHEAD)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_woken = self._is_closed = False

    async def find(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, one at least; raises OSError."""
        answer = await self.find_answer(host.lower())
        if answer.error is not None:
            raise OSError(answer.error)
        return answer.addresses

    async def find_first(self, host: str, guard: AddressGuard) -> str:
        """The first address of a host that ``guard`` lets be reached, empty where it lets none; raises OSError."""
        if is_address(host):
            return host
        return choose_first(host, guard.addresses_for(host) or await self.find(host), guard)

    async def find_answer(self, name: str) -> DnsAnswer:
        """What DNS says of a name in lower case."""
        answer = self._cache.find(name)
        if answer is not None:
            return answer
        waiting = self._answers.get(name)
        if waiting is None:
            waiting = self._answers[name] = asyncio.get_running_loop().create_future()
            self._need(name)
        # If one request is cancelled, the others still need the answer.
        return await asyncio.shield(waiting)

    async def prepare(self, url: str, guard: AddressGuard) -> None:
        """Looks up the host of a URL that is about to be requested; what fails is reported by the request."""
        import yarl  # noqa: PLC0415  # it comes with the HTTP client
        from aiohttp.helpers import is_ip_address  # noqa: PLC0415  # heavy

        with suppress(OSError, ValueError):
            host = yarl.URL(url, encoded=True).raw_host
            if host and not is_ip_address(host) and not guard.addresses_for(host):
                await self.find(host)

    def is_known(self, name: str) -> bool:
        """Whether it is known what DNS says of a name in lower case; if not it is looked up, and ``on_answer`` told."""
        if self._is_closed or self._cache.holds(name):
            return True
        self._need(name)
        return False

    def peek(self, name: str) -> tuple[str, ...]:
        """The addresses of a name that were known last; empty where none are."""
        answer = self._cache.peek(name)
        return () if answer is None else answer.addresses

    def look_ahead(self, names: Iterable[str]) -> None:
        """Has names in lower case looked up that will be needed in the next seconds; any thread may call this.

        They give way to names that are needed now, and what waits for too long is dropped.
        """
        now = clock.monotonic()
        self._ahead.extend((now, name) for name in names)
        loop = self._loop
        # Before the first request there is no loop: that one looks what waits.
        if self._ahead and loop is not None and not self._is_woken and not loop.is_closed():
            self._is_woken = True
            loop.call_soon_threadsafe(self._pump)

    def confirm(self, name: str) -> None:
        """Notes that a server has answered at the address of a name: the answer of DNS holds for longer."""
        if self._cache.confirm(name) and self._others is not None:
            self._others.confirm(name)

    def forget(self, name: str, *, before: float) -> None:
        """Notes that no connection came of an answer that was known ``before`` (monotonic seconds): DNS is asked anew."""
        if self._cache.forget(name, before=before) and self._others is not None:
            self._others.forget(name)

    async def close(self) -> None:
        """Ends lookups that are under way."""
        self._is_closed = True
        self._needed.clear()
        self._ahead.clear()
        for task in list(self._lookups.values()):
            task.cancel()
        for waiting in self._answers.values():
            waiting.cancel()
        self._threads.close()
        if self._others is not None:
            await asyncio.to_thread(self._others.close)

    def _need(self, name: str) -> None:
        if name not in self._lookups:
            self._needed[name] = None
            self._pump()

    def _pump(self) -> None:
        """Begins to look up as many names as may be."""
        self._is_woken = False
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        while not self._is_closed and self._in_turn < self._most_in_turn:
            under_way = self._threads.under_way
            if self._in_turn + under_way - self._silent >= _AT_ONCE or under_way >= MOST_THREADS:
                return
            name = self._take_next()
            if name is None:
                return
            self._in_turn += 1
            task = self._lookups[name] = self._loop.create_task(self._look_up(name))
            task.add_done_callback(functools.partial(self._end, name))

    def _take_next(self) -> str | None:
        if self._needed:
            name = next(iter(self._needed))
            del self._needed[name]
            return name
        oldest = clock.monotonic() - _AHEAD_SECONDS
        while self._ahead:
            said_at, name = self._ahead.popleft()
            if said_at >= oldest and name not in self._lookups and not self._cache.holds(name, seconds=_HOLDS_SECONDS):
                return name
        return None

    async def _look_up(self, name: str) -> DnsAnswer:
        """Asks the other processes, then DNS."""
        try:
            found = await self._others.find(name) if self._others is not None else None
            if isinstance(found, DnsAnswer):
                return found
            await self._wait_for_turn(found)
        finally:
            self._in_turn -= 1
        began = clock.monotonic()
        answer = await self._ask_dns(name)
        said = answer.error or " ".join(answer.addresses)
        logger.debug("name look-up of %s: %s, %.0f ms", name, said, (clock.monotonic() - began) * 1000)
        if self._others is not None:
            self._others.tell(name, answer)
        return answer

    async def _wait_for_turn(self, turn: Turn | None) -> None:
        """Waits for the turn that all processes share, and no less than this one has to wait."""
        now = clock.monotonic()
        start = max(self._next_turn, now + (turn.wait_ms / 1000 if turn is not None else 0.0))
        self._next_turn = start + self._interval_seconds
        if start > now:
            await asyncio.sleep(start - now)

    async def _ask_dns(self, name: str) -> DnsAnswer:
        asked = asyncio.wrap_future(self._threads.ask(name))
        asked.add_done_callback(self._end_asked)
        patience = min(_SILENT_SECONDS, self._timeout_seconds)
        if not (await asyncio.wait([asked], timeout=patience))[0]:
            self._silent += 1
            asked.add_done_callback(self._end_silent)
            self._pump()
            await asyncio.wait([asked], timeout=self._timeout_seconds - patience)
        if not asked.done():
            return DnsAnswer((), f"no answer of DNS within {self._timeout_seconds:g} s", TRY_AGAIN_MS)
        return asked.result()

    def _end_silent(self, asked: asyncio.Future[DnsAnswer]) -> None:
        self._silent -= 1

    def _end_asked(self, asked: asyncio.Future[DnsAnswer]) -> None:
        if not asked.cancelled():
            # Read the error: otherwise asyncio logs one that nobody waits for.
            asked.exception()
        # A thread is free, perhaps long after its name was given up.
        self._pump()

    def _end(self, name: str, task: asyncio.Task[DnsAnswer]) -> None:
        """Hands on what a lookup brought."""
        del self._lookups[name]
        waiting = self._answers.pop(name, None)
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            if waiting is not None:
                waiting.cancel()
        elif error is not None:
            # Something of ours: nobody is to wait for ever.
            logger.error("a host name cannot be looked up: %s", name, exc_info=error)
            answer = DnsAnswer((), repr(error)[:200], TRY_AGAIN_MS)
            self._hand_on(name, answer, waiting)
        else:
            self._hand_on(name, task.result(), waiting)
        self._pump()

    def _hand_on(self, name: str, answer: DnsAnswer, waiting: asyncio.Future[DnsAnswer] | None) -> None:
        self._needed.pop(name, None)
        self._cache.store(name, answer, is_unused=waiting is None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        self.on_answer(name)
