"""What a browser asks of its crawl: whether it may have a URL, and the answer of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl


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
    """An answer without content codings; ``url`` is where its redirects ended."""

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes = field(repr=False)
    #: nobody was logged in
    lost_login: bool = False


class Wall(Protocol):
    """The rules about the requests of a browser, and their only way out. For the event loop."""

    def check_navigation(self, url: str) -> str | None:
        """The rule that forbids a page or a frame to go to ``url``; None if none does."""

    def check_resource(self, url: str, kind: str) -> str | None:
        """The rule that forbids a page to load ``url``, a resource of this kind; None if none does."""

    async def fetch(self, url: str, kind: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a GET, in the turn of its host; ``kind`` is Playwright's type of the resource.

        Redirects of a document are answers, those of all else are followed, each asked for as if it were the first.
        ``headers`` go with the first request only. Raises Refused and FetchFailed.
        """


def resolve(text: str, base: str | None = None, *, routes: bool = False) -> str | None:
    """The identity of a URL; None where it is none of http or https."""
    try:
        return urls.resolve(text, base, routes=routes)
    except InvalidUrl:
        return None
