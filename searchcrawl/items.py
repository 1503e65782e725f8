"""The values that stages hand to each other: frozen; a stage makes a changed copy with ``copy_with``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from searchcrawl.access import Access
from searchcrawl.bodies import Body

#: Names and values of an answer's headers, in their order.
Headers = tuple[tuple[bytes, bytes], ...]
#: So begins the ETag of a file in an archive: ours, not that of a server.
ARCHIVE_ETAG: Final = '"!/'
#: In the place of the ETag of a page whose Link header names another one as canonical: a 304 need not repeat such a header
#: (RFC 9110 §15.4.5), so the page is asked for whole each time.
CANONICAL_ETAG: Final = '"!canonical"'
_new: Final = object.__new__

T = TypeVar("T")


class Link(NamedTuple):
    """A link of a page: the identity of its target (``urls.resolve``) and its rel=nofollow.

    Where a rewriter changed it (K1), ``found_as`` is the URL before, ``display`` the URL to be shown instead; else they
    are None. ``texts`` are those that the page has for it in its main text.
    """

    url: str
    nofollow: bool = False
    display: str | None = None
    found_as: str | None = None
    texts: tuple[str, ...] = ()


class Hop(NamedTuple):
    """One followed redirect: the URL that answered, and its status."""

    url: str
    code: int


class Place(NamedTuple):
    """Where the cache has a page: segment number, byte offset, and the compressed lengths of its two records.

    The fields record starts at ``offset + response_bytes``.
    """

    segment: int
    offset: int
    response_bytes: int
    fields_bytes: int

    @classmethod
    def read(cls, columns: Iterable[Any]) -> Place | None:
        """The place that these columns of a row name (``schema.PLACE``); None where they are empty."""
        values = tuple(columns)
        return None if None in values else cls._make(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A body whose type nothing reads: the type, the validators of the answer, and a digest of what came of it (hex).

    ``times`` is in how many visits in a row it was the same.
    """

    mimetype: str
    digest: str
    etag: str | None = None
    last_modified: str | None = None
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A row of the URL table that is to be visited.

    ``attempt`` counts the failed tries of this run, ``failed_runs`` the failed runs in a row, ``failures`` by
    what failed (``rules.lifecycle``).
    ``etag``, ``last_modified``, ``body_digest`` (sha256) and ``fields_digest`` are those
    of the last good body, None without one or where it is to be processed again; ``has_document`` tells
    whether the cache or the index has its document, ``code`` what the row said before.
    ``is_known`` tells whether the document belongs in the index, or is there: limits on traps do not refuse its page.
    ``canonical_key`` and ``display_key`` are those of the document (``urls.key``), None where it has none;
    ``display_url`` is what a rewriter wants shown instead of the URL. ``rejected`` is the evidence in spite of which an
    operator kept the document. ``redirected``: the document came from another URL, to which
    redirects led.
    ``anew``: its page is to be processed again, whatever the server says. ``visited_ms`` is the moment of the last visit,
    ``interval_ms`` how long it waits between two, ``sitemap_id`` the sitemap that lists it, ``lastmod_ms`` its date there;
    ``version`` is that of what is listed (``urls.version``), None where it is not any more, and ``read_version`` that in which
    the body of the document is known, None where it is to be read.
    ``unread`` is the body of the last visit, where nothing reads its type: its validators are those of ``etag`` and ``last_modified``.
    ``in_archive``: the last good body was that of a file in an archive. ``rendered``: why a browser rendered it.
    ``parts`` is how it did then, ``lacks`` what the last visit's page lacked (``rules.rendering``).
    """

    url_id: int
    url: str
    host_id: int
    depth: int
    attempt: int = 0
    etag: str | None = None
    last_modified: str | None = None
    body_digest: bytes | None = None
    fields_digest: bytes | None = None
    has_document: bool = False
    is_known: bool = False
    code: int = 0
    failed_runs: int = 0
    failures: str | None = None
    canonical_key: int | None = None
    display_key: int | None = None
    display_url: str | None = None
    rejected: str | None = None
    redirected: bool = False
    anew: bool = False
    visited_ms: int | None = None
    interval_ms: int | None = None
    sitemap_id: int | None = None
    lastmod_ms: int | None = None
    version: int | None = None
    read_version: int | None = None
    unread: Unread | None = None
    in_archive: bool = False
    rendered: str | None = None
    parts: str | None = None
    lacks: str | None = None


class Guess(StrEnum):
    """What a language was taken from, of a page that declares none, or a wrong one."""

    TEXT = "text"
    #: the letters of a text that tells no more
    SCRIPT = "script"
    DEFAULT = "default"


class FallbackReason(StrEnum):
    """Why other text of a page is indexed than its markup says."""

    #: too little would be left: the page was taken uncut
    UNCUT = "uncut"
    #: what the page declares its main content has too little of its text
    MAIN = "main"


class Fallback(NamedTuple):
    """That other text of a page was taken, because it would have been so many characters, ``left``, ``of`` so many."""

    reason: FallbackReason
    left: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What was read from a body: text and fields, links, and robots directives.

    ``links`` are absolute identities in document order, each once; ``refresh`` is the absolute
    target of a meta refresh. ``canonical`` is absolute, or None. ``found`` has the texts of mapped
    names by origin, until ``attributes`` are made of them: fields of the index with their values.
    ``noindex_by_header`` and ``nofollow_by_header``: only X-Robots-Tag says so. ``unavailable_ms`` is when its author wants it to leave the
    index (ms since 1970), None: never.
    ``malformed`` are the first links that are no URL. ``feeds`` are those that its head names, and are no links.

    ``modified`` is when a file says that it was changed last (ISO 8601). ``name_title`` is the title that was made of the name of a file, where it says none itself.
    ``language`` is the tag of its main language, ``is_language_given`` tells whether a component of a user's own says it,
    ``other_languages`` are those that its text has besides. ``guessed`` is the language of a page that declares none, or a wrong
    one, and what it was taken from. ``parts`` are those that declare a language of their own, until the languages are told: the
    tag of each, and some of its text.
    ``headings`` are those of the text that is indexed, and the terms that it defines; the first ``naming`` of them may name
    the page.
    ``text`` is what is indexed of the text. ``whole`` is all of it where that is more, and ``whole_digest`` its sha256 (hex).
    ``fallback`` says that ``text`` is not what the page says its main content is.
    ``access`` is who may see the document; None: everyone.
    """

    title: str = ""
    name_title: str = ""
    text: str = ""
    whole: str = ""
    whole_digest: str = ""
    headings: tuple[str, ...] = ()
    naming: int = 0
    fallback: Fallback | None = None
    description: str = ""
    author: str = ""
    subject: str = ""
    language: str = ""
    is_language_given: bool = False
    other_languages: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    guessed: tuple[str, Guess] | None = None
    charset: str = ""
    modified: str = ""
    canonical: str | None = None
    feeds: tuple[str, ...] = ()
    refresh: str | None = None
    noindex: bool = False
    noindex_by_header: bool = False
    nofollow: bool = False
    nofollow_by_header: bool = False
    unavailable_ms: int | None = None
    links: tuple[Link, ...] = ()
    malformed: tuple[str, ...] = ()
    found: tuple[tuple[str, tuple[str, ...]], ...] = ()
    attributes: tuple[tuple[str, tuple[str | int | float, ...]], ...] = ()
    access: Access | None = None

    @property
    def all_text(self) -> str:
        """All text of the page, also what is not indexed."""
        return self.whole or self.text

    @property
    def languages(self) -> tuple[str, ...]:
        """All languages of its text, the main one first."""
        return (self.language, *(tag for tag in self.other_languages if tag != self.language)) if self.language else ()

    @property
    def language_guess(self) -> Guess | None:
        """What the language was taken from; None where the page, or a component of a user's own, says which it is."""
        return self.guessed[1] if self.guessed is not None and self.guessed[0] == self.language else None


