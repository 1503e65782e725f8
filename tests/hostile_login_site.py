"""A site whose login page is whatever a test makes it, for all hosts: threads, port 0, loopback only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import unquote_plus

from tests.threaded_site import APP, QuietHandler, Seen, ThreadedSite

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


class HostileLoginSite(ThreadedSite):
    """``pages`` by host and path, without its query; what is not there is a page for members, or 404."""

    session: Final = "session=open-for-wanda"

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.pages: dict[tuple[str, str], Page | Callable[[BaseHTTPRequestHandler], Page | None]] = {}

    def put(
        self, path: str, page: str | Page | Callable[[BaseHTTPRequestHandler], Page | None], host: str = APP
    ) -> None:
        self.pages[host, path] = Page(page) if isinstance(page, str) else page

    def put_login(self, script: str) -> None:
        """A login page with a form and a script."""
        self.put("/login", FORM % f"<script>{script}</script>")

    def told(self, host: str) -> list[Seen]:
        """The requests that told a host a secret or a cookie."""
        return [one for one in self.seen(host) if SECRET in _list_words(one) or "cookie" in one.headers]


def _list_words(one: Seen) -> str:
    return unquote_plus(f"{one.path} {one.headers} {one.body}")


class _Handler(QuietHandler):
    site: HostileLoginSite

    def do_GET(self) -> None:
        seen = self.read_request()
        host, path = seen.host.partition(":")[0], self.path.partition("?")[0]
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
