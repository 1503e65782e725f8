"""The links of a page: absolute identities in document order, each once (B1, D4, D8)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import ada_url
from selectolax.lexbor import LexborNode

from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Link
from searchcrawl.urls import resolve

#: A page with more is no page for readers; what follows is left out.
MAX_LINKS: Final = 300_000
#: No server accepts more; the parser would copy it several times.
MAX_URL_CHARACTERS: Final = 65_536

# References that resolve by putting them behind a prefix: nothing to escape, fold or remove.
_PLAIN: Final = re.compile(r"[\w~-][\w~.-]*+(?:/[\w~-][\w~.-]*+)*+/?+(?:\?[\w~.=&;/+-]*+)?+", re.ASCII)
# What stands before such a reference in a URL that is its own identity: no port, no number, no punycode in the host.
_PLAIN_HOST: Final = re.compile(r"https?://(?!xn--)[a-z][a-z0-9-]*+(?:\.(?!xn--)[a-z][a-z0-9-]*+)*+/")
_SCHEMES: Final = ("http://", "https://")
_SKIPPED: Final = ("javascript:", "mailto:", "data:", "tel:")
_MAX_MALFORMED: Final = 10
_MAX_SHOWN: Final = 200


#: A reference as written, with its fragment, and the value of ``rel``.
Reference = tuple[str, str | None]


class PageLinks(NamedTuple):
    """``malformed`` are references that are no URL at all, or an endless one: the first ones, each cut (B12)."""

    links: tuple[Link, ...]
    malformed: tuple[str, ...] = ()


class Resolver:
    """Gives references of one page the identity that ``urls.resolve`` gives them, but faster.

    ``base`` is an identity: the page's URL or what its base element says.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        path_start = base.index("/", base.index("//") + 2)
        self._root = base[: path_start + 1]
        self._folder = base[: base.partition("?")[0].rindex("/") + 1]

    def resolve(self, reference: str) -> str | None:
        """The identity of a reference, or None where it is no http(s) URL."""
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
            while rest.startswith("../"):
                rest = rest[3:]
                if folder != self._root:
                    folder = folder[: folder.rindex("/", 0, -1) + 1]
        if _PLAIN.fullmatch(rest) or (reference and not rest):
            return folder + rest
        return self._resolve_slowly(reference)

    def is_malformed(self, reference: str) -> bool:
        """Whether what ``resolve`` gave up is no URL of any scheme."""
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
        try:
            href: str = ada_url.join_url(self._base, reference)
        except ValueError:
            return None
        if not href.startswith(_SCHEMES):
            return None
        href = href.partition("#")[0]
        if "@" not in href:
            return href
        try:
            return resolve(href)
        except InvalidUrl:
            return None


def base_of(bases: Iterable[LexborNode], url: str) -> str:
    """The URL that references are resolved against: the first base element's, else the page's."""
    for node in bases:
        href = node.attributes.get("href")
        if href is not None:
            return Resolver(url).resolve(href) or url
    return url


def read_reference(node: LexborNode) -> Reference | None:
    """What an ``a``, ``area``, ``frame`` or ``iframe`` refers to; None where to nothing or the page itself."""
    attributes = node.attributes
    reference = attributes.get("href") or attributes.get("src")
    if not reference or reference[0] == "#":
        return None
    return reference, attributes.get("rel")


def extract_links(references: Iterable[Reference], resolver: Resolver) -> PageLinks:
    """The targets of references given in document order.

    Other schemes are left out, and targets beyond MAX_LINKS. A target is nofollow only where each
    of its links is.
    """
    targets: dict[str, bool] = {}
    by_reference: dict[str, str] = {}
    malformed: dict[str, None] = {}
    for written, rel in references:
        # Most links of a page differ in their fragment only.
        reference = written.partition("#")[0]
        target = by_reference.get(reference)
        if target is None:
            target = resolver.resolve(reference)
            if target is None:
                if len(malformed) < _MAX_MALFORMED and resolver.is_malformed(reference):
                    malformed[reference[:_MAX_SHOWN]] = None
                continue
            if len(targets) >= MAX_LINKS and target not in targets:
                break
            by_reference[reference] = target
        nofollow = rel is not None and "nofollow" in rel.lower().split()
        targets[target] = nofollow and targets.get(target, True)
    # Half the time of Link(...): most pages have dozens.
    new = tuple.__new__
    return PageLinks(
        tuple([new(Link, (url, nofollow, None, None)) for url, nofollow in targets.items()]), tuple(malformed)
    )
