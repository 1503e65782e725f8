"""aiohttp's connections, only to addresses that may be reached (L7), and what we use of aiohttp that is not public.

Made for aiohttp 3.13 to 3.14; look here first when it is raised to a newer version.

=========================================  ==================================  =======================
used                                       why there is no public way          fails with it
=========================================  ==================================  =======================
``TCPConnector._factory``                  the class of connections is fixed   test_fetch_faults
``ResponseHandler._payload``               a reset, or a broken chunk, is no   test_fetch_faults
                                           error of a body
``ResponseHandler._parser``                it is strict with heads             test_fetch_faults
``http_writer._serialize_headers``         it writes UTF-8 alone               test_fetch_requests
``BaseConnector._release``, ``._conns``    idle connections have no limit      test_many_hosts
``BaseProtocol.transport``, a slot         nothing is called at the moment at   test_c2_shared_hosts
                                           which a request is written
=========================================  ==================================  =======================
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import aiohttp
from aiohttp import http_writer
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError, LineTooLong
from multidict import CIMultiDict
from yarl import URL

from searchcrawl import clock, urls
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.head_mending import Unmendable, mend_head
from searchcrawl.http.name_lookups import NameLookups

#: Connections are kept open to so many hosts without a request: a site of thousands of hosts would take all files.
MAX_IDLE_HOSTS: Final = 64
#: A head that is longer, or comes in more pieces, is not mended: each piece costs a look at all that came before.
MENDED_BYTES: Final = 64 * 1024
_MENDED_PIECES: Final = 100
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NO_MESSAGE: Final = ((), False, b"")


_transport: Final[Any] = vars(BaseProtocol)["transport"]


class _Connection(ResponseHandler):
    """Reports a body without a length as broken where a reset ended it (X-R6), and one whose chunks are broken (X-R5).

    Closes itself when a server sends something without a request: that would be read as the next answer. ``confirm`` is called
    once, as the next request is about to be written, and may raise.
    """

    idle = False
    confirm: Callable[[], None] | None = None

    @property
    def transport(self) -> asyncio.Transport | None:
        # aiohttp asks for it to write.
        if (confirm := self.confirm) is not None:
            self.confirm = None
            confirm()
        transport: asyncio.Transport | None = _transport.__get__(self)
        return transport

    @transport.setter
    def transport(self, value: asyncio.Transport | None) -> None:
        _transport.__set__(self, value)

    def close(self) -> None:
        self.confirm = None
        super().close()

    def abort(self) -> None:
        self.confirm = None
        super().abort()

    def set_response_params(self, **parameters: Any) -> None:
        self.idle = False
        super().set_response_params(**parameters)
        parser: Any = _HeadParser(self, functools.partial(self._build_parser, parameters), self._parser)
        self._parser = parser

    def data_received(self, data: bytes) -> None:
        if self.idle and data:
            self.abort()
            return
        super().data_received(data)
        error, body = self.exception(), self._payload
        if error is not None and body is not None and not body.is_eof():
            # aiohttp would let it wait for the rest until its time is over.
            body.set_exception(_describe_broken(error))

    def _build_parser(self, parameters: dict[str, Any]) -> Any:
        """The parser of aiohttp for an answer, as with the request."""
        super().set_response_params(**parameters)
        return self._parser

    def connection_lost(self, exc: BaseException | None) -> None:
        body = self._payload
        if exc is not None and body is not None and not body.is_eof():
            body.set_exception(aiohttp.ClientPayloadError(f"connection lost: {exc}"))
        super().connection_lost(exc)


class _HeadParser:
    """Stands for the parser of a connection until it has read the final head of an answer, and mends one that it refuses.

    aiohttp's parser is given the head alone then: what is wrong behind it does no harm to a body that is whole.
    """

    def __init__(self, connection: _Connection, build: Callable[[], Any], parser: Any) -> None:
        self._connection = connection
        self._build = build
        self._parser = parser
        self._received = b""
        self._pieces = 0
        self._error: BadHttpMessage | None = None

    def feed_data(self, data: bytes) -> Any:
        is_beyond = self._pieces >= _MENDED_PIECES or len(self._received) > MENDED_BYTES
        self._received += data
        self._pieces += 1
        if self._error is None:
            try:
                return self._note_fed(self._parser.feed_data(data), is_beyond)
            except LineTooLong:
                raise
            except BadHttpMessage as error:
                self._error = error
        if is_beyond:
            raise self._error
        return self._feed_mended(self._error)

    def feed_eof(self) -> Any:
        if self._error is not None:
            self._connection.set_exception(self._error)
            return None
        return self._parser.feed_eof()

    def pause_reading(self) -> None:
        self._parser.pause_reading()

    def _note_fed(self, fed: Any, is_beyond: bool) -> Any:
        connection = self._connection
        for message, _ in fed[0]:
            is_beyond = is_beyond or message.code > 199
            if message.chunked and _names_chunks_twice(message):
                connection.force_close()
        if is_beyond:
            connection._parser = self._parser
        return fed

    def _feed_mended(self, error: BadHttpMessage) -> Any:
        try:
            mended = mend_head(self._received)
        except Unmendable:
            raise error from None
        if mended is None:
            return _NO_MESSAGE
        connection = self._connection
        parser = self._build()
        connection._parser = parser
        connection.force_close()
        try:
            fed = parser.feed_data(mended.head)
        except BadHttpMessage:
            raise error from None
        try:
            parser.feed_data(mended.rest)
        except BadHttpMessage as broken:
            for _, body in fed[0]:
                if not body.is_eof():
                    body.set_exception(_describe_broken(broken))
        return fed


def _describe_broken(error: BaseException) -> aiohttp.ClientPayloadError:
    return aiohttp.ClientPayloadError(error.message if isinstance(error, HttpProcessingError) else str(error))


def _names_chunks_twice(message: RawResponseMessage) -> bool:
    """Whether chunks are named more than once: such a proxy may be wrong about more than its header."""
    values = message.headers.getall("Transfer-Encoding", ())
    return [value.lower() for value in values] != ["chunked"]


def _serialize(status_line: str, headers: CIMultiDict[str]) -> bytes:
    """The head of a request as aiohttp writes it, also with bytes that are no UTF-8 (``surrogateescape``)."""
    if all(value.isascii() for value in headers.values()):
        return _aiohttp_serialize(status_line, headers)
    lines = [status_line, *(f"{name}: {value}" for name, value in headers.items())]
    if any(_CONTROL.search(line) for line in lines):
        raise ValueError("a control character in a header")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


_aiohttp_serialize = http_writer._serialize_headers
http_writer._serialize_headers = _serialize


class AddressForbidden(OSError):
    """An address was refused; an OSError, so that aiohttp tries the next address."""


class GuardedResolver(AbstractResolver):
    """Asks ``resolve`` of the source, then ``lookups``, and leaves out addresses that may not be reached.

    Whoever gave an address, DNS or another process, it is checked here, and once more where the socket is opened.
    """

    def __init__(self, guard: AddressGuard, lookups: NameLookups) -> None:
        self._guard = guard
        self._lookups = lookups

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found: Sequence[str] = self._guard.addresses_for(host) or await self._lookups.find(host)
        allowed = [address for address in found if self._guard.may_connect(host, address)]
        if not allowed:
            raise AddressForbidden(self._guard.explain(found[0]))
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in allowed]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address, family in zip(allowed, families, strict=True)
        ]

    async def close(self) -> None:
        """Does nothing: others use the lookups as well."""


class TurnPassed(aiohttp.ClientConnectionError):
    """The process was stopped before it sent a request, and others may ask the host now."""


class GuardedConnector(aiohttp.TCPConnector):
    """Connects to addresses that the guard allows; at most ``limit`` connections at once.

    It keeps idle connections to the last MAX_IDLE_HOSTS hosts only. ``may_send`` tells of ``host:port``, as a request is written,
    whether one may be sent still that began at a moment (monotonic seconds); else TurnPassed is raised. So it is where
    aiohttp sends one again.
    """

    def __init__(
        self,
        guard: AddressGuard,
        lookups: NameLookups,
        *,
        limit: int,
        may_send: Callable[[str, float], bool] = lambda host, since: True,
    ) -> None:
        self._may_send = may_send
        # The lookups have a cache of their own, and the resolver checks the answers each time.
        super().__init__(
            limit=limit,
            resolver=GuardedResolver(guard, lookups),
            use_dns_cache=False,
            socket_factory=functools.partial(_open_socket, guard),
        )
        connections: functools.partial[Any] = functools.partial(_Connection, loop=asyncio.get_running_loop())
        self._factory = connections

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # aiohttp's
    ) -> aiohttp.connector.Connection:
        since = clock.monotonic()
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        if isinstance(protocol, _Connection):
            protocol.confirm = functools.partial(self._confirm, _name_host(req.url.origin()), since)
        return connection

    def _confirm(self, host: str, since: float) -> None:
        """Raises TurnPassed for a request that may not be sent any more, as late as can be: a process may be stopped anywhere."""
        if not self._may_send(host, since):
            raise TurnPassed("others may ask the host now")

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if isinstance(protocol, _Connection):
            protocol.idle, protocol.confirm = True, None
        super()._release(key, protocol, should_close=should_close)
        while len(self._conns) > MAX_IDLE_HOSTS:
            for idle, _ in self._conns.pop(next(iter(self._conns))):
                idle.close()


@functools.lru_cache(maxsize=1_000)
def _name_host(origin: URL) -> str:
    """The name of a host in the store: all requests of a crawl are to a few."""
    return urls.host_and_port(str(origin))


def _open_socket(guard: AddressGuard, address: aiohttp.AddrInfoType) -> socket.socket:
    """Makes the socket of each connection; raises AddressForbidden for an address that may not be reached."""
    family, kind, protocol, _, peer = address
    if not guard.may_connect(None, str(peer[0])):
        raise AddressForbidden(guard.explain(str(peer[0])))
    return socket.socket(family, kind, protocol)
