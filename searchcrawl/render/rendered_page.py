"""What a browser made of a page, and why it made nothing of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

#: The type of the text that is made of a tree.
RENDERED_TYPE: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as it stands in the browser: ``html`` is its tree as text, ``headers`` are those of the answer that it came with.

    ``routes`` are absolute URLs that its scripts gave to the history. ``redirects`` are the URLs that led on, each with its
    status, before ``url`` answered. ``refused`` counts what it asked for and did not get, by reason.
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


class RenderFailed(Exception):
    """A page could not be rendered; ``code`` goes into its row."""

    def __init__(self, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(message)


class BrowserUnavailable(Exception):
    """No browser can be started; the message says what to do."""
