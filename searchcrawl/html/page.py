"""A page: its fields, text and links from one parse (A5, A8, B10, C9).

The texts of links in the main text are for the pages that they lead to (C8, G2). While the tree is walked, each link gets a
mark before it and another one after it; in the text of the page the number of those before says which link it is. A page
that writes such marks itself has no texts of links, or wrong ones of its own links.
"""

from __future__ import annotations

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl import clock
from searchcrawl.html import regions, tags
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.fields import (
    cut_head,
    is_whole_head,
    normalise_language,
    read_attributes,
    read_page_language,
    read_spoken,
)
from searchcrawl.html.headings import add_names, mark_heading, remove_marks, take_headings
from searchcrawl.html.links import (
    LOCAL,
    Reference,
    Resolver,
    add_texts,
    extract_links,
    find_base,
    read_embedded,
    read_reference,
    read_relations,
)
from searchcrawl.html.main_text import PageTexts, choose_text, unite_links
from searchcrawl.html.metas import MAX_REFRESH_SECONDS, parse_refresh, read_robots_directives
from searchcrawl.html.page_text import BLOCK_MARK, collapse, collapse_value, cut_words
from searchcrawl.html.pieces import join_pieces
from searchcrawl.html.regions import (
    LINK_BEGIN,
    LINK_END,
    MARK,
    PRINTABLE_KINDS,
    drops_any,
    find_chosen,
    find_region,
    has_switches,
    mark_chosen,
    surround,
)
from searchcrawl.html.tags import TagKind, is_of_drawing
from searchcrawl.html.tree import PageTrees, parse_trees
from searchcrawl.items import Link, Page, copy_with

#: So many titles are looked at: drawings may have them as well.
_MOST_TITLES: Final = 100
_LANGUAGE_METAS: Final = ("content-language", "language", "dc.language", "dcterms.language")


# The methods for bytes alone: choosing the method by the type of the argument takes as long as the work itself.
_insert_before: Final = LexborNode.insert_before[bytes]  # type: ignore[index]
_insert_after: Final = LexborNode.insert_after[bytes]  # type: ignore[index]
_MARK: Final = BLOCK_MARK.encode()
_LINK_BEGIN, _LINK_END = regions.LINK_BEGIN.encode(), regions.LINK_END.encode()
_LOCAL_BEGIN, _LOCAL_END = regions.LOCAL_BEGIN.encode(), regions.LOCAL_END.encode()


def parse_html(body: bytes, context: ConversionContext) -> Page:
    """The page of ``body``; never raises."""
    decoded, charset = context.decode(body)
    text = _expand_if_xhtml(decoded, context)
    # The parser can take the body itself where decoding has replaced no character and removed no BOM.
    exact = charset == "utf-8" and text is decoded and "\ufffd" not in text and not body.startswith(BOM_UTF8)
    return parse_page(text, context, utf8=body if exact else None, charset=charset)


def parse_page(text: str, context: ConversionContext, *, utf8: bytes | None = None, charset: str = "utf-8") -> Page:
    """As ``parse_html``, for a body that was decoded from ``charset``; ``utf8`` is ``text`` in UTF-8, where there is one."""
    url, text_rules, routes = context.url, context.text_rules, context.routes
    trees = parse_trees(text, utf8=utf8)
    chosen = [find_chosen(tree, text_rules) for tree in trees.trees]
    found = _read_trees(trees.trees, with_regions=text_rules.main, routes=routes)
    resolver = Resolver(find_base(found.bases, url), charset, routes=routes)
    marked = len(found.references)  # those in noscript elements have no marks
    references = found.references + _read_noscripts(found.noscripts, routes=routes)
    page_links = extract_links(references, resolver)
    reader = _FieldsReader(context, charset)
    # A tree that has lost its nesting may have lost markup in values, too.
    of_head = reader.read_head(text) if trees.is_flat else None
    page, later = of_head or reader.read(trees.trees[0], found, resolver)
    # At last: it removes the scripts.
    with_switches = has_switches(text)
    for tree, elements in zip(trees.trees, chosen, strict=True):
        mark_chosen(tree, elements, with_switches=with_switches)
    texts, link_texts = _read_texts(trees, found.silent, main=text_rules.main, links=marked)
    spoken = read_spoken([node for each in chosen for node in each.spoken], texts.indexed)
    links = add_texts(page_links, references, link_texts, url=url) if link_texts else page_links.links
    indexed, headings = take_headings(texts.indexed, found.names)
    whole = texts.whole if texts.whole != texts.indexed else ""
    # What may not be indexed names no page either.
    if whole and not headings.naming and not (with_switches or text_rules.keep or any(map(drops_any, chosen))):
        headings = add_names(headings, whole)
    whole = remove_marks(whole)
    return copy_with(
        page,
        language=spoken.main or page.language,
        parts=spoken.parts,
        text=indexed,
        whole=whole,
        whole_digest=hashlib.sha256(whole.encode()).hexdigest() if whole else "",
        headings=headings.texts,
        naming=headings.naming,
        fallback=texts.fallback,
        links=links if later is None or any(link.url == later for link in links) else (*links, Link(later)),
        malformed=page_links.malformed,
    )


