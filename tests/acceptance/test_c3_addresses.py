"""C3: no more requests to one IP address at once than ``fetch.address_concurrency``, however many hosts it has."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.crawl_forks import COMMANDS
from tests.hostile_server import head, whole
from tests.site.client import write_project
from tests.tcp_server import TcpServer

PAGES = 5


class CountingServer(TcpServer):
    """Answers slowly, a page of its own for each host and path; ``most`` is how many requests it had at once.

    ``served`` is shared: the server of each page, in the order in which they ended.
    """

    def __init__(self, address: str, served: list[str]) -> None:
        super().__init__(address)
        self._address = address
        self._served = served
        self._lock = threading.Lock()
        self._under_way = self.most = 0

    def serve(self, connection: socket.socket) -> None:
        received = b""
        while (more := connection.recv(65536)) != b"":
            received += more
            if not received.endswith(b"\r\n\r\n"):
                continue
            text, received = received.decode("latin-1"), b""
            with self._lock:
                self._under_way += 1
                self.most = max(self.most, self._under_way)
            self.stopping.wait(0.05)
            answer = self._answer(text)
            with self._lock:
                # Before it is sent: the next request may come at once.
                self._under_way -= 1
            connection.sendall(answer)

    def _answer(self, text: str) -> bytes:
        path = text.split(" ", 2)[1]
        host = text.partition("Host: ")[2].partition("\r\n")[0]
        if path == "/robots.txt":
            return whole(b"User-agent: *\nDisallow: /no\n", "200 OK")
        if not path.strip("/").isdecimal() and path != "/":
            return head("404 Not Found", "Content-Length: 0")
        self._served.append(self._address)
        links = "".join(f'<a href="/{number}">{number}</a>' for number in range(1, PAGES)) if path == "/" else ""
        words = " ".join(f"{host.replace('.', '-')}-{path.strip('/')}-{number}" for number in range(60))
        return whole(f"<html><title>{host} {path}</title><p>{words}</p>{links}".encode())


def crawl(folder: Path, **fetch: Any) -> tuple[CountingServer, CountingServer, list[str]]:
    """A crawl of six hosts at one address and two at another one: both servers, and the addresses of pages as they were served."""
    served = list[str]()
    with CountingServer("127.0.0.1", served) as crowded, CountingServer("127.0.0.2", served) as other:
        names = [f"{letter}.test" for letter in "abcdef"]
        starts = [f"http://{name}:{crowded.port}/" for name in names]
        starts += [f"http://{name}:{other.port}/" for name in ("y.other", "z.other")]
        write_project(
            folder,
            crowded.port,
            start={"urls": starts, "sitemaps": "off"},
            scope={"include_hosts": ["test", "other"], "trap_after": 0},
            fetch={
                "resolve": {"*.test": "127.0.0.1", "*.other": "127.0.0.2"},
                "private_networks": ["127.0.0.0/8"],
                "delay_seconds": 0,
                "concurrency": 6,
                "host_concurrency": 4,
                **fetch,
            },
        )
        done = COMMANDS.run(folder, "crawl", "demo")
        assert done.returncode == 0, done.stderr
    assert sorted(served) == ["127.0.0.1"] * 6 * PAGES + ["127.0.0.2"] * 2 * PAGES
    return crowded, other, served


@pytest.mark.parametrize("processes", [1, 3])
def test_c3_address_when_it_has_many_hosts_then_it_gets_no_more_requests_at_once_and_others_go_on(
    tmp_path: Path, processes: int
) -> None:
    crowded, other, served = crawl(tmp_path, address_concurrency=2, processes=processes)

    assert (crowded.most, other.most) == (2, 2)
    # The other address did not wait for the crowded one.
    last = len(served) - served[::-1].index("127.0.0.2")
    assert served[:last].count("127.0.0.1") < 5 * PAGES


def test_c3_address_when_there_is_no_limit_then_it_gets_as_many_as_its_hosts_may_have(tmp_path: Path) -> None:
    crowded, _, _ = crawl(tmp_path)

    assert crowded.most > 2
