"""Looks host names up, once for all parts of a crawl, and where the store is shared for all crawls (C12).

Addresses are kept as DNS named them: for each connection the guard decides whether an address may be reached.
What processes tell each other is done in a thread of its own, for all names that wait at once: the reactor never waits
for the store. Where the store is slow or away, names are looked up as if nobody else did.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import queue
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.failpoints import reach
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.store import name_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.name_table import FAILED_MS, DnsAnswer, Turn

if TYPE_CHECKING:
    # What sends no request does without an HTTP client, which is slow to load.
    from aiohttp.resolver import ThreadedResolver


logger = logging.getLogger(__name__)

_MOST_NAMES: Final = 10_000
#: So long an answer holds that DNS itself did not answer: a visit is repeated after a second.
_TRY_AGAIN_MS: Final = 500


class NameCache:
    """What was found out about the last ``most_names`` names, each as long as its answer holds."""

    def __init__(self, *, most_names: int) -> None:
        self._most_names = most_names
        self._known: dict[str, tuple[float, DnsAnswer]] = {}

    def find(self, name: str) -> DnsAnswer | None:
        """What is known of a name; None where it is to be looked up."""
        known = self._known.get(name)
        return known[1] if known is not None and clock.monotonic() < known[0] else None

    def store(self, name: str, answer: DnsAnswer) -> None:
        """Stores an answer."""
        self._known.pop(name, None)
        if len(self._known) >= self._most_names:
            del self._known[next(iter(self._known))]
        self._known[name] = (clock.monotonic() + answer.kept_ms / 1000, answer)


class NameLookups:
    """The addresses of names for one crawl; requests that need the same name at the same time share one lookup.

    ``per_second`` limits the lookups, 0 does not; with ``shared`` those of all processes of its store together.
    """

    def __init__(self, shared: SharedNames | None = None, *, per_second: float = 0.0) -> None:
        self._shared = shared
        #: whether a lookup may have to wait for its turn
        self.is_limited = per_second > 0
        self._interval_seconds = 1 / per_second if per_second else 0.0
        self._next_turn = 0.0
        self._dns: ThreadedResolver | None = None
        self._known = NameCache(most_names=_MOST_NAMES)
        self._lookups: dict[str, asyncio.Task[DnsAnswer]] = {}

    async def find(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, one at least; raises OSError."""
        name = host.lower()
        answer = self._known.find(name) or await self._look_up(name)
        if answer.error is not None:
            raise OSError(answer.error)
        return answer.addresses

    async def prepare(self, url: str, guard: AddressGuard) -> None:
        """Looks up the host of a URL that is about to be requested; what fails is reported by the request."""
        import yarl  # noqa: PLC0415  # it comes with the HTTP client
        from aiohttp.helpers import is_ip_address  # noqa: PLC0415  # heavy

        with suppress(OSError, ValueError):
            host = yarl.URL(url, encoded=True).host
            if host and not is_ip_address(host) and not guard.addresses_for(host):
                await self.find(host)

    async def close(self) -> None:
        """Ends lookups that are under way."""
        for task in list(self._lookups.values()):
            task.cancel()
        if self._dns is not None:
            await self._dns.close()
        if self._shared is not None:
            await asyncio.to_thread(self._shared.close)

    async def _look_up(self, name: str) -> DnsAnswer:
        task = self._lookups.get(name)
        if task is None:
            task = self._lookups[name] = asyncio.ensure_future(self._ask(name))
            task.add_done_callback(functools.partial(self._forget_lookup, name))
        # If one request is cancelled, the others still need the answer.
        return await asyncio.shield(task)

    async def _ask(self, name: str) -> DnsAnswer:
        """Asks the other processes, then DNS."""
        found = await self._shared.find(name) if self._shared is not None else None
        if not isinstance(found, DnsAnswer):
            await self._wait_for_turn(found)
            began = clock.monotonic()
            answer = await self._ask_dns(name)
            said = answer.error or " ".join(answer.addresses)
            logger.debug("name look-up of %s: %s, %.0f ms", name, said, (clock.monotonic() - began) * 1000)
            if self._shared is not None:
                self._shared.tell(name, answer)
        else:
            answer = found
        self._known.store(name, answer)
        return answer

    async def _wait_for_turn(self, turn: Turn | None) -> None:
        if turn is not None:
            seconds = turn.wait_ms / 1000
        else:
            # Nobody else is asked: at least this process keeps the limit.
            now = clock.monotonic()
            self._next_turn = max(self._next_turn, now) + self._interval_seconds
            seconds = self._next_turn - self._interval_seconds - now
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _ask_dns(self, name: str) -> DnsAnswer:
        if self._dns is None:
            from aiohttp.resolver import ThreadedResolver  # noqa: PLC0415  # heavy

            # There is no event loop before the crawl begins.
            self._dns = ThreadedResolver()
        try:
            found = await self._dns.resolve(name, 0, socket.AF_UNSPEC)
        except OSError as error:
            kept_ms = _TRY_AGAIN_MS if error.errno == socket.EAI_AGAIN else FAILED_MS
            return DnsAnswer((), error.strerror or str(error) or "no address", kept_ms)
        addresses = tuple(dict.fromkeys(result["host"] for result in found))
        return DnsAnswer(addresses) if addresses else DnsAnswer((), "no address", FAILED_MS)

    def _forget_lookup(self, name: str, task: asyncio.Task[DnsAnswer]) -> None:
        del self._lookups[name]
        if not task.cancelled():
            # Read the error: otherwise asyncio logs one that nobody waits for.
            task.exception()