def parse_head(body: bytes, context: ConversionContext, known_text: str) -> Page | None:
    """As ``parse_html`` for a body of which the text is known, in a third of the time; the page has no ``links``.

    None where what comes after the head may have more than text: the whole body has to be parsed.
    """
    text, charset = context.decode(body)
    text = _expand_if_xhtml(text, context)
    reader = _FieldsReader(context, charset)
    found = reader.read_head(text, languages=True)
    return None if found is None else copy_with(found[0], text=known_text)


@dataclass(slots=True, kw_only=True)
class _Elements:
    """What is found in a tree, each list in document order; ``noscripts`` are the contents of noscript elements.

    ``silent`` are the elements whose content is not shown, ``names`` those that headings and terms have.
    """

    references: list[Reference] = field(default_factory=list)
    metas: list[LexborNode] = field(default_factory=list)
    relations: list[LexborNode] = field(default_factory=list)
    bases: list[LexborNode] = field(default_factory=list)
    title: str | None = None
    titles: int = 0
    noscripts: list[str] = field(default_factory=list)
    silent: list[LexborNode] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, node: LexborNode, tag: int) -> None:
        """Adds an element that is neither a block nor a plain link."""
        if tag == tags.META:
            self.metas.append(node)
        elif tag == tags.LINK:
            self.relations.append(node)
        elif tag == tags.BASE:
            self.bases.append(node)
        elif tag == tags.TITLE:
            self._add_title(node)
        elif tag in tags.UNSHOWN:
            # There may be links in it, which have their marks.
            surround(node, regions.DROPPED)
        elif tag in tags.EMBEDDING:
            if (reference := read_embedded(node)) is not None:
                self.references.append(reference)
                # What is in it is no text of a link: it is shown where the target is not.
                _insert_before(node, _LINK_BEGIN)
                _insert_before(node, _LINK_END)
        else:
            self.silent.append(node)
            if tag == tags.NOSCRIPT:
                self.noscripts.append(node.text())
            elif tag == tags.IFRAME and (reference := read_reference(node)) is not None and reference is not LOCAL:
                self.references.append(reference)
                _insert_before(node, _LINK_BEGIN)
                _insert_after(node, _LINK_END)

    def _add_title(self, node: LexborNode) -> None:
        """The first title in the document that is none of a drawing is that of the page (HTML Standard, "the title element")."""
        self.titles += 1
        if self.titles > _MOST_TITLES or is_of_drawing(node):
            return
        if self.title is None:
            self.title = node.text()
        parent = node.parent
        if parent is not None and parent.tag_id != tags.HEAD:
            # Browsers show none of them in the page, wherever they stand.
            self.silent.append(node)


def _read_trees(trees: Iterable[LexborHTMLParser], *, with_regions: bool = False, routes: bool = False) -> _Elements:
    """Reads everything but the text, and puts marks between the blocks of the text, around its links, and around its regions if asked."""
    found = _Elements()
    for tree in trees:
        _read_tree(tree, found, with_regions=with_regions, routes=routes)
    return found


