"""The paths of ``bad.acme.test``: answers that are cut, endless, too big, undecodable or no HTTP at all.

``/`` links to all of them; ``/good.html`` is an ordinary page that must be found whatever the others do.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

from tests.site.pages import Page
from tests.site.wire import Request, Wire, head

HOST: Final = "bad.acme.test"
Fault = Callable[[Wire], Awaitable[None]]
_SENTENCE: Final = "The pressure fell slowly through the afternoon while the recorder kept its line. "
_HTML: Final = ("Content-Type", "text/html; charset=utf-8")
_MEGABYTE: Final = 1024 * 1024


def _document(inner: str, title: str = "A difficult page") -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><title>{title}</title></head>\n<body>{inner}</body></html>\n'.encode()
    )


def respond(request: Request) -> Page | Fault | None:
    """A page, or a fault to be acted out, or None for an unknown path."""
    name = request.path.lstrip("/").removesuffix(".html")
    page = _pages().get(name)
    return page if page is not None else _FAULTS.get(name)


@cache
def _pages() -> dict[str, Page]:
    names = [*_PLAIN, *_FAULTS]
    links = "".join(f'<li><a href="/{name}.html">{name}</a></li>\n' for name in names)
    return {"": Page(body=_document(f"<h1>Faults</h1>\n<ul>\n{links}</ul>", "Faults")), **_plain_pages()}


_PLAIN: Final = (
    *("good", "gzip-truncated", "gzip-crc", "gzip-garbage", "gzip-bomb", "charset-unknown", "charset-rot13"),
    *("charset-lie", "nested", "huge", "lines", "links", "binary", "nul", "redirect-blank", "redirect-nowhere"),
    *("redirect-bad", "redirect-file", "not-modified", "odd-status"),
)


def _plain_pages() -> dict[str, Page]:
    packed = gzip.compress(_document(f"<p>{_SENTENCE * 400}</p>"), mtime=0)
    wrong = packed[:-8] + bytes(byte ^ 0xFF for byte in packed[-8:-4]) + packed[-4:]
    text = _document(f"<p>{_SENTENCE}</p>")
    return {
        "good": Page(body=_document(f"<p>This page is sound. {_SENTENCE}</p>", "A sound page")),
        "gzip-truncated": _coded(packed[: len(packed) // 2]),
        "gzip-crc": _coded(wrong),
        "gzip-garbage": _coded(b"this was never compressed"),
        "gzip-bomb": _coded(_bomb()),
        "charset-unknown": Page(body=text, content_type="text/html; charset=x-klingon"),
        "charset-rot13": Page(body=text, content_type="text/html; charset=rot13"),
        "charset-lie": Page(body=_document("<p>Grüße aus Köln</p>"), content_type="text/html; charset=utf-16"),
        "nested": Page(
            body=_document("<div>" * 200_000 + "deep" + '<a href="/good.html">out</a>' + "</div>" * 200_000)
        ),
        "huge": Page(body=_document(f"<p>{_SENTENCE * 12}</p>\n" * (30 * _MEGABYTE // (12 * len(_SENTENCE)) + 1))),
        "lines": Page(body=b"a\n" * (4 * _MEGABYTE), content_type="text/plain"),
        "links": Page(
            body=_document("".join(f'<a href="/many/{number}.html">{number}</a>\n' for number in range(100_000)))
        ),
        "binary": Page(body=bytes(range(256)) * 64),
        "nul": Page(body=_document("<p>before\0after \ufffe \x0b end</p>")),
        "redirect-blank": Page(body=b"", status=302, headers=(("Location", ""),)),
        "redirect-nowhere": Page(body=b"", status=302),
        "redirect-bad": Page(body=b"", status=302, headers=(("Location", "http://[::1/"),)),
        "redirect-file": Page(body=b"", status=302, headers=(("Location", "file:///etc/hostname"),)),
        "not-modified": Page(body=b"", status=304),
        "odd-status": Page(body=text, status=799),
    }


def _coded(body: bytes) -> Page:
    return Page(body=body, headers=(("Content-Encoding", "gzip"),))


def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    block = b"\0" * _MEGABYTE
    return b"".join([*(packer.compress(block) for _ in range(64)), packer.flush()])


async def _cut(wire: Wire) -> None:
    body = _document(f"<p>{_SENTENCE * 20}</p>")
    wire.send(head(200, [_HTML, ("Content-Length", str(len(body) + 5000))]) + body)
    wire.close()


async def _cut_chunked(wire: Wire) -> None:
    body = _document(f"<p>{_SENTENCE * 20}</p>")
    wire.send(head(200, [_HTML, ("Transfer-Encoding", "chunked")]) + b"%x\r\n%s\r\n" % (len(body), body))
    wire.close()


async def _cut_by_reset(wire: Wire) -> None:
    wire.send(head(200, [_HTML, ("Connection", "close")]) + _document(f"<p>{_SENTENCE * 20}</p>")[:900])
    await asyncio.sleep(0.2)
    wire.reset()


async def _reset(wire: Wire) -> None:
    wire.reset()


async def _hang(_: Wire) -> None:
    await asyncio.Event().wait()


async def _drip(wire: Wire) -> None:
    wire.send(head(200, [_HTML, ("Transfer-Encoding", "chunked")]))
    while not wire.closed:
        wire.send(b"2\r\na \r\n")
        await asyncio.sleep(0.1)


async def _slow_headers(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\n")
    while not wire.closed:
        wire.send(b"X-Wait: yes\r\n")
        await asyncio.sleep(0.1)


async def _endless_headers(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\n")
    while not wire.closed:
        await wire.send_slowly(b"X-More: " + b"y" * 1000 + b"\r\n")
        await asyncio.sleep(0.001)


async def _endless_body(wire: Wire) -> None:
    wire.send(head(200, [_HTML, ("Connection", "close")]))
    block = _SENTENCE.encode() * 200
    while not wire.closed:
        await wire.send_slowly(block)
        await asyncio.sleep(0)


async def _two_lengths(wire: Wire) -> None:
    wire.send(head(200, [_HTML, ("Content-Length", "10"), ("Content-Length", "20")]) + b"x" * 20)
    wire.close()


async def _not_http(wire: Wire) -> None:
    wire.send(b"220 mail.acme.test ready\r\n")
    wire.close()


_FAULTS: Final[dict[str, Fault]] = {
    "cut": _cut,
    "cut-chunked": _cut_chunked,
    "cut-by-reset": _cut_by_reset,
    "reset": _reset,
    "hang": _hang,
    "drip": _drip,
    "slow-headers": _slow_headers,
    "endless-headers": _endless_headers,
    "endless-body": _endless_body,
    "two-lengths": _two_lengths,
    "not-http": _not_http,
}
#: Faults that never end by themselves; a crawler needs a time limit for each.
ENDLESS: Final = ("hang", "drip", "slow-headers", "endless-headers", "endless-body")
ALL: Final = (*_PLAIN, *_FAULTS)


def fault(name: str) -> Fault:
    """The fault of that name; raises KeyError."""
    return _FAULTS[name]


async def act(one: Fault, wire: Wire) -> None:
    """Acts it out; the connection is of no use afterwards."""
    await one(wire)
    wire.close()
