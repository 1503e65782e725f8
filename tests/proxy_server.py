"""A small HTTP proxy: absolute requests and CONNECT, names resolved by a table. Threads, port 0, loopback only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from tests.tcp_server import TcpServer, read_head

_SECONDS = 10.0


class ProxyServer(TcpServer):
    """Forwards to the hosts of ``names`` (host → address) and to literal addresses of 127.0.0.1.

    ``asked`` are the first lines of the requests seen, ``heads`` the whole heads; with ``authorization`` (the
    value of Proxy-Authorization) all others get 407. ``url`` is ``http://127.0.0.1:PORT``.
    """

    def __init__(self, names: Mapping[str, str], *, authorization: str | None = None) -> None:
        super().__init__(seconds=_SECONDS)
        self._names = dict(names) | {"127.0.0.1": "127.0.0.1"}
        self._authorization = authorization
        self.asked: list[str] = []
        self.heads: list[str] = []

    def serve(self, connection: socket.socket) -> None:
        head = read_head(connection).decode("latin-1")
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


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
