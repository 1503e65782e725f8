"""A page: its fields, text and links from one parse (A5, A8, B10, C9)."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl import clock
from searchcrawl.html.attributes import read_attributes
from searchcrawl.html.encoding import decode
from searchcrawl.html.links import Reference, Resolver, base_of, extract_links, read_reference
from searchcrawl.html.meta_refresh import parse_refresh
from searchcrawl.html.page_text import BLOCK_MARK, collapse, collapse_blocks
from searchcrawl.html.robots_meta import robots_directives
from searchcrawl.html.tree import parse_tree
from searchcrawl.items import Link, Page

#: A page that shows for longer is content of its own; its target is then a link.
MAX_REFRESH_SECONDS: Final = 100

_LINKS: Final = "a area frame iframe"
_FIELDS: Final = "meta link base title"
# A mark before and behind, or before alone where one of the same kind or the parent's end follows.
_BLOCKS: Final = (
    "address article aside blockquote body center dd details dialog dir div dl fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr legend main menu nav ol p pre search section summary table ul"
)
_ITEMS: Final = "br caption dt li option optgroup tbody td tfoot th thead tr select textarea"
_SILENT: Final = "iframe noembed noframes noscript script style template"
_LANGUAGE_METAS: Final = ("content-language", "language", "dc.language", "dcterms.language")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")


class _Kind(Enum):
    BLOCK = auto()
    ITEM = auto()
    LINK = auto()
    OTHER = auto()


def _tag_ids() -> dict[str, int]:
    """Lexbor's numbers of the tags that matter: cheaper to read from a node than its name."""
    create = LexborHTMLParser("").create_node
    return {tag: create(tag).tag_id for tag in f"{_LINKS} {_FIELDS} {_BLOCKS} {_ITEMS} {_SILENT}".split()}


_TAG_ID: Final = _tag_ids()
_KIND_OF_TAG: Final = {
    _TAG_ID[tag]: kind
    for kind, tags in (
        (_Kind.LINK, _LINKS),
        (_Kind.BLOCK, _BLOCKS),
        (_Kind.ITEM, _ITEMS),
        (_Kind.OTHER, f"{_FIELDS} {_SILENT}"),  # the last: an iframe is more than a link
    )
    for tag in tags.split()
}
_META, _LINK, _BASE, _TITLE, _IFRAME, _NOSCRIPT = (
    _TAG_ID[tag] for tag in ("meta", "link", "base", "title", "iframe", "noscript")
)
# The methods for bytes: to find out which of them an argument calls for costs as much as the work.
_insert_before: Final = LexborNode.insert_before[bytes]  # type: ignore[index]
_insert_after: Final = LexborNode.insert_after[bytes]  # type: ignore[index]
_MARK: Final = BLOCK_MARK.encode()


def parse_html(
    body: bytes,
    *,
    url: str,
    content_type: str,
    default_charset: str,
    robots_headers: Sequence[str],
    user_agent: str,
    wanted: frozenset[str] = frozenset(),
) -> Page:
    """The page that ``body`` is, fetched from ``url`` (an identity); nothing raises.

    ``content_type`` is the header's value, ``robots_headers`` the values of X-Robots-Tag,
    ``user_agent`` the name that meta elements and these headers may address, ``wanted`` the origins
    of mapped attributes (``html.attributes``).
    """
    text, charset = decode(body, content_type=content_type, default_charset=default_charset)
    # Without a replaced character or a BOM, decoding has lost nothing.
    exact = charset == "utf-8" and "\ufffd" not in text and not body.startswith(BOM_UTF8)
    return parse_page(
        text,
        utf8=body if exact else None,
        url=url,
        charset=charset,
        robots_headers=robots_headers,
        user_agent=user_agent,
        wanted=wanted,
    )


def parse_page(
    text: str,
    *,
    url: str,
    utf8: bytes | None = None,
    charset: str = "utf-8",
    robots_headers: Sequence[str] = (),
    user_agent: str = "",
    wanted: frozenset[str] = frozenset(),
) -> Page:
    """As ``parse_html``, for a body already decoded from ``charset``; ``utf8`` is ``text`` in UTF-8, if at hand."""
    parser = parse_tree(text, utf8=utf8)
    found = _read_tree(parser)
    resolver = Resolver(base_of(found.bases, url))
    links, malformed = extract_links(found.references + _references_without_scripts(found.noscripts), resolver)
    metas, refresh, later = _read_metas(found.metas, resolver, url)
    robots = robots_directives(metas=metas, headers=robots_headers, user_agent=user_agent, now=clock.now())
    fields = {name.strip().lower(): content for name, content in reversed(metas) if content.strip()}
    return Page(
        title=collapse(found.title or ""),
        # Before the text, which takes the scripts away.
        found=read_attributes(found.metas, found.silent, wanted) if wanted else (),
        text=_text(parser, found.silent),
        description=collapse(fields.get("description", "")),
        author=collapse(fields.get("author") or fields.get("dc.creator", "")),
        subject=collapse(fields.get("subject") or fields.get("dc.subject", "")),
        language=_language(parser) or _tag_of(_declared_language(fields)),
        charset=charset,
        canonical=_canonical(found.relations, resolver),
        refresh=refresh,
        noindex=robots.noindex,
        nofollow=robots.nofollow,
        unavailable_ms=robots.unavailable_ms,
        links=links if later is None or any(link.url == later for link in links) else (*links, Link(later)),
        malformed=malformed,
    )


