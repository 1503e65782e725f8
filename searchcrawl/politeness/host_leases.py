"""Takes hosts for this process, hands them over to others, and tells the store of pauses (C2, X-R10)."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.exceptions import CrawlEnds, SearchcrawlError
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.store import host_owners, host_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.host_owners import TakenHost
from searchcrawl.store.runs import lease

logger = logging.getLogger(__name__)

#: How often it is looked whether others want a host, or have handed one over; how often where that was so.
_LOOK_SECONDS: Final = 1.0
_CONTESTED_SECONDS: Final = 0.25
#: How often hosts that others own are asked for again: an owner that dies hands nothing over.
_RETRY_SECONDS: Final = 2.0
#: So long a request for a host waits for others that come at the same time.
_GATHER_SECONDS: Final = 0.003
#: So many hosts are taken, or asked for again, in one transaction.
_MOST_TAKEN: Final = 1000


class _Wait(NamedTuple):
    """A host that another process owns, and since when this one waits for it (monotonic seconds)."""

    delay_seconds: float
    host_id: int
    since: float


class HostLeases:
    """Carries ownership and reports of hosts between the registry and the store.

    A crawl starts a thread for it, and renews its lease with that of the run (``renew``). Others call ``update`` in any
    thread before each request. ``lease_until_ms`` tells by the boot clock until when the process may ask its hosts.
    """

    def __init__(
        self, database: Database, hosts: HostRegistry, *, lease_until_ms: Callable[[], float] | None = None
    ) -> None:
        self._database = database
        self._hosts = hosts
        self._since_ms = clock.now_ms()
        self._owner_id = 0
        #: whether another process found the lease expired
        self._lost = False
        #: by the boot clock, where no run renews it
        self._until_ms = 0
        self._renews = lease_until_ms is None
        #: by id, hosts that are owned; by name, those that others own
        self._names: dict[int, str] = {}
        self._waiting: dict[str, _Wait] = {}
        self._look_at = self._retry_at = 0.0
        self._granted = False
        self._updating = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        hosts.share(self._wake.set, lease_until_ms=lease_until_ms or (lambda: self._until_ms))

    def start(self, granted: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Starts the thread; ``granted`` is called in it when hosts were taken, ``fail`` with the error that ends it."""
        self._thread = threading.Thread(target=self._work, args=(granted, fail), name="hosts", daemon=True)
        self._thread.start()

    def stop(self, *, tells: bool = True) -> None:
        """Ends the thread, and gives all hosts back; raises StoreError. No request may be sent after that.

        Without ``tells`` nothing is written: the store has failed. Others take the hosts once the process or its lease ends.
        """
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._hosts.fail(CrawlEnds())
        with self._updating:
            reports, owner_id = self._hosts.take_changes().reports, self._owner_id
            waits = self._hosts.end_ownership(clock.monotonic())
            self._owner_id = 0
            if tells:
                self._tell_reports(reports)
            if tells and owner_id and not self._lost:
                self._database.write(_end, owner_id, _to_ms(waits))

    def renew(self, transaction: Transaction) -> None:
        """Renews the lease in a transaction of the run's own heartbeat."""
        owner_id = self._owner_id
        if owner_id and not host_owners.renew(transaction, owner_id):
            self._note_loss(owner_id)

    def _note_loss(self, owner_id: int) -> None:
        """Asks no host any more: the lease was found expired. Its renewal is not known yet, with which requests go on."""
        with self._hosts.lock:
            if self._owner_id != owner_id:
                # That is known already.
                return
            self._lost = True
            self._hosts.disown_all()
        self._wake.set()

    def _work(self, granted: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        while not self._stopping.is_set():
            # Hosts come many at a time.
            self._stopping.wait(_GATHER_SECONDS)
            self._wake.clear()
            try:
                if self.update():
                    granted()
            except SearchcrawlError as error:
                logger.warning("taking hosts stops: %s", error)
                self._hosts.fail(error)
                fail(error)
                return
            except Exception as error:  # the edge of the thread: whatever it is ends the run
                logger.exception("taking hosts stops")
                self._hosts.fail(error)
                fail(error)
                return
            self._wake.wait(max(min(self._look_at, self._retry_at) - clock.monotonic(), 0.001))

    def update(self) -> bool:
        """Takes and gives back what the registry asks for, tells of pauses, and looks what other processes want.

        Returns whether hosts were taken; raises StoreError.
        """
        with self._updating:
            self._granted = False
            if self._renews:
                self._renew_alone()
            if self._lost:
                self._begin_anew()
            changes, now = self._hosts.take_changes(), clock.monotonic()
            self._hand_over(changes.dropped)
            self._tell_reports(changes.reports)
            if changes.slowed:
                self._database.write(host_owners.note_delays, self._owner_id, _to_ms(changes.slowed))
            asked = changes.asked
            if now >= self._retry_at:
                self._retry_at = now + _RETRY_SECONDS
                waits = islice(self._waiting.items(), _MOST_TAKEN)
                asked = asked | {name: wait.delay_seconds for name, wait in waits}
            for part in _split(list(asked)):
                self._take({name: asked[name] for name in part})
            if now >= self._look_at and self._owner_id:
                contested = self._look()
                self._look_at = now + (_CONTESTED_SECONDS if contested or self._waiting else _LOOK_SECONDS)
            elif now >= self._look_at:
                self._look_at = now + _LOOK_SECONDS
            return self._granted

    def _renew_alone(self) -> None:
        until_ms = clock.boot_ms() + lease.EXPIRY_MS
        if self._owner_id and until_ms - self._until_ms >= lease.BEAT_SECONDS * 1000:
            self._database.write(self.renew)
        elif self._owner_id:
            return
        self._until_ms = until_ms

    def _begin_anew(self) -> None:
        """Asks for all hosts as another owner, which has a new number."""
        logger.warning("this process did not renew its lease in time: its hosts are taken anew")
        self._names.clear()
        self._retry_at = 0.0
        with self._hosts.lock:
            self._owner_id, self._lost = 0, False

    def _take(self, delays: Mapping[str, float]) -> None:
        ids = self._database.write(host_table.find_or_add, [*delays])
        if not self._owner_id:
            # In a transaction of its own: it locks owners, and taking locks them after the hosts.
            self._owner_id = self._database.write(host_owners.register)
        delays_ms, now = {ids[name]: round(delay * 1000) for name, delay in delays.items()}, clock.monotonic()
        waits = {name: self._waiting.get(name) for name in delays}
        waited_ms = {ids[name]: round((now - wait.since) * 1000) for name, wait in waits.items() if wait is not None}
        taken = self._database.write(host_owners.take, self._owner_id, delays_ms, waited_ms)
        if taken is None:
            self._note_loss(self._owner_id)
            taken = {}
        since = clock.monotonic()
        for name, delay in delays.items():
            before, found = self._waiting.pop(name, None), taken.get(ids[name])
            if found is None or not self._grant(name, ids[name], found, since):
                # At the end: those that were asked for longest ago are asked for first.
                self._waiting[name] = _Wait(delay, ids[name], now if before is None else before.since)

    def _grant(self, name: str, host_id: int, taken: TakenHost, since: float) -> bool:
        """Lets the registry have a host; not where the lease was lost meanwhile, and the host with it."""
        with self._hosts.lock:
            if self._lost:
                return False
            self._names[host_id] = name
            self._granted = True
            self._hosts.grant(name, host_id, taken, since)
            return True

    def _look(self) -> bool:
        """Takes over what was handed to this process, and hands over what others want; returns whether there was any."""
        wanted, handed = self._database.read(host_owners.find_contested, self._owner_id)
        if handed:
            self._database.write(host_owners.accept, self._owner_id, [*handed])
            since = clock.monotonic()
            names = {wait.host_id: name for name, wait in self._waiting.items()}
            for host_id, taken in handed.items():
                name = names.get(host_id) or self._names.get(host_id)
                if name is not None and self._grant(name, host_id, taken, since):
                    self._waiting.pop(name, None)
        known = [self._names[host_id] for host_id in wanted if host_id in self._names]
        self._hand_over(self._hosts.find_leaving(known, clock.monotonic()))
        # Hosts that are not in memory any more.
        unknown = {host_id: 0.0 for host_id in wanted if host_id not in self._names}
        unknown |= {host_id: taken.wait_ms / 1000 for host_id, taken in handed.items() if host_id not in self._names}
        self._hand_over(unknown)
        return bool(wanted or handed)

    def _hand_over(self, waits: Mapping[int, float]) -> None:
        if not waits:
            return
        self._database.write(host_owners.hand_over, self._owner_id, _to_ms(waits))
        self._hosts.ask_again([self._names.pop(host_id, "") for host_id in waits])

    def _tell_reports(self, reports: Mapping[str, host_table.HostReport]) -> None:
        if not reports:
            return
        ids = self._database.write(host_table.find_or_add, [*reports])
        by_id = {ids[name]: report for name, report in reports.items()}
        now_ms = clock.now_ms()
        self._database.write(host_table.add_reports, by_id, since_ms=self._since_ms, now_ms=now_ms)


def _end(transaction: Transaction, owner_id: int, waits_ms: Mapping[int, int]) -> None:
    host_owners.hand_over(transaction, owner_id, waits_ms)
    host_owners.end(transaction, owner_id)


def _to_ms(waits: Mapping[int, float]) -> dict[int, int]:
    # The clock of the store is cut to milliseconds, and nobody is to be early by a part of one.
    return {host_id: math.ceil(seconds * 1000) + 1 if seconds > 0 else 0 for host_id, seconds in waits.items()}


def _split(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + _MOST_TAKEN] for start in range(0, len(names), _MOST_TAKEN)]
