"""Digests of what is fetched and of what is indexed (D2)."""

from __future__ import annotations

import hashlib

import orjson

from searchcrawl.items import Page


def body_digest(
    body: bytes, *, robots_tags: str = "", canonical: str = "", attributes: str = "", refusal: str | None = None
) -> bytes:
    """sha256 of a body, and of what decides what becomes of the same bytes.

    That are the X-Robots-Tag headers, a canonical link, the headers that become attributes, and the index filter
    that refuses the document: it is read again when another filter refuses it, or none.
    """
    digest = hashlib.sha256(body)
    for label, text in ((b"\0", robots_tags), (b"\0canonical ", canonical), (b"\0attributes ", attributes)):
        if text:
            digest.update(label + text.encode("utf-8", "surrogateescape"))
    if refusal is not None:
        # Digests of earlier versions were made in this way, and are in the tables.
        digest = hashlib.sha256(b"%b\0keep %b" % (digest.digest(), refusal.encode("utf-8", "surrogateescape")))
    return digest.digest()


def fields_digest(page: Page) -> bytes:
    """sha256 of the text and fields that go into the index."""
    digest = hashlib.sha256()
    for value in (page.title, page.text, page.description, page.author, page.subject, page.language):
        data = value.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    for field, values in page.attributes:
        # A page without attributes has the digest that it had before there were any.
        digest.update(orjson.dumps([field, values]))
    return digest.digest()