class CachedAnswer(NamedTuple):
    """An answer that comes from the cache: its body and headers, the text that was read from it, and more of its ``Page``.

    ``record`` is its record as it is in a segment, ``record_id`` the identity of that; both are empty where that is another
    one's, and the record of a large body is. ``page`` is what the converter ``converter`` made of these bytes, without links; None where that is not kept.
    """

    body: Body
    headers: Headers
    text: str
    record: bytes
    record_id: str
    whole_digest: str = ""
    headings: tuple[str, ...] = ()
    naming: int = 0
    fallback: Fallback | None = None
    page: Page | None = None
    converter: str = ""


class FetchedAnswer(NamedTuple):
    """The answer that a visit brought: the URL that gave it, its headers and decoded body, and the redirects to it.

    ``rendered`` is why a browser rendered it; None: the body is as it was sent.
    """

    claim: Claim
    url: str
    headers: Headers
    body: Body
    fetched_at: datetime
    redirects: tuple[Hop, ...] = ()
    cached: CachedAnswer | None = None
    rendered: str | None = None
    parts: str | None = None
    lacks: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page that was fetched with status 200; each item pipeline fills in its part (``addon.py`` has their order).

    By the spider: ``base_url`` is the URL that gave the body: the claim's, or where redirects led. ``body`` has its
    content codings undone. ``mimetype`` is the type that the header says, or that the first bytes look like.
    ``answered_url`` is the identity of that URL, None: the claim's. ``canonical`` is what a Link header names. ``cached`` is the answer where it comes from the cache, and the same text
    would be read from it as before. ``rendered`` is why a browser rendered the page: then ``body`` is what it made of it,
    and ``parts`` and ``lacks`` are as in a claim.

    By the index filter, before the body is read: ``refusal`` is the rule of ``[keep]`` that refuses the document by
    its type, size, age, URL or name. ``body_digest`` (sha256) is that of the body and of what decides about it,
    ``content_digest`` (sha256) that of the body alone, where what is listed is looked for by it.

    By the converter: ``page``, and ``converter``, the name of the one that read it. ``page`` stays None where the
    bytes equal those of the last visit: they are not read again.

    When its fields are completed: ``origin`` is what its record says of how it was read (``documents.known_texts``).

    By the index filter, after that: ``code`` is 200, or why the page is not indexed (911, 952, 1010), ``rule`` the
    rule that says so. ``canonical`` is another URL inside the boundary that the page names as the canonical one,
    ``canonical_link`` the link to it. ``display_url`` is set where the source maps display URLs (A4).

    At last: ``fields_digest`` (documents.digests) is that of what is indexed and of the whole text, from which a
    part may be taken. ``copy_digest`` is that of what is indexed alone, but for a title that is the name of a file, where
    copies are looked for: documents that have the same one are copies of each other. ``url_fit`` is how the URL fits the
    content (``rules.copy_order``).

    A member of a run (``members``) hands it on without its body: ``records`` are those that the cache is to get (``cache.segment``),
    None where it gets none, and ``sent_bytes`` the length of the body.
    """

    claim: Claim
    base_url: str
    code: int
    headers: Headers
    body: Body
    mimetype: str
    fetched_at: datetime
    refusal: str | None = None
    page: Page | None = None
    converter: str | None = None
    rule: str | None = None
    canonical: str | None = None
    canonical_link: Link | None = None
    display_url: str | None = None
    redirects: tuple[Hop, ...] = ()
    answered_url: str | None = None
    cached: CachedAnswer | None = None
    etag: str | None = None
    last_modified: str | None = None
    rendered: str | None = None
    parts: str | None = None
    lacks: str | None = None
    body_digest: bytes = b""
    content_digest: bytes | None = None
    origin: Mapping[str, Any] | None = None
    fields_digest: bytes = b""
    copy_digest: bytes | None = None
    url_fit: int | None = None
    records: tuple[bytes, bytes] | None = None
    sent_bytes: int | None = None

    @property
    def body_bytes(self) -> int:
        """The length of the body, also where another process keeps it."""
        return len(self.body) if self.sent_bytes is None else self.sent_bytes

    @property
    def held_bytes(self) -> int:
        """What it takes in memory, about, and on the disk where its body is large."""
        texts = len(self.page.text) + len(self.page.whole) if self.page is not None else 0
        return len(self.body) + sum(map(len, self.records or ())) + texts

    @property
    def same_answer(self) -> CachedAnswer | None:
        """The answer of the cache, if no component of a user's own has changed the body or the headers since."""
        cached = self.cached
        if cached is None or cached.body is not self.body or cached.headers != self.headers:
            return None
        return cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A visit without a document: unchanged, redirected, refused or failed.

    ``code`` is an HTTP status or a ``codes.Code``. ``transient`` failures are tried again, after
    ``retry_after_seconds`` where the server named it. ``links`` are URLs to be admitted at the
    claim's own depth (targets of 301, 308 and meta refresh). ``released``: the row is to be released
    unchanged, because the process is stopping. ``stopped_worker``: the worker that read the page was ended by a limit,
    or died. ``unasked``: no request was sent for the row in this run, because its host is blocked, or it is not to be
    requested yet. ``again_ms``: the visit
    begins anew at this moment, as if it had not begun: too many wait for the host to which it was redirected. ``whole``: it
    begins anew without validators, for what a 304 says of the page is new. ``unread`` is the body, where nothing reads its type.
    ``not_before_ms``: the URL is to be requested from this moment on, in the next run at the earliest; the row waits, and keeps what
    it has.
    ``lacks`` is what a rendered page lacked, ``parts`` what is noted of that with its document.
    """

    claim: Claim
    code: int
    rule: str | None = None
    error: str | None = None
    transient: bool = False
    retry_after_seconds: float | None = None
    redirects: tuple[Hop, ...] = ()
    links: tuple[Link, ...] = ()
    released: bool = False
    etag: str | None = None
    last_modified: str | None = None
    stopped_worker: bool = False
    unasked: bool = False
    again_ms: int | None = None
    not_before_ms: int | None = None
    whole: bool = False
    unread: Unread | None = None
    parts: str | None = None
    lacks: str | None = None


class VisitEnds(NamedTuple):
    """The ends of several visits, which pass the item pipelines one after the other."""

    ends: Sequence[Document | Outcome]


class Change(StrEnum):
    """What a document is for a receiver besides the index; one that has gone is a ``Removal``."""

    #: it was not there, as far as the receiver was told, or had gone since
    NEW = "new"
    CHANGED = "changed"
    #: told only where ``report`` is "all"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedDocument:
    """A document as an index receives it: ``id`` and its other fields (``index_fields.py``).

    Values are str, int, float, bool, aware datetimes, or lists of str; ``fields`` has no ``id``. ``change`` is what it is
    for a receiver of ``[receivers.NAME]``, None for the index.
    """

    id: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    change: Change | None = None


@dataclass(slots=True)
class Files:
    """The files that a run writes at its end: those that a command line asks for (path and format), and what came of all.

    ``notes`` are sentences for who asked; ``failure`` is the first error because of which a file was not written.
    """

    asked: Sequence[tuple[Path, str]] = ()
    notes: list[str] = field(default_factory=list)
    failure: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A document to be removed from the index, and the code that is the reason."""

    id: str
    url: str
    code: int


