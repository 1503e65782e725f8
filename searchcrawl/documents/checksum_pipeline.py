"""The item pipelines of the digests: of the body before it is read, of the fields before they are stored (D2)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import orjson
from scrapy.crawler import Crawler

from searchcrawl.changed_copy import copy_with
from searchcrawl.html.metas import list_robots_tags
from searchcrawl.items import Document, Page
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

_SHA256_BYTES: Final = 32


class BodyDigestPipeline:
    """Gives each document the digest of its body, its headers and the rule that refuses it."""

    def __init__(self, attributes: AttributeMap | None) -> None:
        self._attributes = attributes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BodyDigestPipeline:
        run = stages_of(crawler).get(Run)
        return cls(run.attributes)

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document):
            return item
        # A page whose canonical link leads to itself is the same as one without a canonical link.
        canonical = item.canonical if item.canonical != item.claim.url else None
        digest = compute_body_digest(
            item.body,
            robots_tags=",".join(list_robots_tags(item.headers)),
            canonical=canonical or "",
            attributes=self._attributes.join_headers(item.headers) if self._attributes is not None else "",
            refusal=item.refusal,
        )
        return copy_with(item, body_digest=digest)


class FieldsDigestPipeline:
    """Gives each document that was read the digest of its fields; others keep the one of their row.

    With ``finds_copies`` documents that have the same one are copies of each other (F2).
    """

    def __init__(self, *, finds_copies: bool) -> None:
        self._finds_copies = finds_copies

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsDigestPipeline:
        return cls(finds_copies=stages_of(crawler).get(Run).source.copies.scope != "off")

    def process_item(self, item: object) -> object:
        if isinstance(item, Document) and item.page is not None:
            digest = compute_fields_digest(item.page, known=item.claim.fields_digest)
            copy_digest = None
            if self._finds_copies:
                compared = _leave_out_own(item.page)
                copy_digest = digest if compared is item.page else compute_fields_digest(compared)
            return copy_with(item, fields_digest=digest, copy_digest=copy_digest)
        return item


def _leave_out_own(page: Page) -> Page:
    """The page without what copies may differ in: what is not indexed of them, how their language is told, dates of files.

    And the name of the same file elsewhere.
    """
    is_named = bool(page.name_title) and page.title == page.name_title
    if not page.whole_digest and not is_named and page.guessed is None and not page.modified:
        return page
    return copy_with(page, whole_digest="", guessed=None, modified="", title="" if is_named else page.title)


def compute_body_digest(
    body: bytes, *, robots_tags: str = "", canonical: str = "", attributes: str = "", refusal: str | None = None
) -> bytes:
    """The sha256 of a body, and of everything else that decides what is made of these bytes.

    These are the X-Robots-Tag headers, the canonical link, the headers that become attributes, and the rule of the
    index filter that refuses the document. So a page is read again when another rule refuses it, or none does any more.
    """
    digest = hashlib.sha256(body)
    for label, text in ((b"\0", robots_tags), (b"\0canonical ", canonical), (b"\0attributes ", attributes)):
        if text:
            digest.update(label + text.encode("utf-8", "surrogateescape"))
    if refusal is not None:
        # Digests of earlier versions were made in this way, and are in the tables.
        digest = hashlib.sha256(b"%b\0keep %b" % (digest.digest(), refusal.encode("utf-8", "surrogateescape")))
    return digest.digest()


def compute_fields_digest(page: Page, *, known: bytes | None = None) -> bytes:
    """The digest of the text and fields that go into the index, with the version of the way in which it is made.

    It is ``known`` where the page still has this digest, made in the way of its version: so a new way of making them
    changes no document, and one that changes for another reason gets a digest of the new version.
    """
    version, newest = _find_version(known), max(_WAYS)
    if version != newest and version in _WAYS and _mark(version, _WAYS[version](page)) == known:
        return known or b""
    return _mark(newest, _WAYS[newest](page))


def _mark(version: int, digest: bytes) -> bytes:
    # Digests of the first version are in the tables as they are.
    return digest if version == 1 else bytes([version]) + digest


def _find_version(digest: bytes | None) -> int | None:
    if not digest:
        return None
    return 1 if len(digest) == _SHA256_BYTES else digest[0]


def _digest_fields(page: Page) -> bytes:
    """sha256 of the fields that go into the index, and of the whole text, of which a part goes there."""
    digest = hashlib.sha256()
    for value in (page.title, page.text, page.description, page.author, page.subject, page.language):
        data = value.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    for field, values in page.attributes:
        # A page without attributes has the digest that it had before there were any.
        digest.update(orjson.dumps([field, values]))
    if page.language_guess is not None:
        # What a page declares counts whatever its host has: with or without it, it may be sent with another language.
        digest.update(b"guess " + page.language_guess.encode())
    if page.modified:
        # Not which date: a file that is made for each request is changed only if its text is.
        digest.update(b"dated")
    if page.whole_digest:
        # A page whose whole text is indexed has the digest that it had when all were.
        digest.update(b"whole " + page.whole_digest.encode())
    return digest.digest()


#: How digests of fields are made, by version. A new way (as one that normalises the text more) is added, and none is
#: taken out: documents keep the digest of their version until they change.
_WAYS: Final[dict[int, Callable[[Page], bytes]]] = {1: _digest_fields}
