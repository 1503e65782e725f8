"""A small HTTP proxy: absolute requests and CONNECT, names resolved by a table. Threads, port 0, loopback only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_SECONDS = 10.0


class ProxyServer:
    """Forwards to the hosts of ``names`` (host → address) and to literal addresses of 127.0.0.1.

    ``asked`` are the first lines of the requests seen, ``heads`` the whole heads; with ``authorization`` (the
    value of Proxy-Authorization) all others get 407. ``url`` is ``http://127.0.0.1:PORT``.
    """

    def __init__(self, names: Mapping[str, str], *, authorization: str | None = None) -> None:
        self._names = dict(names) | {"127.0.0.1": "127.0.0.1"}
        self._authorization = authorization
        self.asked: list[str] = []
        self.heads: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in [self._socket, *self._open]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(_SECONDS)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_SECONDS)
        with suppress(OSError), connection:
            head = _head_of(connection)
            if head:
                self._answer(connection, head)

    def _answer(self, connection: socket.socket, head: str) -> None:
        line, *fields = head.split("\r\n")
        self.asked.append(line)
        self.heads.append(head)
        if self._authorization is not None and f"Proxy-Authorization: {self._authorization}" not in fields:
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        method, target, _ = line.split(" ", 2)
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        address = self._names.get(parts.hostname or "")
        if address is None:
            connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection((address, parts.port or 80), timeout=_SECONDS) as server:
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = parts.path + (f"?{parts.query}" if parts.query else "")
                kept = [field for field in fields if not field.lower().startswith(("proxy-", "connection:"))]
                server.sendall("\r\n".join([f"{method} {path} HTTP/1.1", "Connection: close", *kept]).encode("latin-1"))
            self._join(connection, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join(_SECONDS)


def _head_of(connection: socket.socket) -> str:
    head = b""
    while b"\r\n\r\n" not in head:
        received = connection.recv(65536)
        if not received:
            return ""
        head += received
    return head.decode("latin-1")


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