class SitemapUrl(NamedTuple):
    """A URL of a sitemap: its identity, and when it was last changed (ms since 1970; None where the sitemap does not say)."""

    url: str
    lastmod_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapEnd:
    """How the reading of a sitemap ended: ``code`` is as for a URL, 304 if it did not change.

    ``whole``: everything that it lists was read.
    """

    code: int
    error: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class SubmittedUrls:
    """URLs that somebody submitted while their source is crawled, as they were given (H9)."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Rows whose pages were taken in this run before their host was known to answer any path with such a page (965).

    ``new`` had no document before this run, ``known`` had one. All of them are visited again.
    """

    new: tuple[int, ...] = ()
    known: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapPart:
    """Some of the entries of one sitemap, which the writer takes at once; the last part of a sitemap has the ``end``.

    ``url`` is the identity of the sitemap, ``children`` are the sitemaps that it names; of ``own_children`` it may say so
    before indexes of other hosts. A long sitemap comes in several parts: it is written while it is read. The last part
    tells whether the sitemap ``is_root``: robots.txt or the source file names it, so that it belongs to no index; and
    whether it ``is_guess``: then it belongs to no index of another host. ``is_feed``: only pages name it.
    """

    url: str
    urls: tuple[SitemapUrl, ...] = ()
    children: tuple[str, ...] = ()
    own_children: tuple[str, ...] = ()
    end: SitemapEnd | None = None
    is_root: bool = False
    is_guess: bool = False
    is_feed: bool = False


