"""The links of a page, absolute, in document order, each once (B1, X-D4); the canonical URL of a Link header (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

import ada_url
from selectolax.lexbor import LexborNode

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.encoding import find_codec
from searchcrawl.items import Link
from searchcrawl.urls import has_route, keep_route, resolve, split_route, without_route

#: No page that is written for people has more links; further ones are left out.
MAX_LINKS: Final = 300_000
#: No server accepts a longer URL, and the parser would copy it several times.
MAX_URL_CHARACTERS: Final = 65_536

# References that are resolved by putting a prefix before them: nothing in them is to be escaped, changed or removed.
_PLAIN: Final = re.compile(r"[\w~-][\w~.-]*+(?>/[\w~-][\w~.-]*+)*+/?+(?>\?[\w~.=&;/+-]*+)?+", re.ASCII)
# The prefix of such a reference in an absolute URL that needs no change: no port, no number, no punycode in the host.
_PLAIN_HOST: Final = re.compile(r"https?://(?!xn--)[a-z][a-z0-9-]*+(?>\.(?!xn--)[a-z][a-z0-9-]*+)*+/")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
#: What encodings of two bytes a letter have in the second one, and a query may have.
_KEPT_IN_QUERY: Final = frozenset(map(chr, range(0x21, 0x7F))) - frozenset("\"#'<>")
_SCHEMES: Final = ("http://", "https://")
_SKIPPED: Final = ("javascript:", "mailto:", "data:", "tel:")
_FEED_TYPES: Final = frozenset({"application/rss+xml", "application/atom+xml"})
#: No page that is written for people names more feeds.
_MAX_FEEDS: Final = 10
#: Types of what is embedded and is no document.
_NO_DOCUMENTS: Final = (
    "image/",
    "audio/",
    "video/",
    "application/x-java",
    "application/x-shockwave",
    "application/x-silverlight",
)
#: Of links that are no URLs so many are named, and so much of each.
MAX_MALFORMED: Final = 10
MAX_SHOWN: Final = 200
#: So many texts of a page for one target.
_MOST_TEXTS_OF_LINK: Final = 3

#: The rest of a longer header is not read.
_MAX_HEADER_CHARACTERS: Final = 8_192
_LINK_VALUE: Final = re.compile(
    r"\s*<([^>]*)>((?>\s*;\s*[^\s;,=]+(?:\s*=\s*(?:\"(?>[^\"\\]|\\.)*+\"|[^\s;,\"]*+))?)*+)\s*(?:,|$)"
)
_LINK_PARAMETER: Final = re.compile(r";\s*([^\s;,=]+)(?:\s*=\s*(?:\"((?>[^\"\\]|\\.)*+)\"|([^\s;,\"]*+)))?")

#: A reference as written, with its fragment, and the value of ``rel``.
Reference = tuple[str, str | None]
#: That of a link to a place of the page itself.
LOCAL: Final[Reference] = ("#", None)


class PageLinks(NamedTuple):
    """``malformed`` are the first references that are no URL, or one that is too long, each cut to 200 characters (B12).

    ``targets`` are those of references without their fragments, but for routes.
    """

    links: tuple[Link, ...]
    malformed: tuple[str, ...] = ()
    targets: Mapping[str, str] = MappingProxyType({})
    routes: bool = False


class Resolver:
    """Resolves the references of one page to the same identities as ``urls.resolve`` does, but faster.

    ``base`` is an identity: the page's URL or what its base element says. ``charset`` is the encoding of the page, in
    which a browser writes what is not ASCII in a query. With ``routes`` a fragment that is a route is kept.
    """

    def __init__(self, base: str, charset: str = "utf-8", *, routes: bool = False) -> None:
        base = without_route(base)
        self._base = base
        self._charset = charset
        self.routes = routes
        path_start = base.index("/", base.index("//") + 2)
        self._root = base[: path_start + 1]
        self._folder = base[: base.partition("?")[0].rindex("/") + 1]

    def resolve(self, reference: str) -> str | None:
        """The identity of a reference; None where it is no http(s) URL."""
        if len(reference) > MAX_URL_CHARACTERS:
            return None
        if _PLAIN.fullmatch(reference):
            return self._folder + reference
        folder, rest = self._folder, reference
        if reference[:1] == "/":
            folder, rest = self._root, reference[1:]
        elif reference.startswith(self._root):
            folder, rest = self._root, reference[len(self._root) :]
        elif host := _PLAIN_HOST.match(reference):
            folder, rest = host[0], reference[host.end() :]
        else:
            start = 0
            while rest.startswith("../", start):
                start += 3
                if folder != self._root:
                    folder = folder[: folder.rindex("/", 0, -1) + 1]
            rest = rest[start:]
        if _PLAIN.fullmatch(rest) or (reference and not rest):
            return folder + rest
        return self._resolve_slowly(reference)

    def is_malformed(self, reference: str) -> bool:
        """Whether a reference, for which ``resolve`` found None, is no URL of any scheme."""
        if reference.startswith(_SKIPPED):
            return False
        if len(reference) > MAX_URL_CHARACTERS:
            return True
        try:
            ada_url.join_url(self._base, reference)
        except ValueError:
            return True
        return False

    def _resolve_slowly(self, reference: str) -> str | None:
        if "?" in reference and not reference.isascii() and not self._charset.startswith("utf-"):
            rest, route = split_route(reference)
            path, mark, query = rest.partition("?")
            reference = f"{path}{mark}{_NOT_ASCII.sub(partial(_escape, codec=find_codec(self._charset)), query)}{route}"
        try:
            href: str = ada_url.join_url(self._base, reference)
        except ValueError:
            return None
        if not href.startswith(_SCHEMES):
            return None
        href = keep_route(href) if self.routes else href.partition("#")[0]
        if "@" not in href:
            return href
        try:
            return resolve(href, routes=self.routes)
        except InvalidUrl:
            return None


def _escape(match: re.Match[str], *, codec: str) -> str:
    """A letter of a query as bytes of an encoding (URL Standard, "percent-encode after encoding")."""
    try:
        raw = match[0].encode(codec)
    except UnicodeEncodeError:
        return f"%26%23{ord(match[0])}%3B"
    return "".join(chr(byte) if chr(byte) in _KEPT_IN_QUERY else f"%{byte:02X}" for byte in raw)


def find_base(bases: Iterable[LexborNode], url: str) -> str:
    """The URL that references are relative to: that of the first base element, else that of the page."""
    for node in bases:
        href = node.attributes.get("href")
        if href is not None:
            return Resolver(url).resolve(href) or url
    return url


def read_reference(node: LexborNode, *, routes: bool = False) -> Reference | None:
    """The reference of an ``a``, ``area``, ``frame`` or ``iframe``; None where it has none, LOCAL for one to the page itself.

    With ``routes`` a route of the page itself is a target.
    """
    attributes = node.attributes
    # The last one is that of a drawing.
    reference = attributes.get("href") or attributes.get("src") or attributes.get("xlink:href")
    if not reference:
        return None
    if reference[0] == "#" and not (routes and has_route(reference)):
        return LOCAL
    return reference, attributes.get("rel")


def read_embedded(node: LexborNode) -> Reference | None:
    """The reference of an ``object`` or ``embed`` to a document; None for a picture, a film or a program."""
    attributes = node.attributes
    reference = attributes.get("data" if node.tag == "object" else "src")
    kind = (attributes.get("type") or "").strip().lower()
    if not reference or reference[0] == "#" or "classid" in attributes or kind.startswith(_NO_DOCUMENTS):
        return None
    return reference, None


def extract_links(references: Iterable[Reference], resolver: Resolver) -> PageLinks:
    """The links to the targets of references, in document order.

    Targets that are no http(s) URL are left out, and those beyond MAX_LINKS. A target is nofollow only if all its links
    are.
    """
    targets: dict[str, bool] = {}
    by_reference: dict[str, str] = {}
    malformed: dict[str, None] = {}
    routes = resolver.routes
    for written, rel in references:
        # Many links of a page differ in their fragment only.
        reference = keep_route(written) if routes else written.partition("#")[0]
        target = by_reference.get(reference)
        if target is None:
            target = resolver.resolve(reference)
            if target is None:
                if len(malformed) < MAX_MALFORMED and resolver.is_malformed(reference):
                    malformed[reference[:MAX_SHOWN]] = None
                continue
            if len(targets) >= MAX_LINKS and target not in targets:
                break
            by_reference[reference] = target
        nofollow = rel is not None and "nofollow" in rel.lower().split()
        targets[target] = nofollow and targets.get(target, True)
    # This takes half the time of Link(...), and most pages have dozens of links.
    new = tuple.__new__
    return PageLinks(
        tuple([new(Link, (url, nofollow, None, None, ())) for url, nofollow in targets.items()]),
        tuple(malformed),
        by_reference,
        routes,
    )


def add_texts(
    found: PageLinks, references: Sequence[Reference], texts: Iterable[tuple[int, str]], *, url: str
) -> tuple[Link, ...]:
    """The links with the texts of the references that lead there, by their numbers; ``url`` is that of the page.

    Links of a page to itself, and those that are nofollow, have none.
    """
    texts_of: dict[str, list[str]] = {}
    for number, text in texts:
        written, rel = references[number]
        target = found.targets.get(keep_route(written) if found.routes else written.partition("#")[0])
        if target is None or target == url or (rel is not None and "nofollow" in rel.lower().split()):
            continue
        known = texts_of.setdefault(target, [])
        if len(known) < _MOST_TEXTS_OF_LINK and text not in known:
            known.append(text)
    # As in ``extract_links``: a third of the time of _replace(...).
    new = tuple.__new__
    return tuple(
        [new(Link, (*link[:-1], tuple(texts_of[link.url]))) if link.url in texts_of else link for link in found.links]
    )


def read_relations(nodes: Iterable[LexborNode], resolver: Resolver) -> tuple[str | None, tuple[str, ...]]:
    """The one http(s) URL that canonical links of the head name (RFC 6596), and the feeds that it names as alternates.

    Several different canonical URLs are ignored, as are links in the body, which anybody may have written, and feeds
    that are nofollow.
    """
    found: set[str | None] = set()
    feeds: dict[str | None, None] = {}
    for node in nodes:
        attributes = node.attributes
        href, rel = attributes.get("href"), (attributes.get("rel") or "").lower()
        if not href or ("canonical" not in rel and "alternate" not in rel):
            continue
        parent = node.parent
        if parent is None or parent.tag != "head":
            continue
        names = rel.split()
        if "canonical" in names:
            found.add(resolver.resolve(href.strip()))
        elif "alternate" in names and "nofollow" not in names:
            kind = (attributes.get("type") or "").partition(";")[0].strip().lower()
            if kind in _FEED_TYPES:
                feeds[resolver.resolve(href.strip())] = None
    found.discard(None)
    return found.pop() if len(found) == 1 else None, tuple(filter(None, feeds))[:_MAX_FEEDS]


def find_header_canonical(values: Iterable[str], *, base_url: str, routes: bool = False) -> str | None:
    """The one http(s) URL that Link headers name as canonical for ``base_url`` (RFC 6596); None for none, or several.

    For files that are not HTML it is the only way to name one.
    """
    found = set()
    for value in values:
        for target, parameters in _read_link_header(value[:_MAX_HEADER_CHARACTERS]):
            # A link with an anchor parameter is about another page.
            if "canonical" in parameters.get("rel", "").lower().split() and "anchor" not in parameters:
                try:
                    found.add(resolve(target.strip(), base_url, routes=routes))
                except InvalidUrl:
                    continue
    return found.pop() if len(found) == 1 else None


def _read_link_header(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    position = 0
    while match := _LINK_VALUE.match(value, position):
        position = match.end()
        parameters: dict[str, str] = {}
        for name, quoted, plain in _LINK_PARAMETER.findall(match[2]):
            # If a parameter comes more than once, the first one is taken (RFC 8288 §3.3).
            parameters.setdefault(name.lower(), quoted or plain)
        yield match[1], parameters
