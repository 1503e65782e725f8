"""What the processes of a store tell each other of host names, so that each is looked up by one of them (C12).

That is done in a thread of its own, for all names that wait at once: the reactor never waits for the store. Where the store
is slow or away, names are looked up as if nobody else did, and so they are while nobody else does.
"""

from __future__ import annotations

import asyncio
import logging
import math
import queue
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.failpoints import reach
from searchcrawl.http.name_cache import CONFIRMED_SECONDS
from searchcrawl.store import name_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.name_table import DnsAnswer, Turn
from searchcrawl.store.runs import lease

logger = logging.getLogger(__name__)

#: How often the store is asked for an answer that another process is about to give.
_POLL_SECONDS: Final = 0.1
#: So long the store may take.
_SLOW_SECONDS: Final = 2.0
#: So long it is not asked after that.
_PAUSE_SECONDS: Final = 30.0
_DROP_SECONDS: Final = 60.0
#: So often it is looked whether another process uses the store, while names are looked up.
_LOOK_SECONDS: Final = 1.0
#: So long a process that finds others when it begins waits with its first lookup, where they are limited: the others know of it
#: after a second, and have looked up what had its turn before after another one.
_NEWCOMER_SECONDS: Final = 3.0

_Waiting = dict[str, list["Future[DnsAnswer | Turn | None]"]]


class SharedNames:
    """What the processes of a store tell each other of names; ``per_second`` limits all their lookups together (0: none).

    As long as no other source of the store is crawled, nothing is written, and this process keeps the limit by itself.
    """

    #: See ``name_lookups.OtherProcesses``.
    confirmed_seconds = CONFIRMED_SECONDS
    look_all_up = False

    def __init__(self, database: Database, *, source_id: int, per_second: float = 0.0) -> None:
        self._database = database
        self._source_id = source_id
        self._interval_ms = math.ceil(1000 / per_second) if per_second else 0
        self._orders: queue.SimpleQueue[tuple[str, Future[DnsAnswer | Turn | None] | DnsAnswer] | None] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None
        #: whether there was no other process when it was looked last, and when it is looked again
        self._is_alone = True
        self._look_at = 0.0
        #: since when a call of the store is under way; 0: none is
        self._called_at = 0.0
        #: before this moment the store is not asked; before that one nothing is looked up
        self._away_until = self._careful_until = 0.0
        self._drop_at = 0.0

    async def find(self, name: str) -> DnsAnswer | Turn | None:
        """What another process knows of a name, or when to look it up; None where that cannot be found out."""
        now = clock.monotonic()
        if not name_table.is_shared(name) or now < self._away_until or (self._is_alone and now < self._look_at):
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
        if not self._is_alone and name_table.is_shared(name) and clock.monotonic() >= self._away_until:
            self._order(name, answer)

    def confirm(self, name: str) -> None:
        """Tells nothing: each process finds out by itself whether a server answers."""

    def forget(self, name: str) -> None:
        """Tells nothing: an answer in the store holds for a minute."""

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
        if clock.monotonic() >= self._look_at:
            self._look()
        if self._is_alone:
            return dict.fromkeys(waiting)
        if clock.monotonic() < self._careful_until:
            return {}
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

    def _look(self) -> None:
        """Looks whether sources besides this one are crawled: a process takes its lease before it looks anything up."""
        with self._database.read_once() as transaction:
            is_alone = not lease.find_holders(transaction).keys() - {self._source_id}
        now = clock.monotonic()
        if not self._look_at and not is_alone and self._interval_ms:
            self._careful_until = now + _NEWCOMER_SECONDS
        self._is_alone, self._look_at = is_alone, now + _LOOK_SECONDS
