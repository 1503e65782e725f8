"""Connections that are used again: an answer belongs to the request before it, or to nobody (X-R7)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest

from tests.hostile_server import head, whole
from tests.integration.support_fetch import crawl
from tests.tcp_server import TcpServer

EVIL = whole(b"<title>not what was asked for</title>")
PAGES = 4
#: The crawl asks for the next page long after an answer that comes by itself.
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.5, "DOWNLOAD_DELAY_JITTER": 0}
_SOON_SECONDS = 0.02
Answering = Callable[[socket.socket, bytes, threading.Event], None]


def page_of(path: str) -> bytes:
    """A page whose length tells it from EVIL."""
    return whole(f"<title>{path}</title>".encode() + b"x" * 200)


class Site(TcpServer):
    """Keeps connections open; ``answering`` says what goes over them for each page."""

    def __init__(self, answering: Answering) -> None:
        super().__init__(seconds=20)
        self._answering = answering
        self.connections = 0

    def serve(self, connection: socket.socket) -> None:
        self.connections += 1
        received = b""
        while True:
            while b"\r\n\r\n" not in received:
                more = connection.recv(65536)
                if not more:
                    return
                received += more
            request, _, received = received.partition(b"\r\n\r\n")
            path = request.split(b" ")[1].decode()
            if path == "/robots.txt":
                connection.sendall(whole(b"", "404 Not Found"))
            else:
                self._answering(connection, page_of(path), self.stopping)


def plain(connection: socket.socket, page: bytes, _: threading.Event) -> None:
    connection.sendall(page)


def answer_behind(connection: socket.socket, page: bytes, _: threading.Event) -> None:
    connection.sendall(page + EVIL)


def half_an_answer_behind(connection: socket.socket, page: bytes, pause: threading.Event) -> None:
    connection.sendall(page + EVIL[:30])
    pause.wait(_SOON_SECONDS)
    connection.sendall(EVIL[30:])


def answer_later(connection: socket.socket, page: bytes, pause: threading.Event) -> None:
    connection.sendall(page)
    pause.wait(_SOON_SECONDS)
    connection.sendall(EVIL)


def body_of_204(connection: socket.socket, _: bytes, pause: threading.Event) -> None:
    connection.sendall(head("204 No Content"))
    pause.wait(_SOON_SECONDS)
    connection.sendall(EVIL)


def chunks_announced_twice(connection: socket.socket, page: bytes, _: threading.Event) -> None:
    chunked = "Transfer-Encoding: chunked"
    body = page.partition(b"\r\n\r\n")[2]
    connection.sendall(head("200 OK", chunked, chunked) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


def head_to_be_mended(connection: socket.socket, page: bytes, _: threading.Event) -> None:
    connection.sendall(page.replace(b"\r\n", b"\r\nA : b\r\n", 1))


def head_to_be_mended_in_pieces(connection: socket.socket, page: bytes, pause: threading.Event) -> None:
    mended, _, body = page.partition(b"\r\n\r\n")
    for piece in (mended.lower()[:12], mended[12:] + b"\r", b"\n\r\n", body[:9], body[9:]):
        connection.sendall(piece)
        pause.wait(_SOON_SECONDS)


def large_page_behind_it(connection: socket.socket, _: bytes, __: threading.Event) -> None:
    connection.sendall(whole(b"x" * 1_000_000).replace(b"\r\n", b"\r\nA : b\r\n", 1))


def too_much(connection: socket.socket, page: bytes, _: threading.Event) -> None:
    connection.sendall(page + b"more than was announced")


def broken_chunk_later(connection: socket.socket, _: bytes, closing: threading.Event) -> None:
    connection.sendall(head("200 OK", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n")
    closing.wait(_SOON_SECONDS)
    connection.sendall(b"no size\r\n")
    closing.wait(20)


def head_that_never_ends(connection: socket.socket, _: bytes, closing: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nA : b\r\n")
    closing.wait(_SOON_SECONDS)
    connection.shutdown(socket.SHUT_WR)


def visits_of(answering: Answering) -> tuple[list[tuple[int, int | None]], Site]:
    """Code and size of each page, asked for one after the other with pauses between."""
    with Site(answering) as opened:
        urls = [f"{opened.url}/{number}" for number in range(PAGES)]
        answer = crawl(urls, settings=ONE_BY_ONE)
    return [(visit["code"], visit.get("bytes")) for visit in answer["visits"]], opened


WHOLE = (200, len(page_of("/0")) - len(page_of("/0").partition(b"\r\n\r\n")[0]) - 4)


def test_connection_when_all_is_well_then_is_used_again() -> None:
    visits, opened = visits_of(plain)

    assert visits == [WHOLE] * PAGES
    assert opened.connections <= 2


def test_r16_204_when_a_body_follows_all_the_same_then_it_is_nobodys() -> None:
    visits, _ = visits_of(body_of_204)

    assert visits == [(204, None)] * PAGES


#: What nobody asked for, which is no page; and what is wrong, but in no doubt.
GIVEN_UP = (
    *(answer_behind, half_an_answer_behind, answer_later),
    *(chunks_announced_twice, head_to_be_mended, head_to_be_mended_in_pieces, too_much),
)


@pytest.mark.parametrize("answering", GIVEN_UP)
def test_r7_answer_when_more_comes_or_it_is_wrong_then_the_pages_are_whole_and_its_connection_is_given_up(
    answering: Answering,
) -> None:
    visits, opened = visits_of(answering)

    assert visits == [WHOLE] * PAGES
    assert opened.connections >= PAGES


def test_r7_page_when_it_is_large_and_its_head_is_mended_then_is_whole() -> None:
    visits, _ = visits_of(large_page_behind_it)

    assert visits == [(200, 1_000_000)] * PAGES


@pytest.mark.parametrize(("status", "code"), [("302 Found", 1003), ("404 Not Found", 404)])
def test_r4_answer_when_its_body_never_comes_and_is_not_wanted_then_nobody_waits_for_the_deadline(
    status: str, code: int
) -> None:
    given_up: list[bytes] = []

    def announce(connection: socket.socket, _: bytes, __: threading.Event) -> None:
        connection.sendall(head(status, "Content-Length: 500"))
        # Empty, as soon as the crawl closes the connection.
        given_up.append(connection.recv(1))
        connection.close()

    with Site(announce) as opened:
        answer = crawl([f"{opened.url}/0"], timeout_seconds=60)

    assert [visit["code"] for visit in answer["visits"]] == [code]
    assert given_up == [b""]


@pytest.mark.parametrize(("answering", "code"), [(broken_chunk_later, 958), (head_that_never_ends, 1006)])
def test_r5_answer_when_its_rest_is_broken_then_nobody_waits_for_the_deadline(answering: Answering, code: int) -> None:
    visits, _ = visits_of(answering)

    assert visits == [(code, None)] * PAGES