def _read_tree(parser: LexborHTMLParser, found: _Elements, *, with_regions: bool, routes: bool) -> None:
    """It is one walk that keeps few nodes, because the walk and each node kept are what takes time."""
    references = found.references
    kind_of = (tags.KIND_WITH_REGIONS if with_regions else tags.KIND_OF_TAG).get
    # Local names, because members of an enum are slow to look up.
    block, item, link, region, heading = TagKind.BLOCK, TagKind.ITEM, TagKind.LINK, TagKind.REGION, TagKind.HEADING
    root = parser.root
    for node in root.traverse() if root is not None else ():
        kind = kind_of(node.tag_id)
        if kind is None:
            continue
        if kind is link:
            reference = read_reference(node, routes=routes)
            if reference is LOCAL:
                _insert_before(node, _LOCAL_BEGIN)
                _insert_after(node, _LOCAL_END)
            elif reference is not None:
                references.append(reference)
                _insert_before(node, _LINK_BEGIN)
                _insert_after(node, _LINK_END)
        elif kind is item:
            _insert_before(node, _MARK)
        elif kind is block:
            _insert_before(node, _MARK)
            _insert_after(node, _MARK)
        elif kind is region:
            marks = find_region(tags.REGION_OF_TAG[node.tag_id], node)
            if marks is None:
                _insert_before(node, _MARK)
                _insert_after(node, _MARK)
            elif marks is regions.TITLED:
                mark_heading(node, tags.H2, found.names)
            else:
                surround(node, marks)
        elif kind is heading:
            mark_heading(node, node.tag_id, found.names)
        else:
            found.add(node, node.tag_id)


class _FieldsReader(NamedTuple):
    """Reads the fields of a page, which was decoded from ``charset``: all but text and links."""

    context: ConversionContext
    charset: str

    def read_head(self, text: str, *, languages: bool = False) -> tuple[Page, str | None] | None:
        """As ``read``, from the head of a page alone; None where a field may come after it.

        ``languages``: so may those of elements.
        """
        scripts = any(origin.startswith("jsonld:") for origin in self.context.attribute_origins)
        head = cut_head(text, scripts=scripts, languages=languages)
        parser = None if head is None else LexborHTMLParser(head, scripting=True)
        if parser is None or not is_whole_head(parser):
            return None
        found = _read_trees([parser])
        if found.title is None:
            return None
        return self.read(
            parser, found, Resolver(find_base(found.bases, self.context.url), self.charset, routes=self.context.routes)
        )

    def read(self, parser: LexborHTMLParser, found: _Elements, resolver: Resolver) -> tuple[Page, str | None]:
        """The page without text and links, and the target of a refresh that comes too late to be a redirect."""
        attributes = [node.attributes for node in found.metas]
        metas, refresh, later = _read_metas(attributes, resolver, self.context.url)
        robots = read_robots_directives(
            metas=metas, headers=self.context.robots_tags, user_agent=self.context.user_agent, now=clock.now()
        )
        fields = {name.strip().lower(): content for name, content in reversed(metas) if content.strip()}
        origins = self.context.attribute_origins
        canonical, feeds = read_relations(found.relations, resolver)
        page = Page(
            title=collapse_value(found.title or ""),
            found=read_attributes(attributes, found.silent, origins) if origins else (),
            description=collapse_value(fields.get("description", "")),
            author=collapse_value(fields.get("author") or fields.get("dc.creator", "")),
            subject=collapse_value(fields.get("subject") or fields.get("dc.subject", "")),
            language=read_page_language(parser)
            or normalise_language(next((fields[name] for name in _LANGUAGE_METAS if name in fields), "")),
            charset=self.charset,
            canonical=canonical,
            feeds=feeds,
            refresh=refresh,
            **robots._asdict(),
        )
        return page, later


def _read_noscripts(contents: list[str], *, routes: bool) -> list[Reference]:
    """The references in noscript elements: this parser reads their content as text, a browser without scripts as markup."""
    content = " ".join(text for text in contents if "<" in text)
    return _read_trees(parse_trees(content).trees, routes=routes).references if content else []


def _read_metas(
    elements: Sequence[Mapping[str, str | None]], resolver: Resolver, url: str
) -> tuple[list[tuple[str, str]], str | None, str | None]:
    """Names and contents; the target of a refresh; the target of a refresh that comes too late to be a redirect.

    ``elements`` are the attributes of the meta elements.
    """
    metas: list[tuple[str, str]] = []
    refresh = later = None
    for attributes in elements:
        content = attributes.get("content") or ""
        name = attributes.get("name")
        if name:
            metas.append((name, content))
        pragma = (attributes.get("http-equiv") or "").strip().lower()
        if pragma == "content-language" and not name:
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


