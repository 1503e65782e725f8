"""Asks the system for the addresses of names, in threads of its own.

Only ``getaddrinfo`` knows all of ``/etc/hosts``, ``nsswitch.conf``, search domains and mDNS, and it blocks its thread until a
name server has answered or was given up. The threads of asyncio are few, and others need them.
"""

from __future__ import annotations

import queue
import socket
import threading
from concurrent.futures import Future
from typing import Any, Final

from searchcrawl.store.name_table import FAILED_MS, DnsAnswer

#: Most are needed where name servers are silent: a thread that waits costs next to nothing.
MOST_THREADS: Final = 256
#: A thread that had nothing to do for so long ends.
_IDLE_SECONDS: Final = 10.0
#: So long an answer holds that DNS itself did not answer: a visit is repeated after a second.
TRY_AGAIN_MS: Final = 500
#: Only for families that the machine has an address of, where the system can tell.
_FLAGS: Final = getattr(socket, "AI_ADDRCONFIG", 0) & getattr(socket, "AI_MASK", -1)
_NUMERIC: Final = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class DnsThreads:
    """Up to ``most`` threads, begun as they are needed. They end with the process, whatever a name server does."""

    def __init__(self, *, most: int = MOST_THREADS) -> None:
        self._most = most
        self._orders: queue.SimpleQueue[tuple[str, Future[DnsAnswer]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        #: names that wait for a thread or are asked for in one
        self._under_way = 0

    @property
    def under_way(self) -> int:
        """How many names have no answer yet."""
        return self._under_way

    def ask(self, name: str) -> Future[DnsAnswer]:
        """The addresses of a name, or why there are none; nothing is raised for what DNS says."""
        future: Future[DnsAnswer] = Future()
        # Nobody can stop a thread that asks.
        future.set_running_or_notify_cancel()
        with self._lock:
            self._under_way += 1
            self._orders.put((name, future))
            if self._under_way > self._threads and self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name="dns", daemon=True).start()
        return future

    def close(self) -> None:
        """Ends the threads that ask for nothing now, and the others after that; no name is asked for any more."""
        with self._lock:
            for _ in range(self._threads):
                self._orders.put(None)

    def _work(self) -> None:
        while (order := self._take()) is not None:
            name, future = order
            try:
                answer: DnsAnswer | Exception = look_up(name)
            except Exception as error:  # noqa: BLE001  # who asked gets it
                answer = error
            with self._lock:
                self._under_way -= 1
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _take(self) -> tuple[str, Future[DnsAnswer]] | None:
        """The next order; None where the thread is to end."""
        while True:
            try:
                return self._orders.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._orders.empty():
                        self._threads -= 1
                        return None


def look_up(name: str) -> DnsAnswer:
    """What the system says of a name; blocks."""
    try:
        found = socket.getaddrinfo(name, 0, socket.AF_UNSPEC, socket.SOCK_STREAM, 0, _FLAGS)
        addresses = tuple(
            dict.fromkeys(filter(None, (_read_address(family, address) for family, *_, address in found)))
        )
    except UnicodeError as error:
        # A label that is too long, or empty.
        return DnsAnswer((), f"no name of a host: {error}", FAILED_MS)
    except OSError as error:
        kept_ms = TRY_AGAIN_MS if error.errno == socket.EAI_AGAIN else FAILED_MS
        return DnsAnswer((), error.strerror or str(error) or "no address", kept_ms)
    return DnsAnswer(addresses) if addresses else DnsAnswer((), "no address", FAILED_MS)


def _read_address(family: int, address: tuple[Any, ...]) -> str:
    """The text of an address; empty for one of IPv6 where Python knows none."""
    if family == socket.AF_INET6 and len(address) < 3:
        return ""
    if len(address) > 3 and address[3]:
        # A link-local address has to name its interface.
        return socket.getnameinfo(address, _NUMERIC)[0]
    return str(address[0])
