"""The server of `make hosts`: any number of virtual hosts, in one process that takes little of the processor.

python -m benchmarks.hosts_server --pages 10 --log FILE [--latency-ms 20]: prints the port of 127.0.0.1, serves until
SIGTERM, and writes the log of its requests (hosts_log.py). The name of a host begins with its number, as ``w00042.hosts.test``.
Its home page links to all of its pages, of 8 KB each, with a text of their own; all else is answered with 404, robots.txt and
the sitemap too.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import random
import resource
import select
import signal
import socket
import sys
import time
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.hosts_log import OTHER, ROBOTS, SITEMAP, RequestLog

#: What is sent of a page besides its head and links: so many phrases of about 30 bytes.
_PHRASES_A_PAGE: Final = 250
_PHRASES_A_PARAGRAPH: Final = 50
_WORDS: Final = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "as",
    "with",
    "on",
    "by",
    "this",
    "be",
    "are",
    "from",
    "or",
    "an",
    "which",
    "at",
    "not",
    "have",
    "has",
    "was",
    "were",
    "but",
    "all",
    "one",
    "can",
    "more",
    "their",
    "other",
    "time",
    "when",
    "there",
    "about",
    "into",
    "some",
    "they",
    "than",
    "only",
    "these",
    "its",
    "also",
    "after",
    "use",
    "two",
    "how",
    "first",
    "new",
    "because",
    "between",
    "each",
    "most",
    "over",
    "such",
    "where",
    "through",
    "under",
    "while",
    "same",
    "both",
    "during",
    "before",
    "many",
    "must",
    "water",
    "system",
    "number",
    "part",
    "place",
    "work",
    "year",
    "group",
    "house",
    "line",
    "point",
    "form",
    "land",
    "state",
    "world",
    "hand",
    "school",
    "side",
    "city",
    "table",
    "field",
    "paper",
    "river",
    "mountain",
    "station",
    "library",
    "village",
    "market",
    "garden",
    "window",
    "harbour",
    "engine",
    "bridge",
    "letter",
    "picture",
    "record",
    "valley",
    "question",
    "answer",
    "example",
    "reason",
    "result",
    "method",
    "measure",
    "account",
    "service",
    "office",
    "report",
    "order",
    "history",
    "language",
    "music",
    "science",
    "nature",
    "language",
    "winter",
    "summer",
    "morning",
    "evening",
    "island",
    "forest",
    "kitchen",
    "machine",
    "railway",
    "printer",
    "teacher",
    "worker",
    "farmer",
    "captain",
    "painter",
    "doctor",
    "builder",
    "reader",
    "writer",
    "driver",
    "green",
    "heavy",
    "narrow",
    "early",
    "quiet",
    "common",
    "certain",
    "general",
    "public",
    "simple",
    "small",
    "large",
    "long",
    "short",
    "open",
    "local",
    "central",
    "northern",
    "western",
    "ancient",
    "modern",
    "written",
    "printed",
    "painted",
]
_HEAD_BYTES: Final = 65_536
_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n%s\r\nnot found\n"
_BAD: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FOUND: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n%s\r\n"
_CLOSE: Final = b"Connection: close\r\n"


def host_name(number: int) -> str:
    """The name of a host, which the server finds its number in."""
    return f"w{number:05}.hosts.test"


def path_of(page: int) -> str:
    """The path of a page."""
    return f"/{page}.html" if page else "/"


class Pages:
    """The bodies of all pages; each call gives the same."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        rng = random.Random(47)
        texts = [" ".join(rng.choices(_WORDS, k=5)) for _ in range(16_384)]
        phrases = [f"{text.capitalize()}," if number % 3 == 0 else f"{text}." for number, text in enumerate(texts)]
        # As many as a number of two bytes can name.
        self._phrases = [phrase.encode() for phrase in phrases] * 4
        self._links = b"".join(
            b'<li><a href="%s">Page %d</a>' % (path_of(page).encode(), page) for page in range(1, pages)
        )

    def build(self, host: int, page: int) -> bytes:
        """The page ``page`` of a host."""
        name = b"%s, page %d" % (host_name(host).encode(), page)
        numbers = array("H", hashlib.shake_128(name).digest(2 * _PHRASES_A_PAGE))
        phrases = list(map(self._phrases.__getitem__, numbers))
        paragraphs = [
            b" ".join(phrases[at : at + _PHRASES_A_PARAGRAPH]) for at in range(0, len(phrases), _PHRASES_A_PARAGRAPH)
        ]
        links = self._links if page == 0 else b'<li><a href="/">Home</a>'
        return (
            b'<!DOCTYPE html><html lang="en"><head><title>%s</title></head><body><ul>%s</ul><main><h1>%s</h1><p>%s</p>'
            b"</main></body></html>" % (name, links, name, b"</p>\n<p>".join(paragraphs))
        )

    def find(self, path: bytes) -> int:
        """The number of the page with this path; what is none is of another kind."""
        if path == b"/":
            return 0
        if path == b"/robots.txt":
            return ROBOTS
        if path == b"/sitemap.xml":
            return SITEMAP
        number = path[1:].removesuffix(b".html")
        if path.endswith(b".html") and number.isdigit() and len(number) < 6 and 0 < int(number) < self._pages:
            return int(number)
        return OTHER


class _Connection:
    __slots__ = ("busy", "closing", "is_full", "note", "read", "socket", "unsent")

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.read = b""
        self.unsent = b""
        #: a request has been read, and is not answered yet
        self.busy = False
        #: the kernel took a part of the answer only
        self.is_full = False
        self.closing = False
        #: notes the request, given the moment of its answer
        self.note: Callable[[int], None] | None = None


