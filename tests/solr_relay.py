"""Stands between a crawl and a real Solr, and breaks one exchange at an exact moment."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from collections.abc import Callable
from enum import Enum, auto

from tests.solr_server import RunningSolr
from tests.tcp_server import TcpServer


class Break(Enum):
    """Where an exchange breaks; each happens once."""

    #: Solr is killed when half of the documents of a request are through
    KILL_IN_DOCUMENTS = auto()
    #: Solr is killed when it has acknowledged documents and is asked to commit
    KILL_BEFORE_COMMIT = auto()
    #: Solr has processed the documents, and its answer is lost by a reset
    RESET_AFTER_DOCUMENTS = auto()
    #: nothing of the request arrives
    RESET_BEFORE_DOCUMENTS = auto()


class SolrRelay(TcpServer):
    """Passes bytes on between its port and Solr's; a killed Solr is started again at once, in a thread."""

    def __init__(self, solr: RunningSolr, core: str, at: Break) -> None:
        super().__init__()
        self._solr = solr
        #: what ``index.url`` names
        self.url = f"{self.url}/solr/{core}"
        self._at = at
        self._starting: threading.Thread | None = None
        self._lock = threading.Lock()
        #: whether it came to the break
        self.broken = False

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._starting is not None:
            self._starting.join()

    def serve(self, connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._solr.port), timeout=10) as server:
            _Pair(connection, server, self._breaks).run(self.stopping)

    def _breaks(self, moment: Break) -> bool:
        """Whether the exchange ends here; kills Solr where that is what breaks it."""
        with self._lock:
            if self.broken or moment != self._at:
                return False
            self.broken = True
        if moment in {Break.KILL_IN_DOCUMENTS, Break.KILL_BEFORE_COMMIT}:
            self._solr.kill()
            self._starting = threading.Thread(target=self._solr.start)
            self._starting.start()
        return True


class _Pair:
    """One connection and its other half; documents come as a chunked request, commands with a length."""

    def __init__(self, client: socket.socket, server: socket.socket, breaks: Callable[[Break], bool]) -> None:
        self._client = client
        self._server = server
        self._breaks = breaks
        self._documents = False

    def run(self, over: threading.Event) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._client, selectors.EVENT_READ, self._from_client)
            selector.register(self._server, selectors.EVENT_READ, self._from_server)
            while not over.is_set():
                for key, _ in selector.select(0.05):
                    if not key.data():
                        return

    def _from_client(self) -> bool:
        data = self._client.recv(65_536)
        is_update = data.startswith(b"POST ") and b"/update" in data.partition(b"\r\n")[0]
        if is_update:
            self._documents = b"chunked" in data
            if not self._documents and self._breaks(Break.KILL_BEFORE_COMMIT):
                return False
            if self._documents and self._breaks(Break.RESET_BEFORE_DOCUMENTS):
                return _reset(self._client)
        elif self._documents and len(data) > 1000:
            half = len(data) // 2
            self._server.sendall(data[:half])
            if self._breaks(Break.KILL_IN_DOCUMENTS):
                return False
            data = data[half:]
        self._server.sendall(data)
        return bool(data)

    def _from_server(self) -> bool:
        data = self._server.recv(65_536)
        if self._documents and data and self._breaks(Break.RESET_AFTER_DOCUMENTS):
            return _reset(self._client)
        self._client.sendall(data)
        return bool(data)


def _reset(connection: socket.socket) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False
