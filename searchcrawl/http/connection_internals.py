"""What we use of aiohttp that is not public: nothing else does.

Made for aiohttp 3.13 to 3.14; look here first when it is raised to a newer version.

=========================================  ==================================  =======================
used                                       why there is no public way          fails with it
=========================================  ==================================  =======================
``TCPConnector._factory``                  the class of connections is fixed   test_fetch_faults
``ResponseHandler._payload``               a reset, or a broken chunk, is no   test_fetch_faults
                                           error of a body
``BaseConnector._release``, ``._conns``    idle connections have no limit      test_many_hosts
=========================================  ==================================  =======================
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

#: Connections are kept open to so many hosts without a request: a site of thousands of hosts would take all files.
MAX_IDLE_HOSTS: Final = 64


class _Connection(ResponseHandler):
    """Reports a body without a length as broken where a reset ended it (X-R6), and one whose chunks are broken (X-R5).

    Closes itself when a server sends something without a request: that would be read as the next answer.
    """

    idle = False

    def set_response_params(self, **parameters: Any) -> None:
        self.idle = False
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        if self.idle and data:
            self.abort()
            return
        super().data_received(data)
        error, body = self.exception(), self._payload
        if error is not None and body is not None and not body.is_eof():
            # aiohttp would let it wait for the rest until its time is over.
            body.set_exception(_describe_broken(error))

    def connection_lost(self, exc: BaseException | None) -> None:
        body = self._payload
        if exc is not None and body is not None and not body.is_eof():
            body.set_exception(aiohttp.ClientPayloadError(f"connection lost: {exc}"))
        super().connection_lost(exc)


def _describe_broken(error: BaseException) -> aiohttp.ClientPayloadError:
    return aiohttp.ClientPayloadError(error.message if isinstance(error, HttpProcessingError) else str(error))


class LimitedConnector(aiohttp.TCPConnector):
    """Keeps idle connections to the last MAX_IDLE_HOSTS hosts only; takes the arguments of its base class."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        connections: functools.partial[Any] = functools.partial(_Connection, loop=asyncio.get_running_loop())
        self._factory = connections

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if isinstance(protocol, _Connection):
            protocol.idle = True
        super()._release(key, protocol, should_close=should_close)
        while len(self._conns) > MAX_IDLE_HOSTS:
            for idle, _ in self._conns.pop(next(iter(self._conns))):
                idle.close()
