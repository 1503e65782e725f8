"""A server on port 0 that answers updates and queries as a test tells it, well or badly."""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import orjson

from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument, Removal


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request: its path, parameters and decoded JSON body (None without one)."""

    method: str
    path: str
    parameters: dict[str, list[str]]
    body: Any

    @property
    def ids(self) -> list[str]:
        """The ids of its documents or removals."""
        if isinstance(self.body, list):
            return [document["id"] for document in self.body]
        return list(self.body["delete"])


#: Answers one request on its connection.
Step = Callable[["Exchange", Received], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of connections that a test ends; anything else is a fault of the script."""
        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handle_error(request, client_address)


@dataclass(slots=True)
class ScriptedSolr:
    """Answers the n-th request by the n-th step of ``script``, and all further ones by the last."""

    script: list[Step] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    #: What /admin/metrics says of the cores, as JSON; such requests are neither scripted nor noted.
    metrics: bytes = b"{}"
    #: What the Config API says of the update log, as JSON; not scripted and not noted either. None: it is forbidden.
    update_log: bytes | None = b'{"dir":"","syncLevel":"FSYNC"}'
    #: The crawl_version that /get finds, by id; these are not scripted either, but noted in ``read_back``.
    versions: dict[str, int] = field(default_factory=dict)
    read_back: list[str] = field(default_factory=list)
    #: So many updates are reset before they are read.
    unread: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        handler = type("BoundExchange", (Exchange,), {"solr": self})
        self._server = _Server(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        """The URL of its core."""
        return f"http://127.0.0.1:{self._server.server_port}/solr/scripted"

    def step(self, request: Received) -> Step:
        """Notes a request and tells how to answer it."""
        self.received.append(request)
        return self.script[min(len(self.received), len(self.script)) - 1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()


class Exchange(BaseHTTPRequestHandler):
    """One connection of the scripted server."""

    protocol_version = "HTTP/1.1"
    # Header and body in one packet: in two, the second waits for the first to be acknowledged.
    wbufsize = 65_536
    solr: ScriptedSolr

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""

    def send(
        self, status: int, body: bytes, *, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        """A whole answer; ``length`` other than the body's is a lie."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def reset(self) -> None:
        """Ends the connection by RST."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _answer(self) -> None:
        address = urlsplit(self.path)
        if self.solr.unread and address.path.endswith("/update"):
            self.solr.unread -= 1
            self.reset()
            return
        raw = self._body()
        request = Received(
            method=self.command,
            path=address.path,
            parameters=parse_qs(address.query),
            body=orjson.loads(raw) if raw else None,
        )
        if address.path.endswith("/admin/metrics"):
            self.send(200, b'{"responseHeader":{"status":0},"metrics":%s}' % self.solr.metrics)
            return
        if address.path.endswith("/config/updateHandlerupdateLog"):
            self._tell_update_log()
            return
        if address.path.endswith("/get"):
            self._read_back(request.parameters["id"][0])
            return
        # The client may be gone, as tests of its time limits want it.
        with contextlib.suppress(OSError):
            self.solr.step(request)(self, request)

    def _tell_update_log(self) -> None:
        about = self.solr.update_log
        if about is None:
            self.send(403, b"<html>Forbidden</html>")
        else:
            self.send(200, b'{"responseHeader":{"status":0},"config":{"updateHandlerupdateLog":%s}}' % about)

    def _read_back(self, entry_id: str) -> None:
        self.solr.read_back.append(entry_id)
        held = self.solr.versions.get(entry_id)
        found = None if held is None else {"crawl_version": held}
        self.send(200, orjson.dumps({"responseHeader": {"status": 0}, "doc": found}))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


def small_batch(*names: str, removals: tuple[str, ...] = ()) -> Batch:
    """A batch of version 7: a document for each name, then the removals."""
    return Batch(
        number=1,
        source="site",
        crawl_version=7,
        documents=[IndexedDocument(id=name, fields={"title": f"Page {name}", "source": "site"}) for name in names],
        removals=[Removal(id=name, url=f"http://example.com/{name}", code=404) for name in removals],
    )


def good(exchange: Exchange, request: Received) -> None:
    """Takes everything."""
    exchange.send(200, b'{"responseHeader":{"status":0,"QTime":1}}')


def tolerant(errors: dict[str, str]) -> Step:
    """Takes all but the documents named, with HTTP 200."""

    def answer(exchange: Exchange, request: Received) -> None:
        found = [{"type": "ADD", "id": name, "message": why} for name, why in errors.items() if name in request.ids]
        exchange.send(200, orjson.dumps({"responseHeader": {"errors": found, "status": 0, "QTime": 1}}))

    return answer


def refusing(status: int, *, when: Callable[[list[str]], bool], reason: str = "no") -> Step:
    """Refuses the whole request where ``when`` holds of its ids, and takes all others."""

    def answer(exchange: Exchange, request: Received) -> None:
        if when(request.ids):
            exchange.send(status, orjson.dumps({"error": {"msg": reason, "code": status}}))
        else:
            good(exchange, request)

    return answer


def status(code: int, body: bytes = b"<html>Sorry</html>", **headers: str) -> Step:
    """One answer for everything; a header's name is written with underscores."""

    def answer(exchange: Exchange, request: Received) -> None:
        exchange.send(code, body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return answer


def cut(exchange: Exchange, request: Received) -> None:
    """Half an answer, then the end of the connection."""
    exchange.close_connection = True
    exchange.send(200, b'{"responseHeader":{"sta', length=41)


def bomb(exchange: Exchange, request: Received) -> None:
    """An answer of 200 MB, packed into 200 KB."""
    exchange.send(200, gzip.compress(b" " * 1_000_000) * 200, headers={"Content-Encoding": "gzip"})


def zipped(exchange: Exchange, request: Received) -> None:
    """A good answer, compressed."""
    exchange.send(200, gzip.compress(b'{"responseHeader":{"status":0}}'), headers={"Content-Encoding": "gzip"})


def endless(exchange: Exchange, request: Received) -> None:
    """An answer that does not end, as fast as it is read."""
    exchange.close_connection = True
    exchange.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"responseHeader":{"a":"')
    while not exchange.solr.stopping.is_set():
        exchange.wfile.write(b"a" * 65_536)


def reset(exchange: Exchange, request: Received) -> None:
    """Takes the request and resets the connection."""
    exchange.reset()


def reset_in_answer(exchange: Exchange, request: Received) -> None:
    """Resets the connection in the middle of the answer."""
    exchange.send(200, b'{"responseHeader":{"sta', length=41)
    exchange.reset()


def silent(exchange: Exchange, request: Received) -> None:
    """Takes the request and never answers."""
    exchange.close_connection = True
    exchange.solr.stopping.wait(30)


def drip_header(exchange: Exchange, request: Received) -> None:
    """A header that comes byte by byte and does not end."""
    _drip(exchange, b"HTTP/1.1 200 OK\r\nX-Padding: ")


def drip_body(exchange: Exchange, request: Received) -> None:
    """A body that comes byte by byte and does not end."""
    _drip(exchange, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")


def _drip(exchange: Exchange, beginning: bytes) -> None:
    exchange.close_connection = True
    exchange.wfile.write(beginning)
    for _ in range(1000):
        exchange.wfile.write(b" ")
        exchange.wfile.flush()
        if exchange.solr.stopping.wait(0.02):
            return
