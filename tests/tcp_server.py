"""What servers of tests that speak no HTTP of a library have in common: port 0, loopback only, threads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class TcpServer:
    """Serves each connection by ``serve``, in a thread, while it is open; ``stopping`` is set at its end."""

    def __init__(self, address: str = "127.0.0.1", *, seconds: float = 10) -> None:
        self.stopping = threading.Event()
        self._seconds = seconds
        self._socket = socket.create_server((address, 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{address}:{self.port}"
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def serve(self, connection: socket.socket) -> None:
        """Serves a connection, which is closed then; an OSError ends it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for each in [self._socket, *self._open]:
            # Whoever waits for it goes on.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(self._seconds)
        for each in [self._socket, *self._open]:
            each.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.settimeout(self._seconds)
                self._open.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.serve(connection)


def read_head(connection: socket.socket) -> bytes:
    """The head of a request, and what came with it; nothing where the other end closes before."""
    head = b""
    while b"\r\n\r\n" not in head:
        received = connection.recv(65536)
        if not received:
            return b""
        head += received
    return head
