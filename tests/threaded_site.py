"""A web server of a test: threads, port 0, loopback only."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self


class Seen(NamedTuple):
    """A request as it came."""

    method: str
    host: str
    path: str
    headers: dict[str, str]
    body: str


class QuietHandler(BaseHTTPRequestHandler):
    """What handlers of several sites have."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def read_request(self) -> Seen:
        """The request, read to its end."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("latin-1")
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Seen(self.command, self.headers["Host"], self.path, headers, body)

    def cookie(self, name: str) -> str:
        """The value of a cookie of the request."""
        found = SimpleCookie(self.headers.get("Cookie") or "").get(name)
        return found.value if found is not None else ""

    def answer(
        self,
        status: int,
        body: str | bytes,
        kind: str = "text/html; charset=utf-8",
        *,
        cookies: Iterable[str] = (),
        **headers: str,
    ) -> None:
        """Sends an answer."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        for cookie in cookies:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(data)


class ThreadedSite:
    """Serves with ``handler`` while it is open; ``port`` is known before."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
