"""Digests of what is fetched and of what is indexed (D2)."""

from __future__ import annotations

import hashlib

import orjson

from searchcrawl.items import Page


def body_digest(body: bytes, *, robots_tags: str = "", canonical: str = "", attributes: str = "") -> bytes:
    """sha256 of a body; headers count that change what becomes of the same bytes.

    They are X-Robots-Tag, a canonical link, and those that become attributes.
    """
    digest = hashlib.sha256(body)
    if robots_tags:
        digest.update(b"\0" + robots_tags.encode("utf-8", "surrogateescape"))
    if canonical:
        digest.update(b"\0canonical " + canonical.encode("utf-8", "surrogateescape"))
    if attributes:
        digest.update(b"\0attributes " + attributes.encode("utf-8", "surrogateescape"))
    return digest.digest()


def filtered_digest(digest: bytes, refusal: str) -> bytes:
    """The digest of a body that a filter refuses: it is read again when that one, or another, no longer does."""
    return hashlib.sha256(b"%b\0keep %b" % (digest, refusal.encode("utf-8", "surrogateescape"))).digest()


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
