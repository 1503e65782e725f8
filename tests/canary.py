"""A listener that nobody may reach, and the spellings of its address (L7, X-N1)."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final, Self

#: Spellings of 127.0.0.2, of [::1] and of all addresses of this machine, as a host of a URL.
SPELLINGS: Final = [
    "127.0.0.2",
    "127.2",
    "127.0.2",
    "0x7f000002",
    "0X7F.2",
    "0x7f.0x0.0x0.0x2",
    "2130706434",
    "0177.0.0.2",
    "017700000002",
    "0177.0.00.02",
    "127.0.0.2.",
    "[::ffff:127.0.0.2]",
    "[::ffff:7f00:2]",
    "[0:0:0:0:0:ffff:127.0.0.2]",
    "[::127.0.0.2]",
    "[::1]",
    "[0000::0001]",
    "[::]",
    "0.0.0.0",
    "0",
    "１２７.０.０.２",
    "①②⑦.⓪.⓪.②",
    "127。0。0。2",
    "%31%32%37.0.0.2",
    "user:secret@127.0.0.2",
    "[2002:7f00:2::]",
    "[64:ff9b::127.0.0.2]",
]


class Canary:
    """Listens on 127.0.0.2, on [::1] where there is one, and on a wildcard; notes who connects."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._sockets = [socket.create_server(("127.0.0.2", 0))]
        self.port: int = self._sockets[0].getsockname()[1]
        with contextlib.suppress(OSError):
            self._sockets.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        self._sockets.append(socket.create_server(("0.0.0.0", 0)))
        self.wildcard_port: int = self._sockets[-1].getsockname()[1]
        self._threads = [threading.Thread(target=self._listen, args=(each,), daemon=True) for each in self._sockets]

    def _listen(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, peer = listener.accept()
            except OSError:
                return
            self.seen.append(f"{listener.getsockname()} from {peer}")
            connection.close()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._sockets:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in self._threads:
            thread.join(10)
