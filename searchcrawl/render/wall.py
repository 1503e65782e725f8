"""What a browser asks of its crawl: whether it may have a URL, and the answer of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.budget import PageBudget
from searchcrawl.render.login_steps import BrowserCookie


class Refused(Exception):
    """A URL may not be requested; the message is the rule that forbids it.

    ``code``, as for a page, says what keeps its robots.txt from being read now: later it may be allowed.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


class FetchFailed(Exception):
    """A URL could not be fetched; ``code`` is as for a page."""

    def __init__(self, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer without content codings."""

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes = field(repr=False)
    #: nobody was logged in
    lost_login: bool = False


class PageWall(Protocol):
    """The rules about the requests of one page, and their only way out. For the event loop."""

    #: an identity
    url: str

    def list_cookies(self) -> Sequence[BrowserCookie]:
        """The cookies that the browser has before it opens the page."""

    def keep_cookies(self, cookies: Sequence[BrowserCookie]) -> None:
        """Takes over what the page has changed of the cookies that it had; the browser says what it has at last."""

    def check_navigation(self, url: str) -> str | None:
        """The rule that forbids the page or a frame to go to ``url``; None if none does."""

    def check(self, request: BrowserRequest) -> str | None:
        """The rule that forbids a request of the page, but for the page itself; None if none does."""

    async def fetch(self, request: BrowserRequest, budget: PageBudget) -> Answer:
        """The answer, in the turn of its host; a redirect is an answer, which the browser follows.

        Credentials of the crawl go along where the browser itself would send some. What is read counts towards ``budget``.
        Raises Refused and FetchFailed.
        """


class Wall(Protocol):
    """The rules about the pages of a browser."""

    def admit(self, url: str) -> PageWall:
        """The rules for one page, which the crawl itself has decided to visit."""


def resolve(text: str, base: str | None = None, *, routes: bool = False) -> str | None:
    """The identity of a URL; None where it is none of http or https."""
    try:
        return urls.resolve(text, base, routes=routes)
    except InvalidUrl:
        return None
