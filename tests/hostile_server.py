"""A web server that answers wrong on purpose: each path is a fault. Threads, port 0, loopback only."""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tests.tcp_server import TcpServer

_CHUNKED = "Transfer-Encoding: chunked"
_BLOCK = b"10000\r\n" + b"x" * 65536 + b"\r\n"
PAGE = b"<html><title>page</title>" + b"word " * 400


def head(status: str = "200 OK", *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1")


def whole(body: bytes = PAGE, status: str = "200 OK", *headers: str) -> bytes:
    return head(status, "Content-Type: text/html", f"Content-Length: {len(body)}", *headers) + body


def coded(coding: str, body: bytes) -> bytes:
    return whole(body, "200 OK", f"Content-Encoding: {coding}")


def redirect(status: str, *locations: str) -> bytes:
    return whole(b"", status, *(f"Location: {location}" for location in locations))


#: Answers of one piece, after which the connection is closed; tests/hostile_answers.py has many more.
ANSWERS: dict[str, bytes] = {
    "/ok": whole(),
    "/gzip": coded("gzip", gzip.compress(PAGE)),
    "/status-304": head("304 Not Modified", 'ETag: "6"'),
    "/loop-a": redirect("302 Found", "/loop-b"),
    "/loop-b": redirect("307 Temporary Redirect", "/loop-a"),
    "/found": redirect("302 Found", "/ok"),
    "/moved": redirect("301 Moved Permanently", "/ok"),
    "/moved-outside": redirect("308 Permanent Redirect", "http://elsewhere.test/"),
    **{f"/chain-{n}": redirect("302 Found", f"/chain-{n + 1}") for n in range(30)},
}
#: Answers that do not end: how they begin, what comes again and again, and the pause between, in seconds.
_ENDLESS: dict[str, tuple[bytes, bytes, float]] = {
    "/drip-header": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.05),
    "/drip-line": (b"HTTP/1.1 200 OK\r\nX-A: ", b"x", 0.05),
    "/drip-body": (head("200 OK", "Content-Length: 9000"), b"x", 0.05),
    "/drip-no-length": (head("200 OK"), b"x", 0.05),
    "/drip-404": (head("404 No", "Content-Length: 9000"), b"x", 0.05),
    "/endless-headers": (b"HTTP/1.1 200 OK\r\n", b"X-Header: some value\r\n" * 1000, 0),
    "/endless-line": (b"HTTP/1.1 200 OK\r\nX-A: ", b"x" * 65536, 0),
    "/endless-1xx": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0),
    "/endless-body": (head("200 OK", _CHUNKED), _BLOCK, 0),
    "/endless-no-length": (head("200 OK"), b"x" * 65536, 0),
    "/endless-404": (head("404 Not Found", _CHUNKED), _BLOCK, 0),
    "/endless-chunk-name": (head("200 OK", _CHUNKED) + b"5;", b"x" * 65536, 0),
    "/endless-trailer": (head("200 OK", _CHUNKED) + b"5\r\nabcde\r\n0\r\n", b"X-T: y\r\n" * 1000, 0),
}


class HostileServer(TcpServer):
    """Serves ANSWERS, the faults that need time, and what a test adds to ``answers``, or to ``choices`` by the request.

    ``requests`` are the heads seen, as text; ``url`` is ``http://127.0.0.1:PORT``.
    """

    def __init__(self, address: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(address)
        self._tls = tls
        self.answers: dict[str, bytes] = dict(ANSWERS)
        self.choices: dict[str, Callable[[str], bytes]] = {}
        self.requests: list[str] = []
        self._slow: dict[str, Callable[[socket.socket], object]] = {
            "/reset": _reset,
            "/reset-length": partial(self._cut_by_reset, "Content-Length: 9000"),
            "/reset-no-length": partial(self._cut_by_reset, "Content-Type: text/html"),
            "/silent": lambda _: self.stopping.wait(60),
            **{path: partial(self._repeat, *answer) for path, answer in _ENDLESS.items()},
        }

    def act_as(self, path: str, fault: str) -> None:
        """Answers ``path`` with a fault that needs time."""
        self._slow[path] = self._slow[fault]

    def serve(self, connection: socket.socket) -> None:
        with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as opened:
            self._answer(opened)

    def _answer(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            received = connection.recv(65536)
            if not received:
                return
            request += received
            if request.startswith(b"\x16"):
                # A TLS hello: answered as a server does that knows no TLS.
                connection.sendall(whole(b"", "400 Bad Request"))
                return
        text = request.decode("latin-1")
        self.requests.append(text)
        path = text.split(" ", 2)[1]
        if path in self._slow:
            self._slow[path](connection)
        else:
            choose = self.choices.get(path)
            found = self.answers.get(path, whole(b"", "404 Not Found")) if choose is None else choose(text)
            connection.sendall(found)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    def _cut_by_reset(self, header: str, connection: socket.socket) -> None:
        connection.sendall(head("200 OK", header) + PAGE)
        self.stopping.wait(0.1)
        _reset(connection)

    def _repeat(self, begin: bytes, data: bytes, pause_seconds: float, connection: socket.socket) -> None:
        connection.sendall(begin)
        while not self.stopping.is_set():
            connection.sendall(data)
            if pause_seconds:
                self.stopping.wait(pause_seconds)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of 127.0.0.1 on which nobody listens while the block runs."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
