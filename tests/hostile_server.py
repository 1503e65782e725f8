"""A web server that answers wrong on purpose: each path is a fault. Threads, port 0, loopback only."""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

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


class HostileServer:
    """Serves ANSWERS, the faults that need time, and what a test adds to ``answers``, or to ``choices`` by the request.

    ``requests`` are the heads seen, as text; ``url`` is ``http://127.0.0.1:PORT``.
    """

    def __init__(self, address: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.answers: dict[str, bytes] = dict(ANSWERS)
        self.choices: dict[str, Callable[[str], bytes]] = {}
        self.requests: list[str] = []
        self._stopping = threading.Event()
        self._socket = socket.create_server((address, 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{address}:{self.port}"
        self._threads: list[threading.Thread] = []
        self._slow: dict[str, Callable[[socket.socket], None]] = {
            "/reset": _reset,
            "/reset-length": lambda connection: self._cut_by_reset(connection, "Content-Length: 9000"),
            "/reset-no-length": lambda connection: self._cut_by_reset(connection, "Content-Type: text/html"),
            "/silent": lambda connection: self._wait(60),
            "/drip-header": lambda connection: self._repeat(connection, b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.05),
            "/drip-line": lambda connection: self._repeat(connection, b"HTTP/1.1 200 OK\r\nX-A: ", b"x", 0.05),
            "/drip-body": lambda connection: self._repeat(
                connection, head("200 OK", "Content-Length: 9000"), b"x", 0.05
            ),
            "/drip-404": lambda connection: self._repeat(
                connection, head("404 No", "Content-Length: 9000"), b"x", 0.05
            ),
            "/endless-headers": lambda connection: self._repeat(
                connection, b"HTTP/1.1 200 OK\r\n", b"X-Header: some value\r\n" * 1000
            ),
            "/endless-line": lambda connection: self._repeat(connection, b"HTTP/1.1 200 OK\r\nX-A: ", b"x" * 65536),
            "/endless-1xx": lambda connection: self._repeat(connection, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
            "/endless-body": lambda connection: self._repeat(connection, head("200 OK", _CHUNKED), _BLOCK),
            "/endless-no-length": lambda connection: self._repeat(connection, head("200 OK"), b"x" * 65536),
            "/endless-404": lambda connection: self._repeat(connection, head("404 Not Found", _CHUNKED), _BLOCK),
            "/endless-chunk-name": lambda connection: self._repeat(
                connection, head("200 OK", _CHUNKED) + b"5;", b"x" * 65536
            ),
            "/endless-trailer": lambda connection: self._repeat(
                connection, head("200 OK", _CHUNKED) + b"5\r\nabcde\r\n0\r\n", b"X-T: y\r\n" * 1000
            ),
        }

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(10)

    def act_as(self, path: str, fault: str) -> None:
        """Answers ``path`` with a fault that needs time."""
        self._slow[path] = self._slow[fault]

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with suppress(OSError):
            self._answer(self._tls.wrap_socket(connection, server_side=True) if self._tls else connection)
        connection.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
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

    def _wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def _cut_by_reset(self, connection: socket.socket, header: str) -> None:
        connection.sendall(head("200 OK", header) + PAGE)
        self._wait(0.1)
        _reset(connection)

    def _repeat(self, connection: socket.socket, begin: bytes, data: bytes, pause_seconds: float = 0) -> None:
        connection.sendall(begin)
        while not self._stopping.is_set():
            connection.sendall(data)
            if pause_seconds:
                self._wait(pause_seconds)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of 127.0.0.1 on which nobody listens while the block runs."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
