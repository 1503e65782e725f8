"""A site whose login page is whatever a test makes it, for all hosts: threads, port 0, loopback only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import unquote_plus

from tests.threaded_site import QuietHandler, Seen, ThreadedSite

APP: Final = "app.acme.test"
#: Another host below the same domain, and one that is not.
NEAR: Final = "near.acme.test"
EVIL: Final = "x.evil.test"
USER: Final = "wanda"
SECRET: Final = "s3cret-of-Wanda"

#: A form without a script; %s is what comes after it.
FORM: Final = (
    "<!DOCTYPE html><title>Log in</title><form method=post action=/session><input name=user id=user>"
    "<input type=password name=pass id=pass><button id=go>Go on</button></form>%s"
)
STEPS: Final[list[dict[str, Any]]] = [
    {"fill": "#user", "value": USER},
    {"fill": "#pass", "value": SECRET},
    {"click": "#go"},
]
_PATHS: Final = ("/", "/one.html", "/two.html", "/three.html")
_PAGE: Final = "<!DOCTYPE html><title>%s</title><p>words for members of %s</p>%s"


@dataclass
class Page:
    """An answer; ``headers`` may repeat a name."""

    body: str | bytes = ""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    kind: str = "text/html; charset=utf-8"


@dataclass
class State:
    """``pages`` by host and path, without its query; what is not there is a page for members, or 404."""

    port: int = 0
    pages: dict[tuple[str, str], Page | Callable[[BaseHTTPRequestHandler], Page | None]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    session: str = "session=open-for-wanda"
    ended: threading.Event = field(default_factory=threading.Event)


class HostileLoginSite(ThreadedSite):
    """The site; ``put`` replaces pages of it."""

    def __init__(self) -> None:
        self.state = state = State()

        class Handler(_Handler):
            site = state

        super().__init__(Handler)
        state.port = self.port

    def __exit__(self, *error: object) -> None:
        # Answers without an end are over now.
        self.state.ended.set()
        super().__exit__(*error)

    def url(self, path: str = "/", host: str = APP) -> str:
        return f"http://{host}:{self.port}{path}"

    def put(
        self, path: str, page: str | Page | Callable[[BaseHTTPRequestHandler], Page | None], host: str = APP
    ) -> None:
        self.state.pages[host, path] = Page(page) if isinstance(page, str) else page

    def put_login(self, script: str) -> None:
        """A login page with a form and a script."""
        self.put("/login", FORM % f"<script>{script}</script>")

    def seen(self, host: str | None = None) -> list[Seen]:
        """The requests to a host."""
        return [one for one in list(self.state.seen) if host is None or one.host == f"{host}:{self.port}"]

    def told(self, host: str) -> list[Seen]:
        """The requests that told a host a secret or a cookie."""
        return [one for one in self.seen(host) if SECRET in _list_words(one) or "cookie" in one.headers]


def _list_words(one: Seen) -> str:
    return unquote_plus(f"{one.path} {one.headers} {one.body}")


class _Handler(QuietHandler):
    site: State

    def do_GET(self) -> None:
        seen = self.read_request()
        host, path = seen.host.partition(":")[0], self.path.partition("?")[0]
        self.site.seen.append(seen)
        page = self.site.pages.get((host, path)) or self._find_page(path)
        if callable(page):
            page = page(self)
        if page is not None:
            self._answer(page)

    do_POST = do_PUT = do_HEAD = do_OPTIONS = do_GET

    def _find_page(self, path: str) -> Page:
        if path == "/robots.txt":
            return Page("", 404)
        if path == "/login":
            return Page(FORM % "")
        if path == "/session":
            return Page("", 303, [("Location", "/"), ("Set-Cookie", f"{self.site.session}; Path=/; HttpOnly")])
        if self.site.session not in (self.headers.get("Cookie") or ""):
            return Page("", 302, [("Location", "/login")])
        links = "".join(f'<a href="/{name}.html">{name}</a>' for name in ("one", "two", "three"))
        return Page(_PAGE % (path, path, links)) if path in _PATHS else Page("<p>none</p>", 404)

    def _answer(self, page: Page) -> None:
        data = page.body.encode() if isinstance(page.body, str) else page.body
        self.send_response(page.status)
        self.send_header("Content-Type", page.kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in page.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
