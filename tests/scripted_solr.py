"""A server on port 0 that answers updates and queries as a test tells it, well or badly."""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from searchcrawl.index.receiver import Batch
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument, Removal
from tests.threaded_site import QuietHandler, ThreadedSite


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


class ScriptedSolr(ThreadedSite):
    """Answers the n-th request by the n-th step of ``script``, and all further ones by the last."""

    def __init__(self, script: Sequence[Step] = ()) -> None:
        super().__init__(Exchange)
        #: the URL of its core
        self.core_url = f"http://127.0.0.1:{self.port}/solr/scripted"
        #: a receiver of it, which waits two seconds at most
        self.receiver = SolrReceiver(self.core_url, timeout_seconds=2, max_answer_bytes=100_000)
        self.script = [*script]
        self.received: list[Received] = []
        #: What /admin/metrics says of the cores, as JSON; such requests are neither scripted nor noted.
        self.metrics = b"{}"
        #: What the Config API says of the update log, as JSON; not scripted and not noted either. None: it is forbidden.
        self.update_log: bytes | None = b'{"dir":"","syncLevel":"FSYNC"}'
        #: The crawl_version that /get finds, by id; these are not scripted either, but noted in ``read_back``.
        self.versions: dict[str, int] = {}
        self.read_back: list[str] = []
        #: So many updates are reset before they are read.
        self.unread = 0

    def __exit__(self, *_: object) -> None:
        self.receiver.close()
        super().__exit__()

    def step(self, request: Received) -> Step:
        """Notes a request and tells how to answer it."""
        self.received.append(request)
        return self.script[min(len(self.received), len(self.script)) - 1]


class Exchange(QuietHandler):
    """One connection of the scripted server."""

    # Header and body in one packet: in two, the second waits for the first to be acknowledged.
    wbufsize = 65_536
    site: ScriptedSolr

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_GET

    def send(
        self, status: int, body: bytes, *, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        """A whole answer; ``length`` other than the body's is a lie."""
        lie = {} if length is None else {"Content-Length": str(length)}
        self.answer(status, body, "application/json", **{**(headers or {}), **lie})
        self.wfile.flush()

    def reset(self) -> None:
        """Ends the connection by RST."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _answer(self) -> None:
        address = urlsplit(self.path)
        if self.site.unread and address.path.endswith("/update"):
            self.site.unread -= 1
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
            self.send(200, b'{"responseHeader":{"status":0},"metrics":%s}' % self.site.metrics)
            return
        if address.path.endswith("/config/updateHandlerupdateLog"):
            self._tell_update_log()
            return
        if address.path.endswith("/get"):
            self._read_back(request.parameters["id"][0])
            return
        # The client may be gone, as tests of its time limits want it.
        with contextlib.suppress(OSError):
            self.site.step(request)(self, request)

    def _tell_update_log(self) -> None:
        about = self.site.update_log
        if about is None:
            self.send(403, b"<html>Forbidden</html>")
        else:
            self.send(200, b'{"responseHeader":{"status":0},"config":{"updateHandlerupdateLog":%s}}' % about)

    def _read_back(self, entry_id: str) -> None:
        self.site.read_back.append(entry_id)
        held = self.site.versions.get(entry_id)
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
    while not exchange.site.stopping.is_set():
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
    exchange.site.stopping.wait(30)


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
        if exchange.site.stopping.wait(0.02):
            return
