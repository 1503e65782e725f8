"""The digests of bodies and of fields (D2): what counts as the same content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from operator import is_
from typing import Final

import orjson

from searchcrawl.bodies import Body, LargeBody, digest_body
from searchcrawl.items import Page

_SHA256_BYTES: Final = 32
_MOST_KEPT: Final = 1_000_000


def begin_body_digest(body: Body) -> hashlib._Hash:
    """The sha256 of a body, for ``compute_body_digest``, and for what is told by its body alone."""
    return digest_body(body)


def compute_body_digest(
    body: Body | hashlib._Hash,
    *,
    robots_tags: str = "",
    canonical: str = "",
    attributes: str = "",
    permissions: str = "",
    reading: str = "",
    display: str = "",
    refusal: str | None = None,
) -> bytes:
    """The sha256 of a body, and of everything else that decides what is made of these bytes.

    These are the X-Robots-Tag headers, the canonical link, the headers that become attributes, those that say who may see it,
    with which URL it is shown or how to read the bytes otherwise than they say themselves, and the rule of the index filter that
    refuses the document. So a page is read again when another rule refuses it, or none does any more.
    """
    digest = begin_body_digest(body) if isinstance(body, bytes | LargeBody) else body.copy()
    parts = (
        *((b"\0", robots_tags), (b"\0canonical ", canonical), (b"\0attributes ", attributes)),
        *((b"\0permissions ", permissions), (b"\0reading ", reading), (b"\0display ", display)),
    )
    for label, text in parts:
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


def compute_copy_digest(page: Page) -> bytes:
    """The digest of what copies have in common.

    Who may see them is part of it. It is without what they may differ in: what is not indexed of them, how their language is told, dates of files, which of
    their text are headings, and a title that is the name of the file.
    """
    return _mark(_COPY_WAY, _digest_fields(page, of_copies=True))


def is_named_by_file(page: Page) -> bool:
    """Whether the title of a page is the name of its file, which may be another one elsewhere."""
    return bool(page.name_title) and page.title == page.name_title


def _mark(version: int, digest: bytes) -> bytes:
    # Digests of the first version are in the tables as they are.
    return digest if version == 1 else bytes([version]) + digest


def _find_version(digest: bytes | None) -> int | None:
    if not digest:
        return None
    return 1 if len(digest) == _SHA256_BYTES else digest[0]


class _Beginning:
    """The digest of the first fields of a page. The last one is kept: most pages have two digests, of the same texts."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, ...], hashlib._Hash] = ((), hashlib.sha256())

    def digest(self, texts: tuple[str, ...]) -> hashlib._Hash:
        """The digest of texts, to be gone on with."""
        kept, digest = self._last
        # To compare the texts, or their hashes, would take as long as to digest them.
        if len(kept) == len(texts) and all(map(is_, kept, texts)):
            return digest.copy()
        digest = hashlib.sha256()
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data))
            digest.update(data)
        if sum(map(len, texts)) <= _MOST_KEPT:
            self._last = (texts, digest.copy())
        return digest


_BEGINNING: Final = _Beginning()


def _digest_fields(page: Page, *, of_copies: bool = False) -> bytes:
    """sha256 of the fields that go into the index, and of the whole text, of which a part goes there."""
    title = "" if of_copies and is_named_by_file(page) else page.title
    digest = _BEGINNING.digest((title, page.text, page.description, page.author, page.subject, page.language))
    for field, values in page.attributes:
        # A page without attributes has the digest that it had before there were any.
        digest.update(orjson.dumps([field, values]))
    if page.access is not None:
        # A page that everyone may see has the digest that it had before there were any permissions.
        digest.update(b"access " + orjson.dumps([*page.access]))
    if page.language_guess is not None and not of_copies:
        # What a page declares counts whatever its host has: with or without it, it may be sent with another language.
        digest.update(b"guess " + page.language_guess.encode())
    if page.other_languages:
        # A page in one language has the digest that it had before there were several.
        digest.update(b"languages " + " ".join(page.languages).encode())
    if of_copies:
        return digest.digest()
    if page.modified:
        # Not which date: a file that is made for each request is changed only if its text is.
        digest.update(b"dated")
    if page.whole_digest:
        # A page whose whole text is indexed has the digest that it had when all were.
        digest.update(b"whole " + page.whole_digest.encode())
    if page.headings:
        digest.update(b"headings " + orjson.dumps(page.headings))
    return digest.digest()


#: How digests of fields are made, by version. A new way (as one that normalises the text more) is added, and none is
#: taken out: documents keep the digest of their version until they change.
_WAYS: Final[dict[int, Callable[[Page], bytes]]] = {1: _digest_fields}
#: The version of ``compute_copy_digest``. Another one makes other pages copies of each other, so it rises by itself.
_COPY_WAY: Final = 1
