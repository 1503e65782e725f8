"""The port of a page, with clients that are no browser: what it answers, and whom (L7, L13)."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import pytest

from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer
from searchcrawl.render.page_port import Authority, PagePort

_SECONDS: Final = 5.0
Use = Callable[[int], Awaitable[Any]]


class Port:
    """A port that notes what it is asked for; it answers with the URL, and what ends with ``broken`` with a network error."""

    def __init__(self) -> None:
        self.asked: list[BrowserRequest] = []
        self.refused: list[str] = []
        self.authority = Authority()

    async def answer(self, request: BrowserRequest) -> DecodedAnswer | None:
        self.asked.append(request)
        if request.url.endswith("broken"):
            return None
        headers = (
            ("content-type", "text/plain"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("content-encoding", "gzip"),
            ("x", "y\r\nz: 1"),
        )
        return DecodedAnswer(request.url, 200, headers, request.url.encode())

    def use(self, use: Use, users: tuple[int, ...] = (os.geteuid(),)) -> Any:
        async def run() -> Any:
            port = PagePort(self.authority, self.answer, users=users, note_refused=self.refused.append)
            try:
                return await asyncio.wait_for(use(await port.open()), 4 * _SECONDS)
            finally:
                await port.close()

        return asyncio.run(run())


async def talk(port: int, *sent: bytes) -> bytes:
    """All that comes back, until the other end closes or says nothing any more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    for piece in sent:
        writer.write(piece)
        got += await _read_all(reader)
    writer.close()
    return got


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    got = b""
    try:
        while piece := await asyncio.wait_for(reader.read(65536), 0.5):
            got += piece
    except (TimeoutError, ConnectionError):
        pass
    return got


def say(*sent: bytes) -> Use:
    def use(port: int) -> Coroutine[Any, Any, bytes]:
        return talk(port, *sent)

    return use


def test_l13_request_when_it_is_plain_then_it_is_answered_and_the_connection_serves_the_next_one() -> None:
    port = Port()
    one = b"GET http://a.test/one?x=1 HTTP/1.1\r\nHost: a.test\r\nCookie: c=1\r\n\r\n"
    two = b"POST http://a.test/two HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody"

    got = port.use(say(one, two))

    assert got.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert got.count(b"set-cookie: a=1\r\nset-cookie: b=2\r\n") == 2
    assert b"content-encoding" not in got
    assert b"z: 1" not in got
    assert b"Content-Length: 21\r\n\r\nhttp://a.test/one?x=1" in got
    assert [(each.method, each.url, each.body) for each in port.asked] == [
        ("GET", "http://a.test/one?x=1", b""),
        ("POST", "http://a.test/two", b"body"),
    ]
    assert port.asked[0].fields["cookie"] == "c=1"


@pytest.mark.parametrize("host", ["a.test", "127.0.0.1", "[::1]"])
@pytest.mark.parametrize("number", [443, 8443])
def test_l13_tunnel_when_it_leads_to_a_host_then_its_tls_ends_here_with_a_certificate_for_it(
    host: str, number: int
) -> None:
    port = Port()

    async def use(listening: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening)
        writer.write(f"CONNECT {host}:{number} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        context = ssl.create_default_context(cadata=port.authority.certificate_pem)
        await writer.start_tls(context, server_hostname=host.strip("[]"))
        writer.write(b"GET /path HTTP/1.1\r\nHost: ignored\r\n\r\n")
        return await _read_all(reader)

    got = port.use(use)

    origin = f"https://{host}" if number == 443 else f"https://{host}:{number}"
    assert got.endswith(f"{origin}/path".encode())


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT a.test:0 HTTP/1.1\r\n\r\n",
        b"CONNECT a.test:99999 HTTP/1.1\r\n\r\n",
        b"CONNECT a.test HTTP/1.1\r\n\r\n",
        b"CONNECT a b:443 HTTP/1.1\r\n\r\n",
        b"CONNECT user@a.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT \xff\xfe:443 HTTP/1.1\r\n\r\n",
        b"CONNECT [::::]:443 HTTP/1.1\r\n\r\n",
    ],
)
def test_l13_tunnel_when_it_leads_nowhere_then_it_is_refused(sent: bytes) -> None:
    port = Port()

    got = port.use(say(sent))

    assert got.startswith(b"HTTP/1.1 403 ")
    assert port.refused == ["a tunnel to no host"]


def test_l13_tunnel_when_no_tls_begins_in_it_then_it_is_a_websocket_and_ends() -> None:
    port = Port()

    got = port.use(
        say(b"CONNECT a.test:80 HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\n\r\n")
    )

    assert got == b"HTTP/1.1 200 OK\r\n\r\n"
    assert (port.asked, port.refused) == ([], ["kind websocket"])


@pytest.mark.parametrize(
    "sent",
    [
        b"no request\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"GET http://a.test/ HTTP/2.0\r\n\r\n",
        b"POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST http://a.test/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST http://a.test/ HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"GET http://a.test/" + b"a" * 300_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_l13_request_when_it_is_none_then_its_connection_ends_and_the_port_serves_on(sent: bytes) -> None:
    port = Port()

    async def use(listening: int) -> tuple[bytes, bytes]:
        return await talk(listening, sent), await talk(listening, b"GET http://a.test/x HTTP/1.1\r\n\r\n")

    bad, good = port.use(use)

    assert bad == b""
    assert good.endswith(b"http://a.test/x")


def test_l13_answer_when_there_is_none_then_what_is_sent_is_no_answer_of_http() -> None:
    got = Port().use(say(b"GET http://a.test/broken HTTP/1.1\r\n\r\n"))

    # Two lengths: Chromium takes it for a network error, and does not ask again.
    assert got.count(b"Content-Length: ") == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_l7_port_when_another_user_connects_then_the_connection_is_closed() -> None:
    port = Port()
    code = (
        "import encodings.idna, os, socket, sys; os.setuid(65533); s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
        "s.sendall(b'GET http://a.test/x HTTP/1.1\\r\\n\\r\\n'); s.settimeout(5); print(s.recv(100))"
    )

    async def use(listening: int) -> str:
        run = asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", code, str(listening)], capture_output=True, text=True, check=False
        )
        ended = await run
        return ended.stdout + ended.stderr

    said = port.use(use)

    assert port.asked == []
    assert said.startswith("b''") or "ConnectionReset" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_l7_port_when_another_user_has_gone_already_then_what_was_sent_is_not_read() -> None:
    port = Port()
    code = (
        "import encodings.idna, os, socket, sys; os.setuid(65533)\n"
        "for _ in range(50):\n"
        "    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "    s.sendall(b'GET http://a.test/x HTTP/1.1\\r\\n\\r\\n'); s.close()"
    )

    async def use(listening: int) -> None:
        run = [sys.executable, "-c", code, str(listening)]
        # The port takes nothing while the client connects, sends and goes.
        subprocess.run(run, capture_output=True, check=True)
        await asyncio.sleep(1)

    port.use(use)

    assert port.asked == []
