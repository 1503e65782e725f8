"""The protocols that plugins have; ``searchcrawl.testing`` has what their authors need to test them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What becomes of a link: the URL to be fetched, and the one to be shown instead.

    Both are absolute http(s) URLs. Without ``display_url``, or where it equals ``access_url``, the
    page is shown as ``[[display]]`` says.
    """

    access_url: str
    display_url: str | None = None


class UrlRewriter(Protocol):
    """Is called with each link before it is normalised and the boundary decides on it (K1); ``plugin`` of a ``[[rewrite]]``.

    The class is made once a run, without arguments. Its methods are called one at a time, but not
    always by the same thread. An error in ``open`` refuses the run (exit 4), one in ``rewrite``
    discards that link.
    """

    def open(self, source: str) -> None:
        """Called when a run of the source of this name begins."""

    def rewrite(self, url: str, *, referrer: str | None) -> Rewritten | None:
        """What becomes of an absolute URL without fragment; None discards the link.

        ``referrer`` is the page that links to it, None for start URLs and those of sitemaps. The same
        link may come again.
        """

    def close(self) -> None:
        """Called when the run is over; not where its process died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What was read from a file: its text, and what it says of itself.

    Lines of ``text`` are kept. Without ``title`` the name of the file is the title. ``values`` are further ones by name,
    which ``[attributes]`` maps as it does those of meta elements (``"meta:created"``).
    """

    text: str
    title: str = ""
    author: str = ""
    subject: str = ""
    description: str = ""
    language: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


class DocumentConverter(Protocol):
    """Reads files of a type; the class is named under ``converters`` in searchcrawl.toml.

    It is made once in each worker process, without arguments. An error costs the document (903), and so does a body that
    takes too much time or memory, or ends the process (904).
    """

    def convert(self, body: bytes, *, url: str, mimetype: str) -> Converted:
        """What is in a file that came from ``url``; ``mimetype`` is its type."""
