"""A page: its fields, text and links from one parse (A5, A8, B10, C9)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl import clock
from searchcrawl.html.encoding import decode
from searchcrawl.html.links import Resolver, base_of, extract_links
from searchcrawl.html.meta_refresh import parse_refresh
from searchcrawl.html.page_text import BLOCK_MARK, collapse, collapse_blocks
from searchcrawl.html.robots_meta import robots_directives
from searchcrawl.html.tree import parse_tree
from searchcrawl.items import Link, Page

#: Rises when the same bytes would give another page; part of what makes documents out of date.
HTML_VERSION: Final = 1
#: A page that shows for longer is content of its own; its target is then a link.
MAX_REFRESH_SECONDS: Final = 100

_KINDS: Final[Mapping[str, str]] = {
    "links": "a area frame iframe",
    "metas": "meta",
    "relations": "link",
    "bases": "base",
    "titles": "title",
    # A mark before and behind, or before alone where one of the same kind or the parent's end follows.
    "blocks": (
        "address article aside blockquote body center dd details dialog dir div dl fieldset figcaption figure footer "
        "form h1 h2 h3 h4 h5 h6 header hgroup hr legend main menu nav ol p pre search section summary table ul"
    ),
    "items": "br caption dt li option optgroup tbody td tfoot th thead tr select textarea",
    # In one list, as document order says which may contain which.
    "silent": "noembed noframes noscript script style template",
}
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")


def _tag_ids() -> dict[int, str]:
    factory = LexborHTMLParser("")
    return {
        factory.create_node(tag).tag_id: kind  # type: ignore[no-untyped-call, unused-ignore]
        for kind, tags in _KINDS.items()
        for tag in tags.split()
    }


#: Lexbor's number of a tag to the kind of node it makes.
_KIND_OF_TAG: Final = _tag_ids()
#: A link whose content is not shown.
_IFRAME: Final = LexborHTMLParser("").create_node("iframe").tag_id


def parse_html(
    body: bytes,
    *,
    url: str,
    content_type: str,
    default_charset: str,
    default_language: str,
    robots_headers: Sequence[str],
    user_agent: str,
) -> Page:
    """The page that ``body`` is, fetched from ``url`` (an identity); nothing raises.

    ``content_type`` is the header's value, ``robots_headers`` the values of X-Robots-Tag,
    ``user_agent`` the name that meta elements and these headers may address.
    """
    text, charset = decode(body, content_type=content_type, default_charset=default_charset)
    return parse_page(
        text,
        url=url,
        charset=charset,
        default_language=default_language,
        robots_headers=robots_headers,
        user_agent=user_agent,
    )


def parse_page(
    text: str,
    *,
    url: str,
    charset: str = "utf-8",
    default_language: str = "",
    robots_headers: Sequence[str] = (),
    user_agent: str = "",
) -> Page:
    """As ``parse_html``, for a body already decoded from ``charset``."""
    parser = parse_tree(text)
    nodes = _sort_nodes(parser)
    resolver = Resolver(base_of(nodes["bases"], url))
    links = extract_links(nodes["links"] + _links_without_scripts(nodes["silent"]), resolver).links
    metas, refresh, later = _read_metas(nodes["metas"], resolver, url)
    robots = robots_directives(metas=metas, headers=robots_headers, user_agent=user_agent, now=clock.now())
    fields = {name.strip().lower(): content for name, content in reversed(metas) if content.strip()}
    return Page(
        title=_title(nodes["titles"]),
        text=_text(parser, nodes),
        description=collapse(fields.get("description", "")),
        author=collapse(fields.get("author") or fields.get("dc.creator", "")),
        subject=collapse(fields.get("subject") or fields.get("dc.subject", "")),
        language=_language(parser) or default_language,
        charset=charset,
        canonical=_canonical(nodes["relations"], resolver),
        refresh=refresh,
        noindex=robots.noindex,
        nofollow=robots.nofollow,
        links=links if later is None or any(link.url == later for link in links) else (*links, Link(later)),
    )


def _sort_nodes(parser: LexborHTMLParser) -> dict[str, list[LexborNode]]:
    """The nodes that matter by kind, each in document order: one walk, as walks are what costs."""
    nodes: dict[str, list[LexborNode]] = {kind: [] for kind in _KINDS}
    appends = {tag: nodes[kind].append for tag, kind in _KIND_OF_TAG.items()}

    def append_iframe(node: LexborNode) -> None:
        nodes["links"].append(node)
        nodes["silent"].append(node)

    appends[_IFRAME] = append_iframe
    find = appends.get
    root = parser.root
    if root is not None:
        for node in root.traverse():
            append = find(node.tag_id)
            if append is not None:
                append(node)
    return nodes


def _links_without_scripts(nodes: list[LexborNode]) -> list[LexborNode]:
    """The links within noscript elements among ``nodes``: text to this parse, markup to who has no scripts."""
    content = " ".join(text for node in nodes if node.tag == "noscript" and "<" in (text := node.text()))
    return _sort_nodes(parse_tree(content))["links"] if content else []


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
        elif refresh is None and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            read = parse_refresh(content)
            target = resolver.resolve(read.url) if read is not None and read.url else None
            if read is None or target is None or target == url:
                continue
            if read.seconds <= MAX_REFRESH_SECONDS:
                refresh = target
            else:
                later = target
    return metas, refresh, later


def _title(nodes: list[LexborNode]) -> str:
    """The text of the first title element that isn't a drawing's."""
    for node in nodes:
        parent = node.parent
        if parent is None or parent.tag in {"head", "body", "html"}:
            return collapse(node.text())
    return ""


def _canonical(nodes: list[LexborNode], resolver: Resolver) -> str | None:
    """The first canonical link that is an http(s) URL (RFC 6596)."""
    for node in nodes:
        attributes = node.attributes
        href = attributes.get("href")
        if href and "canonical" in (attributes.get("rel") or "").lower().split():
            target = resolver.resolve(href)
            if target is not None:
                return target
    return None


def _language(parser: LexborHTMLParser) -> str:
    """The language tag of the html element in lower case with hyphens, or empty."""
    root = parser.root
    if root is None:
        return ""
    attributes = root.attributes
    value = (attributes.get("lang") or attributes.get("xml:lang") or "").strip()
    return value.replace("_", "-").lower() if _LANGUAGE.fullmatch(value) else ""


def _text(parser: LexborHTMLParser, nodes: dict[str, list[LexborNode]]) -> str:
    """What the body shows, a line a block. Changes the tree: read everything else first."""
    body = parser.body
    if body is None:
        return ""
    for node in nodes["items"]:
        node.insert_before(BLOCK_MARK)
    for node in nodes["blocks"]:
        node.insert_before(BLOCK_MARK)
        node.insert_after(BLOCK_MARK)
    # Backwards: a node is freed before the one that contains it.
    for node in reversed(nodes["silent"]):
        node.decompose()
    return collapse_blocks(body.text())
