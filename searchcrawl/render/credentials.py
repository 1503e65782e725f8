"""When a request of a page has the credentials of the crawl: where the browser itself would send some (L13, X-N7).

Cookies are the browser's own: it gets those of the login before each page, and sends them by its laws. A password or a header of
the source it does not know. So each origin that gets one has a marker as well, a cookie without a meaning which no script sees and no
server gets: Chromium sends it exactly where it sends credentials. What it does not say is who asks, and on plain http nothing else
says it. There only the page's own origin counts, and only while no other origin has a frame in the page.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from searchcrawl import urls
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.login_steps import BrowserCookie

#: Chromium takes no longer life than 400 days; a page is open for minutes.
_VALUE: Final = "1"


class LoginCookies(Protocol):
    """The cookies of a login."""

    def list_for_page(self, page_url: str) -> list[BrowserCookie]:
        """The cookies for a browser that opens a page."""

    def take_of_page(self, page_url: str, cookies: Sequence[BrowserCookie]) -> None:
        """Stores the cookies that a browser has after a page."""

    def list_pairs(self, url: str, *, of_port: bool) -> frozenset[str]:
        """The cookies of the host of ``url``, as ``name=value``: those of its port, or those of another port."""


class Credentials:
    """The credentials of a crawl, for the pages of its browser.

    ``origins`` get a password (Basic, Digest) or headers of the source; ``find_jar`` is the jar of a login by cookies, None where
    there is none.
    """

    def __init__(
        self, origins: Collection[str] = (), find_jar: Callable[[], LoginCookies | None] = lambda: None
    ) -> None:
        self._origins = frozenset(origins)
        self._find_jar = find_jar
        #: one for each scheme: they would replace each other
        self._markers = {scheme: f"m{secrets.token_hex(12)}" for scheme in ("http", "https")}

    def list_cookies(self, page_url: str) -> list[BrowserCookie]:
        """The cookies that the browser has before it opens a page: those of the login, and the markers."""
        jar = self._find_jar()
        found = [] if jar is None else jar.list_for_page(page_url)
        return [*found, *(self._build_marker(origin) for origin in sorted(self._origins))]

    def keep_cookies(self, page_url: str, cookies: Sequence[BrowserCookie]) -> None:
        """Gives the login what a page has changed of its cookies."""
        jar, markers = self._find_jar(), self._markers.values()
        if jar is not None:
            jar.take_of_page(page_url, [cookie for cookie in cookies if cookie.name not in markers])

    def _build_marker(self, origin: str) -> BrowserCookie:
        https = origin.startswith("https:")
        return BrowserCookie(
            name=self._markers["https" if https else "http"],
            value=_VALUE,
            domain=urls.parse(f"{origin}/").host,
            path="/",
            expires=None,
            https=https,
            http_only=True,
            # Over https the request says who asks; else the browser's idea of a site has to do.
            same_site="None" if https else "Strict",
        )

    def belong_to(self, request: BrowserRequest, page_url: str, *, has_other_frames: bool) -> bool:
        """Whether passwords and headers of the source go with a request of the page ``page_url``.

        ``has_other_frames`` says that the page has, or had, a frame of another origin. In doubt they do not.
        """
        origin = urls.origin_of(request.url)
        if origin not in self._origins:
            return False
        marker = self._markers[origin.partition(":")[0]]
        if marker not in {pair.partition("=")[0].strip() for pair in request.fields.get("cookie", "").split(";")}:
            return False
        asker = request.fields.get("origin")
        if asker is not None:
            # CORS says what the page may read of the answer; a redirect across origins makes the asker "null".
            return asker == origin or asker != "null"
        site = request.fields.get("sec-fetch-site")
        if site is not None:
            # Nobody has asked for the page itself but the crawl.
            return site == "same-origin" or (site == "none" and request.kind == "document")
        return urls.origin_of(page_url) == origin and not has_other_frames

    def list_of_port(self, url: str) -> frozenset[str]:
        """The cookies of the login, as ``name=value``, that are of the host and the port of ``url``."""
        jar = self._find_jar()
        return frozenset() if jar is None else jar.list_pairs(url, of_port=True)

    def choose_cookies(self, request: BrowserRequest) -> str:
        """The cookies of a request that its server gets: without markers, and without those of a login at another port."""
        header = request.fields.get("cookie", "")
        if not header:
            return ""
        jar = self._find_jar()
        held = frozenset() if jar is None else jar.list_pairs(request.url, of_port=False)
        pairs = (pair.strip() for pair in header.split(";"))
        markers = self._markers.values()
        return "; ".join(pair for pair in pairs if pair not in held and pair.partition("=")[0] not in markers)
