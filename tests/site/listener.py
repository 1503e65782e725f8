"""A port that can refuse connections and take them again, without losing its number."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from tests.site.wire import Handler, HttpProtocol

ADDRESS: Final = "127.0.0.1"
_BACKLOG: Final = 1024


class Listener:
    """A port of 127.0.0.1 and the connections to it."""

    def __init__(self, port: int) -> None:
        self._socket = _bound(port)
        self.port: int = self._socket.getsockname()[1]
        self._handler: Handler | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[HttpProtocol] = set()

    @property
    def accepting(self) -> bool:
        """Whether connections are taken."""
        return self._server is not None

    async def start(self, handler: Handler) -> None:
        """Takes connections and hands their requests to ``handler``."""
        self._handler = handler
        await self.accept()

    async def accept(self) -> None:
        """Takes connections (again)."""
        handler = self._handler
        if self._server is None and handler is not None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(
                lambda: HttpProtocol(handler, self._connections), sock=self._socket, backlog=_BACKLOG
            )

    def refuse(self) -> None:
        """Ends all connections and refuses new ones; a bound socket that doesn't listen keeps the port."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket = _bound(self.port)
            for connection in list(self._connections):
                if connection.wire is not None:
                    connection.wire.reset()


def _bound(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((ADDRESS, port))
    return sock
