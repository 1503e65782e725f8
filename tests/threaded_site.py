"""Web servers of tests: threads, port 0, loopback only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, Self

#: The host of sites that have one.
APP: Final = "app.acme.test"


class Seen(NamedTuple):
    """A request as it came."""

    method: str
    host: str
    path: str
    headers: dict[str, str]
    body: str


class QuietHandler(BaseHTTPRequestHandler):
    """What handlers of several sites have; ``site`` is the one that it serves."""

    protocol_version = "HTTP/1.1"
    site: Any

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def read_request(self) -> Seen:
        """The request, read to its end, and noted."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("latin-1")
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.headers["Host"], self.path, headers, body)
        self.site.requests.append(seen)
        return seen

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


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of connections that a test ends; anything else is a fault of the handler."""
        if not isinstance(sys.exc_info()[1], (OSError, ValueError)):
            super().handle_error(request, client_address)


class ThreadedSite:
    """Serves with ``handler`` while it is open; ``port`` is known before, ``requests`` are those that it read."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), type("Handler", (handler,), {"site": self}))
        self.port: int = self._server.server_address[1]
        self.requests: list[Seen] = []
        #: set when the site ends
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, path: str = "/", host: str = APP) -> str:
        """The URL of a page."""
        return f"http://{host}:{self.port}{path}"

    def seen(self, host: str = APP) -> list[Seen]:
        """The requests to a host."""
        return [one for one in list(self.requests) if one.host == f"{host}:{self.port}"]
