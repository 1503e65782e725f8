"""The built-in site of ``selftest``: pages of each kind that a crawl treats in a way of its own, at two ages.

It listens on 127.0.0.1 only, on a free port. Each project is known by its User-Agent, so that several can be served at
different ages, and what each asked for is known.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self

ADDRESS: Final = "127.0.0.1"
#: The ages of the site: as it is crawled first, and as it is later.
FIRST: Final = "initial"
LATER: Final = "maintenance"

_SLOW_SECONDS: Final = 0.4
_SLOW: Final = "/slow.html"
#: Pages of a few kilobytes: the cache is full several times in a crawl.
_CHAPTERS: Final = range(1, 31)
_CHANGED: Final = (3, 9, 14, 22, 27)
_CHAIN: Final = 8
_COPY: Final = "Three pages have these very words and no other ones."
#: What a redirect is answered with, and to which path it leads.
_REDIRECTS: Final[Mapping[str, tuple[int, str]]] = {
    "/moved.html": (301, "/target.html"),
    "/hop-1.html": (302, "/hop-2.html"),
    "/hop-2.html": (307, "/other-target.html"),
    "/to-nothing.html": (302, "/nothing.html"),
    "/loop.html": (302, "/loop.html"),
    "/outside.html": (301, "http://elsewhere.invalid/"),
}
_MOVED_LATER: Final[Mapping[str, tuple[int, str]]] = {"/moving.html": (301, "/moved-here.html")}
#: Pages, and which one they name as canonical: another one, a chain, one that is missing.
_NAMING: Final[Mapping[str, str]] = {
    "/named/first.html": "/named/best.html",
    "/named/second.html": "/named/first.html",
    "/named/nothing.html": "/missing.html",
}
#: What links, redirects, canonical links and the sitemap name, and is nowhere.
_MISSING: Final = ("/missing.html", "/nothing.html", "/listed/missing.html")
_ROBOTS: Final = "/robots.txt"
_SITEMAP: Final = "/sitemap.xml"
_NOINDEX: Final = '<meta name="robots" content="noindex">'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    body: bytes = b""
    status: int = HTTPStatus.OK
    location: str | None = None
    content_type: str = "text/html; charset=utf-8"

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'


def _html(title: str, *links: str, text: str = "", head: str = "") -> _Page:
    anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><title>{title}</title>{head}</head>\n'
        f"<body><h1>{title}</h1><p>{text or f'This is the page {title}.'}</p>\n{anchors}</body></html>\n"
    )
    return _Page(body=page.encode())


def _sitemap(origin: str, numbers: Iterable[int]) -> _Page:
    urls = [*(f"{origin}/listed/{number}.html" for number in numbers), f"{origin}/listed/missing.html"]
    text = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return _Page(body=f"<urlset>{text}</urlset>".encode(), content_type="application/xml")


def _build_first(origin: str) -> dict[str, _Page]:
    chapters = [f"/chapters/{number}.html" for number in _CHAPTERS]
    alone = ("target", "other-target", "gone", "withdrawn", "unindexed", "moving", "private/secret")
    links = (*_REDIRECTS, *_NAMING, *(f"/{name}.html" for name in alone), "/hidden.html", "/missing.html")
    more = ("/refused.html", "/empty.html", _SLOW, "/chain/1.html", "/copies/first.html", "/copies/second.html")
    pages = {"/": _html("Start", "/chapters/", *links, *more), "/chapters/": _html("Chapters", *chapters)}
    pages |= {path: _Page(status=status, location=target) for path, (status, target) in _REDIRECTS.items()}
    pages |= {path: _html(path, head=f'<link rel="canonical" href="{best}">') for path, best in _NAMING.items()}
    pages |= {f"/{name}.html": _html(name) for name in alone}
    pages |= {f"/listed/{number}.html": _html(f"Listed {number}") for number in (1, 2, 3, 4)}
    pages |= {path: _html("Copy", text=_COPY) for path in ("/copies/first.html", "/copies/second.html", "/c.html")}
    for number, path in enumerate(chapters, start=1):
        text = " ".join(f"word{number}x{place}" for place in range(500))
        pages[path] = _html(f"Chapter {number}", f"/chapters/{number + 1}.html", text=text)
    for step in range(1, _CHAIN + 1):
        following = f"/chain/{step + 1}.html" if step < _CHAIN else "/c.html"
        pages[f"/chain/{step}.html"] = _html(f"Step {step}", following)
    return pages | {
        _ROBOTS: _robots(origin),
        _SITEMAP: _sitemap(origin, (1, 2, 3)),
        # Only a canonical link leads to it.
        "/named/best.html": _html("Best"),
        # It shortens the chain, which was walked as far as the depth allows by then.
        _SLOW: _html("Slow", "/chain/4.html"),
        "/hidden.html": _html("Hidden", head=_NOINDEX),
        "/refused.html": _Page(body=b"No.", status=HTTPStatus.FORBIDDEN),
        "/empty.html": _Page(),
    }


def _build_later(origin: str) -> dict[str, _Page]:
    """Pages gone, hidden, moved, new and changed; a copy is one no longer."""
    pages = _build_first(origin)
    for path in ("/gone.html", "/listed/2.html", "/named/best.html"):
        del pages[path]
    pages |= {path: _Page(status=status, location=target) for path, (status, target) in _MOVED_LATER.items()}
    for number in _CHANGED:
        words = f"It has the word late{number}. " * 200
        pages[f"/chapters/{number}.html"] = _html(f"Chapter {number}, changed", "/chapters/", text=words)
    return pages | {
        _SITEMAP: _sitemap(origin, (1, 3, 4)),
        "/withdrawn.html": _Page(body=b"Withdrawn.", status=HTTPStatus.GONE),
        "/unindexed.html": _html("unindexed", head=_NOINDEX),
        "/hidden.html": _html("Hidden no longer"),
        "/moved-here.html": _html("moved here"),
        "/c.html": _html("A copy no longer"),
        "/chain/2.html": _html("Step 2", "/chain/3.html", "/new/1.html"),
        "/new/1.html": _html("New", "/new/2.html"),
        "/new/2.html": _html("Newer"),
        "/target.html": _html("target", text="Other words than before."),
    }


def _robots(origin: str) -> _Page:
    text = f"User-agent: *\nDisallow: /private/\nSitemap: {origin}{_SITEMAP}\n"
    return _Page(body=text.encode(), content_type="text/plain")


@dataclass
class _Visitor:
    """A project: what it is shown, and how often it asked for what."""

    pages: Mapping[str, _Page]
    asked: list[str] = field(default_factory=list)
    #: set by each request
    asks: threading.Event = field(default_factory=threading.Event)
    since: float = 0.0


class BuiltInSite(ThreadingHTTPServer):
    """The site, which runs within its context. Its threads end with the process."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__((ADDRESS, 0), _Handler)
        self.origin = f"http://{ADDRESS}:{self.server_port}"
        self._visitors: dict[str, _Visitor] = {}
        self._ages = {FIRST: _build_first(self.origin), LATER: _build_later(self.origin)}

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: whoever asked was killed."""

    def show(self, visitor: str, age: str) -> None:
        """Shows a project the pages of that age from now on; nothing was asked for yet."""
        self._visitors[visitor] = _Visitor(self._ages[age])

    def expect(self, visitor: str) -> threading.Event:
        """What the next request of a project sets."""
        asks = self._visitors[visitor].asks = threading.Event()
        return asks

    def find_first_request(self, visitor: str) -> float:
        """When a project asked for something first, by the monotonic clock, since it is shown what it is shown."""
        return self._visitors[visitor].since

    def requests(self, visitor: str) -> Counter[str]:
        """How often a project asked for each URL, since it is shown what it is shown; without robots.txt and sitemap."""
        known = {*self._ages[FIRST], *self._ages[LATER], *_MISSING} - {_ROBOTS, _SITEMAP}
        return Counter(f"{self.origin}{path}" for path in [*self._visitors[visitor].asked] if path in known)

    def with_targets(self, urls: Iterable[str]) -> set[str]:
        """``urls`` and what their redirects lead to: all that visits of them may ask for."""
        following = {path: target for path, (_, target) in {**_REDIRECTS, **_MOVED_LATER}.items()}
        found: set[str] = set()
        waiting = list(urls)
        while waiting:
            url = waiting.pop()
            if url not in found:
                found.add(url)
                target = following.get(url.removeprefix(self.origin))
                waiting += [f"{self.origin}{target}"] if target is not None else []
        return found

    def answer(self, visitor: str, path: str) -> _Page:
        """What a project is answered, which is noted."""
        known = self._visitors.get(visitor)
        if known is None:
            return _Page(status=HTTPStatus.NOT_FOUND)
        known.since = known.since or time.monotonic()
        known.asked.append(path)
        known.asks.set()
        if path == _SLOW:
            threading.Event().wait(_SLOW_SECONDS)
        return known.pages.get(path, _Page(body=b"Not here.", status=HTTPStatus.NOT_FOUND))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: BuiltInSite

    def do_GET(self) -> None:
        visitor = self.headers.get("User-Agent", "").partition("/")[0]
        page = self.server.answer(visitor, self.path)
        if page.status == HTTPStatus.OK and self.headers.get("If-None-Match") == page.etag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.end_headers()
            return
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        if page.location is not None:
            self.send_header("Location", page.location)
        if page.status == HTTPStatus.OK:
            self.send_header("ETag", page.etag)
        self.end_headers()
        self.wfile.write(page.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that it has
        """Says nothing: a crawl has a log of its own."""
