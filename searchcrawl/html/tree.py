"""Parses a page with Lexbor, in linear time even if the page was made to take long (X-D4, X-R13)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from selectolax.lexbor import LexborHTMLParser

#: Browsers have the same limit; the time that Lexbor takes for a greater depth is quadratic.
MAX_DEPTH: Final = 512
#: Each new paragraph opens all open formatting elements again, so far fewer of them may be open.
MAX_FORMATTING: Final = 64
#: Pages with fewer opening tags are parsed quickly, whatever their nesting.
_HARMLESS_TAGS: Final = 8_000
_HARMLESS_DEPTH: Final = 3_000
_PIECE_CHARACTERS: Final = 16_384
#: More than a tag of any real page has.
MAX_ATTRIBUTES: Final = 1_000
_HARMLESS_CHARACTERS: Final = 16_384
_WINDOW: Final = 4_096
#: Tags with fewer attributes take at most half a second.
_HARMLESS_ATTRIBUTES: Final = 10_000
_SHORTEST_ATTRIBUTE: Final = 6
#: If a page has more characters for each tag than this, it has so few tags that there is time to look at each.
_CHARACTERS_A_TAG: Final = 40
_ATTRIBUTE: Final = r"[\s/]*+(?:=[^\s/=>]*+|[^\s/=>]++)(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+"
# The name of the tag counts as the first attribute.
_ATTRIBUTES: Final = re.compile(
    rf"(<(?=[a-z])(?:{_ATTRIBUTE}){{1,{MAX_ATTRIBUTES}}}+)(?:{_ATTRIBUTE})*+", re.IGNORECASE
)

# A tag up to a quoted ">", or up to text that a parser may read in another way; it never goes beyond a ">".
_PLAIN_ATTRIBUTE: Final = (
    r"[\s/]*+[^\s/>\"'=]++(?:\s*+=\s*+(?:\"[^\">]*+\"(?=[\s/>])|'[^'>]*+'(?=[\s/>])|[^\s>\"'=]*+))?+"
)
_HIDDEN_END: Final = re.compile(
    rf"<(?=[a-z])(?:[^\s/>\"'=]++(?=[\s/>])(?:{_PLAIN_ATTRIBUTE})*+)?+[\s/]*+[^>]", re.IGNORECASE
)

#: For each option of a select, Lexbor looks at all the others: so many take a fifth of a second.
_HARMLESS_OPTIONS: Final = 4_000
_OPTION: Final = re.compile(r"<option[\s/>]", re.IGNORECASE)
_SELECT: Final = re.compile(r"<(/?)select(?=[\s/>])", re.IGNORECASE)

_FORMATTING: Final = frozenset(
    ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
)
# Elements whose content has no tags.
_RAW_TEXT: Final = frozenset(
    ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript", "plaintext"]
)
# Elements that do not nest: void elements, those that a sibling closes, and ``a``, which closes itself.
_FLAT_NAMES: Final = "a area base br col dd dt embed frame hr img input li link meta option p param source td th tr wbr"
_FLAT: Final = frozenset(_FLAT_NAMES.split())
_NOT_FLAT: Final = rf"(?!(?:{'|'.join(_FLAT_NAMES.split())})[\s/>])"
_TAG: Final = re.compile(rf"<(?:(!--)|(/?){_NOT_FLAT}([a-z][^\s/>]*))", re.IGNORECASE)
_NAME: Final = re.compile(r"<(/?[a-zA-Z][^\s/>]*+)")


def parse_tree(text: str, *, utf8: bytes | None = None) -> LexborHTMLParser:
    """The tree of a page, without the opening tags that are nested too deep; their content stays.

    ``utf8`` is ``text`` in UTF-8, where the caller has it. The page is parsed as by a browser that runs scripts,
    where the content of noscript is text: as markup, an element in it that is not closed would contain the rest of
    the page.
    """
    capped = text
    if len(text) > _HARMLESS_CHARACTERS:
        # Counted once for all checks: for a large page it takes as long as everything else here.
        tags = text.count("<")
        capped = cap_attributes(text, tags=tags)
        if tags > _HARMLESS_OPTIONS:
            capped = replace_selects(capped)
        if tags > _HARMLESS_TAGS and tags - capped.count("</") > _HARMLESS_TAGS and may_be_deep(capped):
            capped = cap_depth(capped)
    return LexborHTMLParser(capped if utf8 is None or capped is not text else utf8, scripting=True)


def cap_attributes(text: str, *, tags: int) -> str:
    """``text`` with at most MAX_ATTRIBUTES attributes a tag (more take quadratic time); ``tags`` is its number of ``<``."""
    return _ATTRIBUTES.sub(r"\1", text) if _may_have_too_many_attributes(text, tags) else text


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
    return _HIDDEN_END.search(text) is not None


def replace_selects(text: str) -> str:
    """``text`` with menu elements instead of selects where there are too many options (they take quadratic time)."""
    return _SELECT.sub(r"<\1menu", text) if len(_OPTION.findall(text)) > _HARMLESS_OPTIONS else text


def may_be_deep(text: str) -> bool:
    """Whether more elements may be open at once than a real page has; counted piece by piece of the text."""
    still_open: Counter[str] = Counter()
    for start in range(0, len(text), _PIECE_CHARACTERS):
        opened: Counter[str] = Counter()
        closed: Counter[str] = Counter()
        # A piece has few different names, so it is cheaper to find all tags than only those that nest.
        for name, count in Counter(_NAME.findall(text, start, start + _PIECE_CHARACTERS)).items():
            bare = name.lstrip("/").lower()
            if bare not in _FLAT:
                (closed if name[0] == "/" else opened)[bare] += count
        if still_open.total() + opened.total() > _HARMLESS_DEPTH:
            return True
        still_open = still_open + opened - closed
    return False


def cap_depth(text: str) -> str:
    """``text`` without the tags that are nested deeper than MAX_DEPTH; the same text where there are none.

    It is one pass over the text that knows comments and raw text, and counts open elements by name only. A tag that is
    dropped by mistake changes the structure, never the text or the links.
    """
    return _Scan(text).run()


class _Scan:
    """The state of one scan: the open elements, the dropped ones, and the pieces of text that are kept."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._depth = 0
        self._formatting = 0
        self._kept: list[str] = []
        self._kept_to = 0

    def run(self) -> str:
        search = _TAG.search
        match = search(self._text)
        while match is not None:
            comment, slash, name = match.groups()
            position = match.end()
            if comment:
                position = self._find_after("-->", position - 2)
            elif slash:
                self._close(name.lower(), match.start(), position)
            else:
                position = self._start(name.lower(), match.start(), position)
            match = search(self._text, position)
        if not self._kept:
            return self._text
        self._kept.append(self._text[self._kept_to :])
        return " ".join(self._kept)

    def _find_after(self, mark: str, position: int) -> int:
        end = self._text.find(mark, position)
        return len(self._text) if end < 0 else end + len(mark)

    def _start(self, name: str, start: int, position: int) -> int:
        if name in _RAW_TEXT:
            return self._find_raw_end(name, position)
        formatting = name in _FORMATTING
        if self._depth >= MAX_DEPTH or (formatting and self._formatting >= MAX_FORMATTING):
            self._dropped[name] = self._dropped.get(name, 0) + 1
            return self._drop(start, position)
        self._open[name] = self._open.get(name, 0) + 1
        self._depth += 1
        self._formatting += formatting
        return position

    def _close(self, name: str, start: int, position: int) -> None:
        if self._dropped.get(name, 0):
            self._dropped[name] -= 1
            self._drop(start, position)
        elif self._open.get(name, 0):
            self._open[name] -= 1
            self._depth -= 1
            self._formatting -= name in _FORMATTING

    def _drop(self, start: int, position: int) -> int:
        end = self._find_after(">", position)
        self._kept.append(self._text[self._kept_to : start])
        self._kept_to = end
        return end

    def _find_raw_end(self, name: str, position: int) -> int:
        """Where the content of a raw text element ends: at its end tag, or at the end of the page."""
        end = re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(self._text, position)
        return len(self._text) if end is None else end.start() + 2
