"""A page as it goes from one process to another."""

from __future__ import annotations

from typing import NamedTuple

from searchcrawl.changed_copy import copy_with
from searchcrawl.items import Link, Page


class PackedPage(NamedTuple):
    """A page without its links; the links as lines, with a byte for the nofollow of each, and what only some have.

    ``others`` are whole links by place. To unpickle hundreds of thousands of Link objects would stop all other threads
    until it is done.
    """

    page: Page
    urls: str
    nofollow: bytes
    texts: dict[int, tuple[str, ...]]
    others: dict[int, Link]


def pack_page(page: Page) -> PackedPage:
    """The page, ready to be pickled."""
    texts, others = dict[int, tuple[str, ...]](), dict[int, Link]()
    for place, link in enumerate(page.links):
        if link.display is not None or link.found_as is not None or "\n" in link.url:
            others[place] = link
        elif link.texts:
            texts[place] = link.texts
    urls = "\n".join("" if place in others else link.url for place, link in enumerate(page.links))
    nofollow = bytes(link.nofollow for link in page.links)
    return PackedPage(copy_with(page, links=()), urls, nofollow, texts, others)


def unpack_page(packed: PackedPage) -> Page:
    """The page that was packed."""
    urls = packed.urls.split("\n") if packed.nofollow else []
    texts = packed.texts.get
    links = [
        Link(url, bool(nofollow), texts=texts(place, ()))
        for place, (url, nofollow) in enumerate(zip(urls, packed.nofollow, strict=True))
    ]
    for place, link in packed.others.items():
        links[place] = link
    return copy_with(packed.page, links=tuple(links))
