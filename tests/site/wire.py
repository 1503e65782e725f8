"""HTTP/1.1 on an asyncio transport, low enough to misbehave on purpose."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

_MAX_HEAD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; ``path`` and ``query`` as sent, header names in lower case, ``time`` in Unix seconds."""

    method: str
    host: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    time: float


class Wire:
    """The way back to the client: counts what it sends, and can break off in every way."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.bytes_sent = 0
        self.status: int | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def send(self, data: bytes) -> None:
        """Queues ``data``; what is sent to a closed connection is not counted."""
        if not self.transport.is_closing():
            self.transport.write(data)
            self.bytes_sent += len(data)

    async def send_slowly(self, data: bytes) -> None:
        """Sends ``data`` and waits until the client has taken most of it."""
        self.send(data)
        await self._writable.wait()

    @property
    def closed(self) -> bool:
        """Whether either side has ended the connection."""
        return self.transport.is_closing()

    def close(self) -> None:
        """Ends the connection after what is queued has gone out."""
        self.transport.close()

    def reset(self) -> None:
        """Ends the connection with a RST; what is queued is lost."""
        sock: socket.socket | None = self.transport.get_extra_info("socket")
        if sock is not None and not self.transport.is_closing():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def pause(self) -> None:
        """The transport's buffer is full."""
        self._writable.clear()

    def resume(self) -> None:
        """The transport's buffer has room again, or the connection is gone."""
        self._writable.set()


#: Answers at once and returns None, or returns what has still to be done.
Handler = Callable[[Request, Wire], Coroutine[Any, Any, None] | None]


def head(status: int, headers: list[tuple[str, str]]) -> bytes:
    """The status line and headers, with the blank line that ends them."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class HttpProtocol(asyncio.Protocol):
    """One connection: requests in turn, each handed on; kept alive as HTTP/1.1 says."""

    def __init__(self, handler: Handler, connections: set[HttpProtocol]) -> None:
        self._handler = handler
        self._connections = connections
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self.wire: Wire | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.wire = Wire(transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self.wire is not None:
            self.wire.resume()

    def pause_writing(self) -> None:
        if self.wire is not None:
            self.wire.pause()

    def resume_writing(self) -> None:
        if self.wire is not None:
            self.wire.resume()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._serve()

    def _serve(self) -> None:
        wire = self.wire
        while wire is not None and self._task is None and not wire.closed:
            request = self._next_request(wire)
            if request is None:
                return
            wire.bytes_sent = 0
            wire.status = None
            rest = self._handler(request, wire)
            close = request.headers.get("connection", "").lower() == "close"
            if rest is not None:
                self._task = asyncio.get_running_loop().create_task(self._finish(rest, close=close))
            elif close:
                wire.close()

    async def _finish(self, rest: Coroutine[Any, Any, None], *, close: bool) -> None:
        try:
            await rest
        except Exception:
            if self.wire is not None:
                self.wire.reset()
            raise
        self._task = None
        if close and self.wire is not None:
            self.wire.close()
        self._serve()

    def _next_request(self, wire: Wire) -> Request | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                wire.reset()
            return None
        try:
            method, target, headers = _parse_head(bytes(self._buffer[:end]))
            length = int(headers.get("content-length", "0"))
        except ValueError:
            wire.send(head(400, [("Content-Length", "0"), ("Connection", "close")]))
            wire.close()
            return None
        if len(self._buffer) < end + 4 + length:
            return None
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        path, _, query = target.partition("?")
        host = headers.get("host", "").rsplit(":", 1)[0].lower()
        return Request(
            method=method, host=host, path=path, query=query, headers=headers, body=body, time=round(time.time(), 3)
        )


def _parse_head(data: bytes) -> tuple[str, str, dict[str, str]]:
    lines = data.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    if target.startswith("http://"):
        target = "/" + target[7:].partition("/")[2]
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(line)
        headers[name.strip().lower()] = value.strip()
    return method, target, headers