def copy_with(value: T, **changes: object) -> T:
    """As ``dataclasses.replace``, in a tenth of its time: for dataclasses with slots and no base, and without ``__post_init__``.

    A page passes a dozen copies on its way, and ``replace`` asks for the name of each field, and sets each one through the
    check of frozen classes.
    """
    kind: Any = type(value)
    copied: T = _get_copier(kind)(value, changes)
    return copied


@cache
def _get_copier(kind: type[Any]) -> Callable[[Any, Mapping[str, object]], Any]:
    """A function that copies the instances of a class field by field, as plain assignments.

    They are made to an instance of a class with the same slots that is not frozen, which becomes one of ``kind`` at last.
    """
    names = [field.name for field in fields(kind)]
    if kind.__bases__ != (object,) or kind.__dictoffset__ or hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} has a base, a field without a slot, or a method that runs after __init__")
    opened = type(kind.__name__, (), {"__slots__": tuple(names)})
    lines = [
        "def copy(value, changes):",
        "    made = new(opened)",
        *[f"    made.{name} = value.{name}" for name in names],
        "    for name, field in changes.items():",
        "        setattr(made, name, field)",
        "    made.__class__ = kind",
        "    return made",
    ]
    found: dict[str, Any] = {"new": _new, "opened": opened, "kind": kind}
    exec("\n".join(lines), found)  # noqa: S102  # the names of our own fields, as dataclasses does it
    copier: Callable[[Any, Mapping[str, object]], Any] = found["copy"]
    return copier


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