class HostsServer:
    """Serves until ``stop`` is called, by a signal; ``log`` has what was asked."""

    def __init__(self, pages: int, *, latency_seconds: float = 0.0) -> None:
        self.log = RequestLog()
        self._pages = Pages(pages)
        self._latency_ns = round(latency_seconds * 1e9)
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._later: list[tuple[int, int, _Connection, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        self._stopping = False

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._listener.getsockname()[1])

    def stop(self, *_: object) -> None:
        """Ends ``serve``."""
        self._stopping = True

    def serve(self) -> None:
        """Answers requests."""
        self._poll.register(self._listener, select.EPOLLIN)
        listener = self._listener.fileno()
        while not self._stopping:
            for fd, events in self._poll.poll(self._until_next()):
                if fd == listener:
                    self._accept()
                    continue
                connection = self._connections.get(fd)
                if connection is None:
                    continue
                if events & select.EPOLLOUT:
                    self._send(connection)
                if events & ~select.EPOLLOUT:
                    self._receive(connection)
            self._answer_late_ones()
        for connection in list(self._connections.values()):
            self._close(connection)
        self._listener.close()
        self._poll.close()

    def _until_next(self) -> float:
        """Seconds; a signal is seen after a tenth of one at the latest."""
        if not self._later:
            return 0.1
        return min(max(self._later[0][0] - time.monotonic_ns(), 0) / 1e9, 0.1)

    def _accept(self) -> None:
        for _ in range(64):
            try:
                connected, _address = self._listener.accept()
            except BlockingIOError:
                return
            connected.setblocking(False)
            self._connections[connected.fileno()] = _Connection(connected)
            self._poll.register(connected.fileno(), select.EPOLLIN)

    def _close(self, connection: _Connection) -> None:
        if connection.note is not None:
            # The client went away, but it did ask.
            connection.note(time.monotonic_ns())
            connection.note = None
        self._connections.pop(connection.socket.fileno(), None)
        # This takes it out of the poll as well.
        connection.socket.close()

    def _receive(self, connection: _Connection) -> None:
        try:
            data = connection.socket.recv(_HEAD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
            return
        connection.read += data
        if not connection.busy:
            self._answer(connection)

    def _answer(self, connection: _Connection) -> None:
        """Answers the first request that was read whole; the next one once this is done."""
        head, end, rest = connection.read.partition(b"\r\n\r\n")
        if not end:
            if len(head) > _HEAD_BYTES:
                self._close(connection)
            return
        arrived = time.monotonic_ns()
        connection.read = rest
        connection.busy = True
        fields = head.lower()
        host = _host_number(fields)
        words = head.split(b" ", 2)
        if host is None or len(words) < 3:
            connection.closing = True
            self._put(connection, _BAD)
            return
        connection.closing = b"\r\nconnection: close" in fields or words[2].startswith(b"HTTP/1.0")
        what = self._pages.find(words[1])
        closing = _CLOSE if connection.closing else b""
        if what < ROBOTS:
            body = self._pages.build(host, what)
            answer = _FOUND % (len(body), closing) + (body if words[0] != b"HEAD" else b"")
        else:
            answer = _NOT_FOUND % closing
        connection.note = partial(self.log.add, host, what, arrived)
        if self._latency_ns:
            due = arrived + self._latency_ns
            heapq.heappush(self._later, (due, id(connection), connection, answer))
        else:
            self._put(connection, answer)

    def _answer_late_ones(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic_ns():
            _, _, connection, answer = heapq.heappop(self._later)
            # It was closed in the meantime where the client went away.
            if connection.socket.fileno() >= 0:
                self._put(connection, answer)

    def _put(self, connection: _Connection, answer: bytes) -> None:
        connection.unsent = answer
        self._send(connection)

    def _send(self, connection: _Connection) -> None:
        now = time.monotonic_ns()
        try:
            sent = connection.socket.send(connection.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return
        connection.unsent = connection.unsent[sent:]
        is_full = bool(connection.unsent)
        if is_full != connection.is_full:
            connection.is_full = is_full
            self._poll.modify(connection.socket.fileno(), select.EPOLLIN | (select.EPOLLOUT if is_full else 0))
        if is_full:
            return
        if connection.note is not None:
            connection.note(now)
            connection.note = None
        connection.busy = False
        if connection.closing:
            self._close(connection)
        elif connection.read:
            self._answer(connection)


def _host_number(fields: bytes) -> int | None:
    """The number in the Host field of a head in lower case."""
    at = fields.find(b"\r\nhost:")
    name = fields[at + 7 : at + 40].lstrip()
    number = name[1:6]
    return int(number) if at >= 0 and name[:1] == b"w" and number.isdigit() and name[6:7] == b"." else None


def main() -> int:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hosts_server", description="See benchmarks/hosts_server.py."
    )
    parser.add_argument("--pages", type=int, default=10, help="pages a host, with the home page (10)")
    parser.add_argument("--log", type=Path, help="where the requests are written at the end")
    parser.add_argument("--latency-ms", type=float, default=0, help="how long each answer takes (0)")
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = HostsServer(arguments.pages, latency_seconds=arguments.latency_ms / 1000)
    signal.signal(signal.SIGTERM, server.stop)
    signal.signal(signal.SIGINT, server.stop)
    print(server.port, flush=True)
    server.serve()
    if arguments.log is not None:
        server.log.write(arguments.log, cpu_seconds=time.process_time())
    return 0


if __name__ == "__main__":
    sys.exit(main())
