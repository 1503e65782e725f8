"""One Lexbor parse a page, safe against deep nesting (X-D4, X-R13)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from selectolax.lexbor import LexborHTMLParser

#: Browsers stop nesting here too; Lexbor's cost is quadratic beyond.
MAX_DEPTH: Final = 512
#: Each new paragraph reopens all open formatting elements: far fewer of them may be open.
MAX_FORMATTING: Final = 64
#: Pages with fewer opening tags parse in no time however they nest.
_HARMLESS_TAGS: Final = 8_000
_HARMLESS_DEPTH: Final = 3_000
_STRETCH: Final = 16_384
#: More than any page has.
MAX_ATTRIBUTES: Final = 1_000
_HARMLESS_CHARACTERS: Final = 16_384
_WINDOW: Final = 4_096
#: Tags with fewer attributes parse in half a second.
_HARMLESS_ATTRIBUTES: Final = 10_000
_SHORTEST_ATTRIBUTE: Final = 6
#: More, and there are so few tags that each may be looked at.
_CHARACTERS_A_TAG: Final = 40
_ATTRIBUTE: Final = r"[\s/]*+(?:=[^\s/=>]*+|[^\s/=>]++)(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?+"
# The name of the tag counts as the first.
_ATTRIBUTES: Final = re.compile(
    rf"(<(?=[a-z])(?:{_ATTRIBUTE}){{1,{MAX_ATTRIBUTES}}}+)(?:{_ATTRIBUTE})*+", re.IGNORECASE
)

# A tag up to a quoted ">", or to what a parser may read in another way than this does: never past a ">".
_PLAIN_ATTRIBUTE: Final = (
    r"[\s/]*+[^\s/>\"'=]++(?:\s*+=\s*+(?:\"[^\">]*+\"(?=[\s/>])|'[^'>]*+'(?=[\s/>])|[^\s>\"'=]*+))?+"
)
_HIDDEN_END: Final = re.compile(
    rf"<(?=[a-z])(?:[^\s/>\"'=]++(?=[\s/>])(?:{_PLAIN_ATTRIBUTE})*+)?+[\s/]*+[^>]", re.IGNORECASE
)

#: Each option of a select makes Lexbor look at all the others: so many take a fifth of a second.
_HARMLESS_OPTIONS: Final = 4_000
_OPTION: Final = re.compile(r"<option[\s/>]", re.IGNORECASE)
_SELECT: Final = re.compile(r"<(/?)select(?=[\s/>])", re.IGNORECASE)

_FORMATTING: Final = frozenset(
    ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"]
)
# Their content has no tags.
_RAW_TEXT: Final = frozenset(
    ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript", "plaintext"]
)
# Left out: void elements, those a sibling closes, and a (it closes itself, and is wanted).
_FLAT_NAMES: Final = "a area base br col dd dt embed frame hr img input li link meta option p param source td th tr wbr"
_FLAT: Final = frozenset(_FLAT_NAMES.split())
_NOT_FLAT: Final = rf"(?!(?:{'|'.join(_FLAT_NAMES.split())})[\s/>])"
_TAG: Final = re.compile(rf"<(?:(!--)|(/?){_NOT_FLAT}([a-z][^\s/>]*))", re.IGNORECASE)
_NAME: Final = re.compile(r"<(/?[a-zA-Z][^\s/>]*+)")


def parse_tree(text: str, *, utf8: bytes | None = None) -> LexborHTMLParser:
    """The tree of a page; opening tags too deep to matter are left out, their content stays.

    ``utf8`` is ``text`` in UTF-8 where that is at hand: it need not be made again. Parsed as by a
    browser that runs scripts: the content of noscript is text. As markup, an unclosed element in
    it would swallow the rest of the page.
    """
    capped = text
    if len(text) > _HARMLESS_CHARACTERS:
        # Once for all that asks: on a large page it takes as long as everything else here.
        tags = text.count("<")
        capped = cap_attributes(text, tags=tags)
        if tags > _HARMLESS_OPTIONS:
            capped = open_selects(capped)
        if tags > _HARMLESS_TAGS and tags - capped.count("</") > _HARMLESS_TAGS and may_be_deep(capped):
            capped = cap_depth(capped)
    return LexborHTMLParser(capped if utf8 is None or capped is not text else utf8, scripting=True)


def cap_attributes(text: str, *, tags: int) -> str:
    """``text``, with so many ``<``, with the tags cut that carry more than MAX_ATTRIBUTES (their cost is quadratic)."""
    return _ATTRIBUTES.sub(r"\1", text) if _may_be_crowded(text, tags) else text


def _may_be_crowded(text: str, tags: int) -> bool:
    """Whether a tag may have too many attributes: it is long, so a window in it lacks ``>``.

    Or ``>`` is in quoted values: then there are many of these, or few tags.
    """
    if any(text.find(">", start, start + _WINDOW) < 0 for start in range(0, len(text) - _WINDOW, _WINDOW)):
        return True
    if len(text) <= _SHORTEST_ATTRIBUTE * _HARMLESS_ATTRIBUTES:
        return False
    many = len(text) > _CHARACTERS_A_TAG * tags or text.count("=") > _HARMLESS_ATTRIBUTES
    return many and hides_an_end(text)


def hides_an_end(text: str) -> bool:
    """Whether a ">" may be inside a quoted value; False only where each one ends its tag, or is text."""
    return _HIDDEN_END.search(text) is not None


def open_selects(text: str) -> str:
    """``text`` with select elements as lists where they have too many options (their cost is quadratic)."""
    return _SELECT.sub(r"<\1menu", text) if len(_OPTION.findall(text)) > _HARMLESS_OPTIONS else text


def may_be_deep(text: str) -> bool:
    """Whether more elements than a page needs may be open at once, judged a stretch of text at a time."""
    still_open: Counter[str] = Counter()
    for start in range(0, len(text), _STRETCH):
        opened: Counter[str] = Counter()
        closed: Counter[str] = Counter()
        # A stretch has few names: to sort them out afterwards is cheaper than to look for some only.
        for name, count in Counter(_NAME.findall(text, start, start + _STRETCH)).items():
            bare = name.lstrip("/").lower()
            if bare not in _FLAT:
                (closed if name[0] == "/" else opened)[bare] += count
        if still_open.total() + opened.total() > _HARMLESS_DEPTH:
            return True
        still_open = still_open + opened - closed
    return False


def cap_depth(text: str) -> str:
    """``text`` without the tags that nest deeper than MAX_DEPTH; itself where there are none.

    A linear scan that knows comments and raw text, and counts what is open by name only: tags
    dropped in error cost structure, never text or links.
    """
    return _Scan(text).run()


class _Scan:
    """The state of one scan: what is open, what was dropped, and the pieces kept."""

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
                position = self._after("-->", position - 2)
            elif slash:
                self._close(name.lower(), match.start(), position)
            else:
                position = self._start(name.lower(), match.start(), position)
            match = search(self._text, position)
        if not self._kept:
            return self._text
        self._kept.append(self._text[self._kept_to :])
        return " ".join(self._kept)

    def _after(self, mark: str, position: int) -> int:
        end = self._text.find(mark, position)
        return len(self._text) if end < 0 else end + len(mark)

    def _start(self, name: str, start: int, position: int) -> int:
        if name in _RAW_TEXT:
            return self._after_raw(name, position)
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
        end = self._after(">", position)
        self._kept.append(self._text[self._kept_to : start])
        self._kept_to = end
        return end

    def _after_raw(self, name: str, position: int) -> int:
        """Where the content of a raw text element ends: at its end tag, or with the page."""
        end = re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(self._text, position)
        return len(self._text) if end is None else end.start() + 2