@dataclass(slots=True, kw_only=True)
class _Found:
    """What a tree holds, each list in document order; ``noscripts`` are the contents of noscript elements."""

    references: list[Reference] = field(default_factory=list)
    metas: list[LexborNode] = field(default_factory=list)
    relations: list[LexborNode] = field(default_factory=list)
    bases: list[LexborNode] = field(default_factory=list)
    title: str | None = None
    noscripts: list[str] = field(default_factory=list)
    silent: list[LexborNode] = field(default_factory=list)

    def add(self, node: LexborNode, tag: int) -> None:
        """Keeps what is neither block nor plain link."""
        if tag == _META:
            self.metas.append(node)
        elif tag == _LINK:
            self.relations.append(node)
        elif tag == _BASE:
            self.bases.append(node)
        elif tag == _TITLE:
            if self.title is None and _is_of_page(node):
                self.title = node.text()
        else:
            self.silent.append(node)
            if tag == _NOSCRIPT:
                self.noscripts.append(node.text())
            elif tag == _IFRAME and (reference := read_reference(node)) is not None:
                self.references.append(reference)


def _read_tree(parser: LexborHTMLParser) -> _Found:
    """All that is read from the tree but the text, whose blocks get their marks here.

    One walk that keeps few nodes: the walk and the nodes kept are what costs.
    """
    found = _Found()
    references = found.references
    kind_of = _KIND_OF_TAG.get
    # As locals: members of an enum are slow to look up.
    block, item, link = _Kind.BLOCK, _Kind.ITEM, _Kind.LINK
    root = parser.root
    for node in root.traverse() if root is not None else ():
        kind = kind_of(node.tag_id)
        if kind is None:
            continue
        if kind is link:
            reference = read_reference(node)
            if reference is not None:
                references.append(reference)
        elif kind is item:
            _insert_before(node, _MARK)
        elif kind is block:
            _insert_before(node, _MARK)
            _insert_after(node, _MARK)
        else:
            found.add(node, node.tag_id)
    return found


def _references_without_scripts(contents: list[str]) -> list[Reference]:
    """The references within noscript elements: text to this parse, markup to who has no scripts."""
    content = " ".join(text for text in contents if "<" in text)
    return _read_tree(parse_tree(content)).references if content else []


def _read_metas(
    nodes: list[LexborNode], resolver: Resolver, url: str
) -> tuple[list[tuple[str, str]], str | None, str | None]:
    """Names and contents; the target of a refresh; the target of one that comes too late to be a redirect."""
    metas: list[tuple[str, str]] = []
    refresh = later = None
    for node in nodes:
        attributes = node.attributes
        content = attributes.get("content") or ""
        name = attributes.get("name")
        if name:
            metas.append((name, content))
            continue
        pragma = (attributes.get("http-equiv") or "").strip().lower()
        if pragma == "content-language":
            metas.append((pragma, content))
        elif refresh is None and pragma == "refresh":
            read = parse_refresh(content)
            target = resolver.resolve(read.url) if read is not None and read.url else None
            if read is None or target is None or target == url:
                continue
            if read.seconds <= MAX_REFRESH_SECONDS:
                refresh = target
            else:
                later = target
    return metas, refresh, later


def _is_of_page(title: LexborNode) -> bool:
    """Whether a title element is not a drawing's."""
    parent = title.parent
    return parent is None or parent.tag in {"head", "body", "html"}


def _canonical(nodes: list[LexborNode], resolver: Resolver) -> str | None:
    """The one http(s) URL that canonical links of the head name (RFC 6596).

    Several that contradict each other say nothing, and the body may have been written by anybody.
    """
    found = set()
    for node in nodes:
        attributes = node.attributes
        href = attributes.get("href")
        if href and "canonical" in (attributes.get("rel") or "").lower().split() and _is_in_head(node):
            found.add(resolver.resolve(href.strip()))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _is_in_head(node: LexborNode) -> bool:
    parent = node.parent
    return parent is not None and parent.tag == "head"


def _language(parser: LexborHTMLParser) -> str:
    """The language tag of the html element in lower case with hyphens, or empty."""
    root = parser.root
    if root is None:
        return ""
    attributes = root.attributes
    return _tag_of(attributes.get("lang") or attributes.get("xml:lang") or "")


def _declared_language(fields: Mapping[str, str]) -> str:
    """What meta elements say of it, by lower-case name."""
    return next((fields[name] for name in _LANGUAGE_METAS if name in fields), "")


def _tag_of(text: str) -> str:
    value = text.strip()
    return value.replace("_", "-").lower() if _LANGUAGE.fullmatch(value) else ""


def _text(parser: LexborHTMLParser, silent: list[LexborNode]) -> str:
    """What the body shows, a line a block. Changes the tree: read everything else first."""
    body = parser.body
    if body is None:
        return ""
    # Backwards: a node is freed before the one that contains it.
    for node in reversed(silent):
        node.decompose()
    return collapse_blocks(body.text())