#: How often the store is asked for an answer that another process is about to give.
_POLL_SECONDS: Final = 0.1
#: So long the store may take.
_SLOW_SECONDS: Final = 2.0
#: So long it is not asked after that.
_PAUSE_SECONDS: Final = 30.0
_DROP_SECONDS: Final = 60.0

_Waiting = dict[str, list["Future[DnsAnswer | Turn | None]"]]


class SharedNames:
    """What the processes of a store tell each other of names; ``per_second`` limits all their lookups together (0: none)."""

    def __init__(self, database: Database, *, per_second: float = 0.0) -> None:
        self._database = database
        self._interval_ms = math.ceil(1000 / per_second) if per_second else 0
        self._orders: queue.SimpleQueue[tuple[str, Future[DnsAnswer | Turn | None] | DnsAnswer] | None] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None
        #: since when a call of the store is under way; 0: none is
        self._called_at = 0.0
        self._away_until = 0.0
        self._drop_at = 0.0

    async def find(self, name: str) -> DnsAnswer | Turn | None:
        """What another process knows of a name, or when to look it up; None where that cannot be found out."""
        if not name_table.is_shared(name) or clock.monotonic() < self._away_until:
            return None
        future: Future[DnsAnswer | Turn | None] = Future()
        # It is not cancelled with the one that waits: its result is needed by nobody then.
        future.set_running_or_notify_cancel()
        self._order(name, future)
        waiting = asyncio.wrap_future(future)
        while not (await asyncio.wait([waiting], timeout=_SLOW_SECONDS / 4))[0]:
            if self._called_at and clock.monotonic() - self._called_at > _SLOW_SECONDS:
                self._pause("it is slow")
                return None
        return waiting.result()

    def tell(self, name: str, answer: DnsAnswer) -> None:
        """Tells the others what a lookup brought."""
        if name_table.is_shared(name) and clock.monotonic() >= self._away_until:
            self._order(name, answer)

    def close(self) -> None:
        """Ends the thread, where the store lets it; what waits is looked up by this process."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join(_SLOW_SECONDS)

    def _order(self, name: str, order: Future[DnsAnswer | Turn | None] | DnsAnswer) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="names", daemon=True)
            self._thread.start()
        self._orders.put((name, order))

    def _pause(self, why: str) -> None:
        if clock.monotonic() >= self._away_until:
            logger.info("host names are looked up without asking other processes for a while: the store: %s", why)
        self._away_until = clock.monotonic() + _PAUSE_SECONDS

    def _work(self) -> None:
        waiting: _Waiting = {}
        told: dict[str, DnsAnswer] = {}
        while self._take(waiting, told):
            try:
                self._called_at = clock.monotonic()
                found = self._exchange(waiting, told)
            except StoreError as error:
                self._pause(str(error))
                found = dict.fromkeys(waiting)
            except Exception as error:  # the edge of the thread: who waits would wait for ever
                logger.exception("host names are looked up without other processes")
                self._pause(repr(error))
                found = dict.fromkeys(waiting)
            finally:
                self._called_at = 0.0
            told.clear()
            for name, answer in found.items():
                for future in waiting.pop(name):
                    future.set_result(answer)
        for futures in waiting.values():
            for future in futures:
                future.set_result(None)

    def _take(self, waiting: _Waiting, told: dict[str, DnsAnswer]) -> bool:
        """Waits for the next order, and takes all that are there; False at the end."""
        try:
            order = self._orders.get(timeout=_POLL_SECONDS if waiting else None)
            while order is not None:
                name, given = order
                if isinstance(given, DnsAnswer):
                    told[name] = given
                else:
                    waiting.setdefault(name, []).append(given)
                order = self._orders.get_nowait()
        except queue.Empty:
            return True
        return False

    def _exchange(self, waiting: _Waiting, told: Mapping[str, DnsAnswer]) -> dict[str, DnsAnswer | Turn | None]:
        """Stores what was looked up here; returns what is known now of names that are waited for.

        Each transaction takes rows in one order: processes never wait for each other in a circle.
        """
        if told:
            with self._database.write_once() as transaction:
                name_table.tell(transaction, told)
            reach("name.told")
        if clock.monotonic() >= self._drop_at:
            self._drop_at = clock.monotonic() + _DROP_SECONDS
            with self._database.write_once() as transaction:
                name_table.drop_old(transaction)
        if not waiting:
            return {}
        with self._database.read_once() as transaction:
            known = name_table.find(transaction, list(waiting))
        found: dict[str, DnsAnswer | Turn | None] = {
            name: answer for name, answer in known.items() if answer is not None
        }
        if unknown := [name for name in waiting if name not in known]:
            with self._database.write_once() as transaction:
                claimed = name_table.claim(transaction, unknown, interval_ms=self._interval_ms)
            reach("name.claimed")
            found |= {name: answer for name, answer in claimed.items() if answer is not None}
        return found
