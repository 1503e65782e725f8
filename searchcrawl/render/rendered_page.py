"""What a browser made of a page, or why it made nothing (C10). It loads nothing of a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from searchcrawl.items import Headers
from searchcrawl.rules.rendering import Part

#: The type of the text that is made of a tree.
RENDERED_TYPE: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page once its scripts have run.

    ``url`` is the last one, after redirects and navigations by script; ``status`` and ``headers`` are of the answer to
    the request for that document. ``html`` has open shadow roots and frames of the same origin in it. ``routes`` are the
    absolute URLs that scripts gave to the history. ``redirects`` has the URL and the code of each redirect that was
    followed. ``refused`` counts the requests that the wall refused, by reason. ``lost_login``:
    something that the page asked for was answered as if nobody was logged in. ``body`` is that of the answer, as it was
    sent. ``parts`` is what the page asked for. ``gave_up`` says in words what it was not waited for any longer; None where the
    page was done. ``moves``: its script, or a meta refresh, led to ``url``.
    """

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    html: str
    routes: tuple[str, ...]
    redirects: tuple[tuple[str, int], ...]
    seconds: float
    received_bytes: int
    refused: Mapping[str, int]
    lost_login: bool = False
    body: bytes = field(default=b"", repr=False)
    parts: Sequence[Part] = ()
    gave_up: str | None = None
    moves: bool = False


@dataclass(slots=True)
class RenderTrial:
    """What ``test --render`` asks for, and what it shows beside the rendered page.

    ``plain`` is the plain answer: URL, headers, body. ``page`` is what the browser made of it.
    """

    trace: Path | None = None
    plain: tuple[str, Headers, bytes] | None = None
    page: RenderedPage | None = None


class RenderFailed(Exception):
    """One page could not be rendered; ``code`` is that of its row: 902 time, 904 crash or limit, 905, 955 outside."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class BrowserUnavailable(Exception):
    """No page can be rendered on this machine; the message says what to do (exit 4 of a crawl)."""
