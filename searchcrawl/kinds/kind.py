"""What a kind of source is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a kind of source has of its own; ``module.Class`` names a class that is loaded once a source needs it.

    Each document has a URL, which is its identity and names a host: hosts have delays, pauses and numbers of requests at
    once. What fetches answers as a web server would: 200 with a type and a body, 304 for an ETag that still holds, 404 or
    410 for what is gone. Any other end of a visit removes nothing.
    """

    #: the word in ``type``
    name: str
    #: what its URLs are called in messages
    url: str
    #: the schemes of its URLs, each with its default port
    ports: Mapping[str, int]
    #: the download handler of Scrapy for all its schemes, ``module.Class``
    handler: str
    #: makes documents of answers, and lists URLs to start with (``list_start_urls``), ``module.Class``: ``WebSpider``, or a subclass
    spider: str
    #: whether hosts are asked for more than the documents: robots.txt, sitemaps, a page that cannot be there
    asks_beside: bool = True

    @property
    def begins(self) -> tuple[str, ...]:
        """What its URLs begin with."""
        return tuple(f"{scheme}://" for scheme in self.ports)
