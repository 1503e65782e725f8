"""The server of `make hosts`: virtual hosts, connections that stay open or not, and its log."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.hosts_log import OTHER, ROBOTS, SITEMAP, Request, read
from benchmarks.hosts_server import HostsServer, host_name

PAGES = 4


@contextmanager
def running(server: HostsServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server.port
    finally:
        server.stop()
        thread.join()


@pytest.fixture
def server() -> HostsServer:
    return HostsServer(PAGES)


def get(connection: HTTPConnection, host: int, path: str, **headers: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers={"Host": f"{host_name(host)}:80", **headers})
    response = connection.getresponse()
    return response.status, response.read()


def logged(server: HostsServer, folder: Path) -> list[Request]:
    server.log.write(folder / "log", cpu_seconds=0)
    return read(folder / "log")[0]


def test_serve_when_hosts_are_asked_then_each_has_pages_of_its_own_that_its_home_page_links_to(
    server: HostsServer,
) -> None:
    with running(server) as port:
        connection = HTTPConnection("127.0.0.1", port)
        bodies = {
            (host, path): get(connection, host, path)
            for host in (0, 54_321)
            for path in ("/", *(f"/{page}.html" for page in range(1, PAGES)))
        }
        again = get(connection, 54_321, "/2.html")
        connection.close()

    assert {status for status, _ in bodies.values()} == {200}
    assert len({body for _, body in bodies.values()}) == 2 * PAGES
    assert all(7_000 < len(body) < 10_000 for _, body in bodies.values())
    assert all(f'href="/{page}.html"'.encode() in bodies[54_321, "/"][1] for page in range(1, PAGES))
    assert again == bodies[54_321, "/2.html"]


def test_serve_when_other_paths_are_asked_then_404_and_the_log_names_what_they_were(
    server: HostsServer, tmp_path: Path
) -> None:
    with running(server) as port:
        connection = HTTPConnection("127.0.0.1", port)
        paths = ("/robots.txt", "/sitemap.xml", f"/{PAGES}.html", "/x", "/")
        answers = [get(connection, 7, path)[0] for path in paths]
        connection.close()
    requests = logged(server, tmp_path)

    assert answers == [404, 404, 404, 404, 200]
    assert [(one.host, one.what) for one in requests] == [(7, what) for what in (ROBOTS, SITEMAP, OTHER, OTHER, 0)]
    assert all(one.arrived <= one.answered for one in requests)
    assert all(before.answered <= after.arrived for before, after in pairwise(requests))


def test_serve_when_a_connection_is_to_be_closed_then_it_is(server: HostsServer) -> None:
    with running(server) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: w00001.hosts.test\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"</html>")


def test_serve_when_a_head_comes_in_parts_and_two_at_once_then_all_are_answered(
    server: HostsServer, tmp_path: Path
) -> None:
    head = b"GET /1.html HTTP/1.1\r\nHost: w00002.hosts.test\r\n\r\n"
    with running(server) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head[:20])
        connection.sendall(head[20:] + head + head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert [one.what for one in logged(server, tmp_path)] == [1, 1, 1]


@pytest.mark.parametrize("host", [b"", b"Host: www.acme.test\r\n", b"Host: wabcde.hosts.test\r\n"])
def test_serve_when_the_host_has_no_number_then_400(server: HostsServer, host: bytes) -> None:
    with running(server) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + host + b"\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_serve_when_answers_take_a_while_then_those_of_two_hosts_do_at_the_same_time(tmp_path: Path) -> None:
    server = HostsServer(PAGES, latency_seconds=0.3)
    with running(server) as port:
        first, second = (HTTPConnection("127.0.0.1", port) for _ in range(2))
        for number, connection in enumerate((first, second)):
            connection.request("GET", "/", headers={"Host": host_name(number)})
        assert [connection.getresponse().read()[:15] for connection in (first, second)] == [b"<!DOCTYPE html>"] * 2
        first.close()
        second.close()
    one, other = logged(server, tmp_path)

    assert one.answered - one.arrived >= 300_000_000
    assert other.arrived < one.answered
