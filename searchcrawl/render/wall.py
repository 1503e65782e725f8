"""What a browser asks of its crawl: whether it may have a URL, and the answer of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    """An answer without content codings."""

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes = field(repr=False)
    #: nobody was logged in
    lost_login: bool = False


def resolve(text: str, base: str | None = None, *, routes: bool = False) -> str | None:
    """The identity of a URL; None where it is none of http or https."""
    try:
        return urls.resolve(text, base, routes=routes)
    except InvalidUrl:
        return None
