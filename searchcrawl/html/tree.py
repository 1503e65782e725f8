"""Parses a page with Lexbor, in linear time even if the page was made to take long (X-D4, X-R13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html.attribute_cap import MAX_NAMES, end_long_tags
from searchcrawl.html.byte_pattern import compile_bytes
from searchcrawl.html.flat_markup import flatten
from searchcrawl.html.parse_cost import HARMLESS_TAGS, MAX_REOPENED, count_reopened, has_many_roots
from searchcrawl.html.pieces import parse_pieces

#: For a tag a parser looks at each open element, for an option at each other one: so many take 50 ms.
MOST_NESTED_TAGS: Final = 3_500
#: Where a parser ignores tags with attributes it copies the text before them: so many characters times tags take 0.1 GB.
_MOST_COPIED: Final = 500_000_000
_HARMLESS_CHARACTERS: Final = 16_384
_WINDOW: Final = 4_096
#: Tags with fewer attributes take at most half a second.
_HARMLESS_ATTRIBUTES: Final = 10_000
_SHORTEST_ATTRIBUTE: Final = 6
#: In a page with fewer characters, comparing names of attributes takes a few seconds at most, in a worker.
_HARMLESS_NAMES: Final = 1_000_000
#: So many formatting elements, and so many more for each tag, may be opened anew in a page that is parsed in pieces.
_REOPENED: Final = 100_000
_REOPENED_A_TAG: Final = 4
#: If a page has more characters for each tag than this, it has so few tags that there is time to look at each.
_CHARACTERS_A_TAG: Final = 40

# A tag up to a quoted ">", or up to text that a parser may read in another way; it never goes beyond a ">".
_PLAIN_ATTRIBUTE: Final = (
    r"[\s/]*+[^\s/>\"'=]++(?>\s*+=\s*+(?:\"[^\">]*+\"(?=[\s/>])|'[^'>]*+'(?=[\s/>])|[^\s>\"'=]*+))?+"
)
#: What a ">" in a quoted value comes after. It takes a tenth of the time of the pattern below, and few pages have it.
_QUOTED_END: Final = compile_bytes(r"""=[\t\n\f\r ]*(?:"[^">]*>|'[^'>]*>)""")
_HIDDEN_END: Final = re.compile(
    rf"<(?=[a-z])(?>[^\s/>\"'=]++(?=[\s/>])(?>{_PLAIN_ATTRIBUTE})*+)?+[\s/]*+[^>]", re.IGNORECASE
)


def parse_tree(text: str, *, utf8: bytes | None = None) -> LexborHTMLParser:
    """The tree of a page; that of a page with many tags has links, fields and text, but not what contains them.

    ``utf8`` is ``text`` in UTF-8, where the caller has it. The page is parsed as by a browser that runs scripts,
    where the content of noscript is text: as markup, an element in it that is not closed would contain the rest of
    the page.
    """
    tags = text.count("<")
    cheap = text
    if len(text) > _HARMLESS_CHARACTERS:
        cheap = cap_attributes(text, tags=tags)
    if tags > MOST_NESTED_TAGS or tags * len(text) > _MOST_COPIED:
        cheap = flatten(cheap)
    elif len(text) > _HARMLESS_CHARACTERS or tags > HARMLESS_TAGS:
        raw = cheap.encode("utf-8", "ignore") if utf8 is None or cheap is not text else utf8
        if count_reopened(raw, tags=tags) > MAX_REOPENED or has_many_roots(raw):
            cheap = flatten(cheap)
    return LexborHTMLParser(cheap if utf8 is None or cheap is not text else utf8, scripting=True)


class PageTrees(NamedTuple):
    """A page as one tree or, where that would take too long, as one for each of its pieces, in their order.

    With ``is_flat`` it is one without nesting: its elements lack what contains them.
    """

    trees: Sequence[LexborHTMLParser]
    is_flat: bool = False


def parse_trees(text: str, *, utf8: bytes | None = None) -> PageTrees:
    """As ``parse_tree``; a page with many tags keeps its nesting, as far as it can be parsed in pieces (``html.pieces``)."""
    tags = text.count("<")
    if len(text) <= _HARMLESS_CHARACTERS and tags <= HARMLESS_TAGS:
        return PageTrees([LexborHTMLParser(text if utf8 is None else utf8, scripting=True)])
    capped = end_long_tags(text) if _may_have_too_many_attributes(text, tags) else text
    raw = capped.encode("utf-8", "ignore") if utf8 is None or capped is not text else utf8
    if has_many_roots(raw):
        return PageTrees([parse_tree(text)], True)
    if tags <= MOST_NESTED_TAGS and _is_harmless(raw, tags):
        return PageTrees([LexborHTMLParser(raw, scripting=True)])
    pieces = parse_pieces(raw, tags=tags, is_harmless=_Budget(_REOPENED + tags * _REOPENED_A_TAG).allows)
    return PageTrees([parse_tree(text)], True) if pieces is None else PageTrees(pieces)


def _is_harmless(raw: bytes, tags: int) -> bool:
    """Whether a page or a piece of one (in UTF-8, with so many tags) is parsed quickly, if its nesting is."""
    return _has_little_text(raw, tags) and count_reopened(raw, tags=tags) <= MAX_REOPENED


def _has_little_text(raw: bytes, tags: int) -> bool:
    return tags * len(raw) <= _MOST_COPIED and len(raw) <= _HARMLESS_NAMES


class _Budget:
    """So many formatting elements may be opened anew in all pieces of a page."""

    def __init__(self, reopened: int) -> None:
        self._left = reopened

    def allows(self, piece: bytes, tags: int) -> bool:
        """Whether a piece (in UTF-8, with so many tags) is parsed quickly; then it counts."""
        if not _has_little_text(piece, tags):
            return False
        reopened = count_reopened(piece, tags=tags)
        if reopened > min(MAX_REOPENED, self._left):
            return False
        self._left -= reopened
        return True


def cap_attributes(text: str, *, tags: int) -> str:
    """``text`` with as many attributes as take no quadratic time; ``tags`` is its number of ``<``."""
    if len(text) > _HARMLESS_NAMES:
        return end_long_tags(text, names=MAX_NAMES)
    return end_long_tags(text) if _may_have_too_many_attributes(text, tags) else text


def _may_have_too_many_attributes(text: str, tags: int) -> bool:
    """Whether a tag may have too many attributes.

    Such a tag is long: either a whole window of the text is without ``>``, or there are ``>`` in quoted values, which
    means many ``=`` or few tags.
    """
    if any(text.find(">", start, start + _WINDOW) < 0 for start in range(0, len(text) - _WINDOW, _WINDOW)):
        return True
    if len(text) <= _SHORTEST_ATTRIBUTE * _HARMLESS_ATTRIBUTES:
        return False
    many = len(text) > _CHARACTERS_A_TAG * tags or text.count("=") > _HARMLESS_ATTRIBUTES
    return many and may_hide_end(text)


def may_hide_end(text: str) -> bool:
    """Whether a ">" may be inside a quoted value; False only where each one ends its tag, or is text."""
    if _QUOTED_END.search(text.encode("utf-8", "surrogatepass")) is None:
        return False
    return _HIDDEN_END.search(text) is not None