def _read_texts(
    trees: PageTrees, silent: list[LexborNode], *, main: bool, links: int
) -> tuple[PageTexts, list[tuple[int, str]]]:
    """What the body shows, one line for each block, and the texts of links by number; ``links`` of them were marked.

    It changes the trees, so all else is read before.
    """
    # Backwards, so that a node is freed before the one that contains it.
    for node in reversed(silent):
        node.decompose()
    bodies = [body.text() for tree in trees.trees if (body := tree.body) is not None]
    marked = join_pieces(bodies)
    united, marked = unite_links(marked) if regions.LOCAL in marked else (marked, marked)
    texts = choose_text(united, main=main)
    return texts, read_link_texts(marked, texts.lengths, links)


_VOID: Final = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
#: No value in XML has a "<", and each is quoted.
_EMPTY: Final = re.compile(
    rf"""<(?!(?:{_VOID})[\s/])([A-Za-z][^\s<>/]*+)"""
    r"""((?>\s++[^\s<>=/"']++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+)\s*+/>"""
)


def _expand_if_xhtml(text: str, context: ConversionContext) -> str:
    """``text`` as ``expand_empty`` changes it where a browser reads the body as XML."""
    return expand_empty(text) if context.content_type[:21].lower() == "application/xhtml+xml" else text


def expand_empty(text: str) -> str:
    """``text`` with end tags for elements that XML closes where they begin: an empty title or script would have all that follows."""
    return _EMPTY.sub(r"<\1\2></\1>", text) if "/>" in text else text


#: So many texts of a page are read, and so many characters of each.
_MOST_TEXTS: Final = 1_000
_MOST_CHARACTERS: Final = 120
#: In so many characters as they are written, blanks among them, these have to be.
_MOST_WRITTEN: Final = 500
_LETTER: Final = re.compile(r"[^\W\d_]")
#: A text that is an address says nothing that the link doesn't.
_ADDRESS: Final = re.compile(r"[a-z][a-z+.-]*://|www\.|mailto:", re.IGNORECASE)


def read_link_texts(marked: str, lengths: Sequence[int], links: int) -> list[tuple[int, str]]:
    """Numbers and texts of the links in what is indexed of a page, in document order.

    ``marked`` is its text with all marks, ``lengths`` are above 0 for those of its segments that are indexed, ``links`` is
    how many links were marked.
    """
    if not links or not marked.count(LINK_BEGIN) == marked.count(LINK_END) == links:
        return []
    first, *parts = marked.split(MARK)
    segments = [first, *(part[1:] if part[:1] in PRINTABLE_KINDS else part for part in parts)]
    return list(islice(_read_segments(segments, lengths), _MOST_TEXTS))


def _read_segments(segments: Sequence[str], lengths: Sequence[int]) -> Iterator[tuple[int, str]]:
    number, is_open = -1, False
    # Many links of a page have the same text.
    cleaned: dict[str, str] = {}
    for segment, length in zip(segments, lengths, strict=False):
        for place, part in enumerate(segment.split(LINK_BEGIN)):
            if place:
                number, is_open = number + 1, True
            elif not is_open:
                continue
            # Without a mark of its own a segment may still be in a link as a whole.
            end = part.find(LINK_END)
            if length and end:
                written = part if end < 0 else part[:end]
                text = cleaned.get(written)
                if text is None:
                    text = cleaned[written] = _clean(written)
                if text:
                    yield number, text
            # What is behind a link in a link is left out.
            is_open = end < 0


def _clean(written: str) -> str:
    """The text of a link in one line; empty where it says nothing."""
    text = " ".join(written[:_MOST_WRITTEN].replace(BLOCK_MARK, " ").split())
    if not text.isprintable():
        text = collapse(remove_marks(text))
    text = cut_words(text, _MOST_CHARACTERS)
    # Most begin with a letter, and have no sign of an address.
    if not text[:1].isalpha() and _LETTER.search(text) is None:
        return ""
    return "" if (":" in text or "." in text) and _ADDRESS.match(text) else text
