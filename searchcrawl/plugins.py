"""The protocols that plugins have; ``searchcrawl.testing`` has what their authors need to test them, and an example of each."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
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


@dataclass(slots=True, kw_only=True)
class Document:
    """A page that was read, as item pipelines, document services and spiders of users get it (K4).

    ``title``, ``text``, ``description``, ``author``, ``subject``, ``language`` and ``values`` may be changed; a change of
    anything else is an error. ``text`` is what will be indexed of the text. ``language`` is what the page declares, or
    empty. ``values`` are texts by name: those of meta elements that ``[attributes]`` maps, and what is added to them;
    ``[attributes]`` maps both as ``"meta:NAME"``, and is applied afterwards. A ``text`` of more than 50,000,000 characters is
    an error (904), as that of a converter is; of the others the first 8,192 are kept.

    ``url`` is the URL of the page, ``answered_url`` the one that gave it after redirects. ``headers`` have lower-case
    names; of several values the last one. ``body`` has its content codings undone. ``links`` are absolute URLs, each
    once.
    """

    url: str
    answered_url: str
    depth: int
    mimetype: str
    fetched_at: datetime
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    links: tuple[str, ...] = field(default=(), repr=False)
    title: str = ""
    text: str = field(default="", repr=False)
    description: str = ""
    author: str = ""
    subject: str = ""
    language: str = ""
    values: dict[str, list[str]] = field(default_factory=dict)


class NotYet(Exception):
    """Raised for a document that cannot be judged yet: its page is read again once ``until``, with a time zone, has come.

    Until then its row and what the index has of it stay as they are; a new document waits. Without ``until``: in the next run.
    """

    def __init__(self, reason: str = "", until: datetime | None = None) -> None:
        super().__init__(reason)
        self.until = until


class DocumentService(Protocol):
    """Changes documents or keeps them out of the index (K4); ``document_service`` of a source.

    The class is made once a run, without arguments. An error costs the document at hand (903), but for ``NotYet``.
    """

    def process(self, document: Document) -> Document | Awaitable[Document | None] | None:
        """The document as it is to be indexed; None keeps it out (952). What waits for something is ``async def``."""
