"""Exchanges over HTTP by urllib3 that end after their time, whatever a server does (X-D13)."""

from __future__ import annotations

import contextlib
import socket
import threading
from contextvars import ContextVar
from typing import Any, Final, Self

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from searchcrawl import clock


class Deadline:
    """Ends an exchange when its time is over: a timer thread shuts down its connection.

    The timeout of a socket starts again with each byte, so it does not end an answer that comes byte by byte (X-D13). Without
    a ``connection`` it is that of the request that is sent within, and stays known to whom reads its answer later.
    """

    def __init__(self, seconds: float, connection: socket.socket | None = None) -> None:
        self.expired = False
        self.connection = connection
        self._ends = clock.monotonic() + seconds
        self._is_left = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    @property
    def is_over(self) -> bool:
        """Whether the time is over; on a busy machine the timer may be late."""
        return self.expired or clock.monotonic() >= self._ends

    @property
    def remaining_seconds(self) -> float:
        """The rest of the time; never 0, because 0 means no limit to a socket."""
        return max(self._ends - clock.monotonic(), 0.001)

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        self._timer.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._timer.cancel()
        _current.reset(self._token)
        with self._lock:
            self._is_left = True

    def watch(self, connection: socket.socket) -> None:
        """Takes the connection of the exchange; raises TimeoutError where the time is over already."""
        with self._lock:
            if self.expired:
                raise TimeoutError("the time for this exchange is over")
            self.connection = connection
        connection.settimeout(self.remaining_seconds)

    def _expire(self) -> None:
        with self._lock:
            if self._is_left:
                return
            self.expired = True
            if self.connection is not None:
                # The method of the base class: that of a TLS socket drops its keys while another thread still reads.
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self.connection, socket.SHUT_RDWR)


_current: ContextVar[Deadline | None] = ContextVar("_current", default=None)


class _Watched:
    """The changes of both kinds of connection; a base class that comes before that of urllib3."""

    sock: socket.socket | None
    timeout: float | None

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self._watch()

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._watch()
        super().request(*args, **kwargs)  # type: ignore[misc]

    def _watch(self) -> None:
        deadline = _current.get()
        if deadline is not None and self.sock is not None:
            # urllib3 sets this timeout on a connection that it uses again; until then it is the time to connect.
            self.timeout = deadline.remaining_seconds
            deadline.watch(self.sock)


class _WatchedConnection(_Watched, HTTPConnection):
    pass


class _WatchedTlsConnection(_Watched, HTTPSConnection):
    pass


class _WatchedPool(HTTPConnectionPool):
    ConnectionCls = _WatchedConnection


class _WatchedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTlsConnection


#: The pools of urllib3, by scheme, whose requests are watched (``PoolManager.pool_classes_by_scheme``).
POOLS: Final = {"http": _WatchedPool, "https": _WatchedTlsPool}
