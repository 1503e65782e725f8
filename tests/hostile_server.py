"""A web server that answers wrong on purpose: each path is a fault. Threads, port 0, loopback only."""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

PAGE = b"<html><title>page</title>" + b"word " * 400
_BOMB = gzip.compress(b"\0" * 60_000_000)


def head(status: str = "200 OK", *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1")


def whole(body: bytes = PAGE, status: str = "200 OK", *headers: str) -> bytes:
    return head(status, "Content-Type: text/html", f"Content-Length: {len(body)}", *headers) + body


def coded(coding: str, body: bytes) -> bytes:
    return whole(body, "200 OK", f"Content-Encoding: {coding}")


def redirect(status: str, *locations: str) -> bytes:
    return whole(b"", status, *(f"Location: {location}" for location in locations))


def _flipped(body: bytes, position: int) -> bytes:
    return body[:position] + bytes([body[position] ^ 0xFF]) + body[position + 1 :]


#: Answers of one piece, after which the connection is closed.
ANSWERS: dict[str, bytes] = {
    "/ok": whole(),
    "/empty": whole(b""),
    "/gzip": coded("gzip", gzip.compress(PAGE)),
    "/gzip-twice": coded("gzip, gzip", gzip.compress(gzip.compress(PAGE))),
    "/deflate-raw": coded("deflate", zlib.compress(PAGE, wbits=-15)),
    "/gzip-thrice": coded("gzip, gzip, gzip", gzip.compress(gzip.compress(gzip.compress(PAGE)))),
    "/gzip-cut": coded("gzip", gzip.compress(PAGE)[:-12]),
    "/gzip-crc": coded("gzip", _flipped(gzip.compress(PAGE), -6)),
    "/gzip-bad": coded("gzip", PAGE),
    "/gzip-bomb": coded("gzip", _BOMB),
    "/unknown-coding": coded("rot13", PAGE),
    "/no-length": head("200 OK", "Content-Type: text/html") + PAGE,
    "/cut-length": head("200 OK", "Content-Length: 9000") + PAGE,
    "/chunk-cut": head("200 OK", "Transfer-Encoding: chunked") + b"10\r\n0123456789abcdef\r\n10\r\n0123",
    "/chunk-bad": head("200 OK", "Transfer-Encoding: chunked") + b"xyz\r\n0123456789abcdef\r\n0\r\n\r\n",
    "/announced": head("200 OK", "Content-Length: 999999999999"),
    "/two-lengths": head("200 OK", "Content-Length: 5", "Content-Length: 6") + b"012345",
    "/negative-length": head("200 OK", "Content-Length: -5") + b"012345",
    "/header-too-long": head("200 OK", "X-Long: " + "x" * 200_000) + PAGE,
    "/headers-too-large": head("200 OK", *(f"X-{n}: " + "x" * 15_000 for n in range(6))) + PAGE,
    "/status-100-digits": head("2" * 100 + " OK", "Content-Length: 0"),
    "/status-2": head("2 OK", "Content-Length: 0"),
    "/status-negative": head("-12 OK", "Content-Length: 0"),
    "/status-101": head("101 Switching", "Upgrade: x", "Connection: upgrade"),
    "/no-http": b"<html>not even a status line</html>",
    "/closed": b"",
    "/status-204": head("204 No Content"),
    "/status-206": whole(PAGE, "206 Partial Content"),
    "/status-304": head("304 Not Modified", 'ETag: "6"'),
    "/status-404-gzip-cut": whole(gzip.compress(PAGE)[:-9], "404 Not Found", "Content-Encoding: gzip"),
    "/status-404": whole(PAGE, "404 Not Found"),
    "/status-429": whole(b"", "429 Too Many Requests", "Retry-After: 120"),
    "/status-503": whole(b"", "503 Service Unavailable"),
    "/location-none": redirect("302 Found"),
    "/location-blank": redirect("302 Found", " "),
    "/location-two": redirect("302 Found", "/ok", "/gzip"),
    "/location-twice": redirect("302 Found", "/ok", "/ok"),
    "/location-bad": redirect("302 Found", "http://[bad"),
    "/location-file": redirect("302 Found", "file:///etc/passwd"),
    "/loop": redirect("302 Found", "/loop"),
    "/loop-a": redirect("302 Found", "/loop-b"),
    "/loop-b": redirect("307 Temporary Redirect", "/loop-a"),
    "/found": redirect("302 Found", "/ok"),
    "/moved": redirect("301 Moved Permanently", "/ok"),
    "/moved-outside": redirect("308 Permanent Redirect", "http://elsewhere.test/"),
    **{f"/chain-{n}": redirect("302 Found", f"/chain-{n + 1}") for n in range(30)},
}


class HostileServer:
    """Serves ANSWERS, the faults that need time, and what a test adds to ``answers``.

    ``requests`` are the heads seen, as text; ``url`` is ``http://127.0.0.1:PORT``.
    """

    def __init__(self, address: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.answers: dict[str, bytes] = dict(ANSWERS)
        self.requests: list[str] = []
        self._stopping = threading.Event()
        self._socket = socket.create_server((address, 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{address}:{self.port}"
        self._threads: list[threading.Thread] = []
        self._slow: dict[str, Callable[[socket.socket], None]] = {
            "/cut-reset": self._cut_reset,
            "/no-length-reset": self._no_length_reset,
            "/reset": _reset,
            "/silent": lambda connection: self._wait(60),
            "/drip": self._drip,
            "/endless-headers": self._endless_headers,
            "/endless-body": self._endless_body,
            "/endless-404": self._endless_404,
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
                connection.sendall(self.answers.get(path, whole(b"", "404 Not Found")))
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)

    def _wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)

    def _cut_reset(self, connection: socket.socket) -> None:
        connection.sendall(head("200 OK", "Content-Length: 9000") + PAGE)
        self._wait(0.1)
        _reset(connection)

    def _no_length_reset(self, connection: socket.socket) -> None:
        connection.sendall(head("200 OK", "Content-Type: text/html") + PAGE)
        self._wait(0.1)
        _reset(connection)

    def _drip(self, connection: socket.socket) -> None:
        connection.sendall(head("200 OK", "Content-Length: 9000"))
        self._repeat(connection, b"x", 0.05)

    def _endless_headers(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        self._repeat(connection, b"X-Header: some value\r\n" * 1000, 0)

    def _endless_body(self, connection: socket.socket) -> None:
        connection.sendall(head("200 OK", "Transfer-Encoding: chunked"))
        self._repeat(connection, b"10000\r\n" + b"x" * 65536 + b"\r\n", 0)

    def _endless_404(self, connection: socket.socket) -> None:
        connection.sendall(head("404 Not Found", "Transfer-Encoding: chunked"))
        self._repeat(connection, b"10000\r\n" + b"x" * 65536 + b"\r\n", 0)

    def _repeat(self, connection: socket.socket, data: bytes, pause_seconds: float) -> None:
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
