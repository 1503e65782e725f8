"""The servers of all origins: one port for http and one for https, which note what they see."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Self

from searchcrawl.render.page_port import Authority
from tests.browser_laws.case import HOSTS, LOCKED_ORIGINS, ORIGINS, UNLOCK, Case, Reply, Seen, fill_marks

USER: Final = "wanda"
PASSWORD: Final = "open"
#: Both, as a header.
BASIC: Final = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_NO_REPLY: Final = Reply("not here", status=404)
_LOCKED: Final = Reply("locked", status=401, headers=(("WWW-Authenticate", 'Basic realm="b"'),))


def build_server_context(authority: Authority) -> ssl.SSLContext:
    """For the servers of all hosts."""

    def choose(connection: ssl.SSLObject, host: str | None, _: ssl.SSLContext) -> None:
        connection.context = authority.build_context(host or HOSTS["a"])

    context = authority.build_context(HOSTS["a"])
    context.sni_callback = choose
    return context


class Sites:
    """All origins, on loopback; each path of a case begins with its number. For the event loop."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        self.authority = Authority()
        self._servers: list[asyncio.Server] = []
        self._ports = {"http": 0, "https": 0}
        self._seen: dict[int, list[Seen]] = {}
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        for scheme in self._ports:
            context = build_server_context(self.authority) if scheme == "https" else None
            server = await asyncio.start_server(partial(self._serve, scheme), "127.0.0.1", 0, ssl=context)
            self._ports[scheme] = server.sockets[0].getsockname()[1]
            self._servers.append(server)
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    def find_origin(self, name: str) -> str:
        """An origin by its short name."""
        scheme, host = ORIGINS[name]
        return f"{scheme}://{host}:{self._ports[scheme]}"

    def find_page(self, number: int) -> str:
        """The URL of the page of a case."""
        return f"{self.find_origin(self.cases[number].origin)}/{number}/page"

    def take_seen(self, number: int) -> tuple[Seen, ...]:
        """The requests of a case since this was asked last, in an order of their own.

        A request that was answered by a challenge, and came again with the password, counts once.
        """
        seen = self._seen.pop(number, [])
        seen = [one for one in seen if one.path != UNLOCK]
        open_ones = {one._replace(has_password=False) for one in seen if one.has_password}
        return tuple(sorted(one for one in seen if one.has_password or one not in open_ones))

    async def _serve(self, scheme: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *rest = head.split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
                method, target, _ = line.split(" ")
                await reader.readexactly(int(headers.get("content-length", "0")))
                writer.write(self._answer(scheme, method, target, headers))
                await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError):
            # The browser has gone.
            pass
        finally:
            self._writers.discard(writer)
            with suppress(OSError, RuntimeError):
                writer.close()

    def _answer(self, scheme: str, method: str, target: str, headers: dict[str, str]) -> bytes:
        start, _, path = target.removeprefix("/").partition("/")
        host = headers.get("host", "").partition(":")[0]
        name = next((name for name, origin in ORIGINS.items() if origin == (scheme, host)), "?")
        reply = _NO_REPLY
        told = {"asker": headers.get("origin", ""), "who": "nobody", "referrer": "", "site": ""}
        if start.isdecimal() and int(start) < len(self.cases):
            number = int(start)
            reply = self.cases[number].find_reply(method, path.partition("?")[0]) or _NO_REPLY
            seen = self._look(number, name, method, path, headers)
            if name in LOCKED_ORIGINS and not reply.locked:
                # Whether what asks for no password gets one all the same is no law.
                seen = seen._replace(has_password=False)
            self._seen.setdefault(number, []).append(seen)
            who = "+".join([*seen.cookies, *(["password"] if seen.has_password else [])]) or "nobody"
            told |= {"who": who, "referrer": seen.referrer or "none", "site": seen.site or "none"}
            if reply.locked and not seen.has_password:
                reply = Reply(_LOCKED.body, status=401, headers=(*reply.headers, *_LOCKED.headers))
        return self._build(reply, start, told)

    def _look(self, number: int, name: str, method: str, path: str, headers: dict[str, str]) -> Seen:
        pairs = (pair.strip().partition("=")[0] for pair in headers.get("cookie", "").split(";"))
        return Seen(
            origin=name,
            method=method,
            path=path,
            cookies=tuple(sorted(filter(None, pairs))),
            has_password=headers.get("authorization", "") == BASIC,
            asker=self._shorten(number, headers.get("origin", "")),
            site=headers.get("sec-fetch-site", ""),
            mode=headers.get("sec-fetch-mode", ""),
            referrer=self._shorten(number, headers.get("referer", "")),
        )

    def _shorten(self, number: int, url: str) -> str:
        for name in ORIGINS:
            url = url.replace(f"{self.find_origin(name)}/{number}/", f"{name}/")
            if url.rstrip("/") == self.find_origin(name):
                return name
        return url

    def _build(self, reply: Reply, start: str, values: dict[str, str]) -> bytes:
        marks = {**values, **{name: f"{self.find_origin(name)}/{start}" for name in ORIGINS}}
        marks |= {f"o_{name}": self.find_origin(name) for name in ORIGINS}
        body = fill_marks(reply.body, marks).encode()
        lines = [f"HTTP/1.1 {reply.status} X", "Cache-Control: no-store", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {reply.kind}"] if reply.kind else []
        lines += [f"{name}: {fill_marks(value, marks)}" for name, value in reply.headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
