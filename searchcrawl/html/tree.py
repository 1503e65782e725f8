"""Parses a page with Lexbor, in linear time even if the page was made to take long (X-D4, X-R13).

Tags that have too many attributes, which a parser compares with each other, are ended before. Whether a ``<`` begins a tag
only a parser knows: a comment, a script or a value may hide it, or seem to. So each one is taken for the beginning of a
tag, and what follows is read in all ways at once, state by state as a tokenizer would.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache, reduce
from operator import or_
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html.flat_markup import (
    HARMLESS_TAGS,
    MAX_REOPENED,
    compile_bytes,
    count_reopened,
    flatten,
    has_many_roots,
)
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


def parse_tree(text: str) -> LexborHTMLParser:
    """The tree of a page; that of a page with many tags has links, fields and text, but not what contains them.

    The page is parsed as by a browser that runs scripts, where the content of noscript is text: as markup, an element
    in it that is not closed would contain the rest of the page.
    """
    tags = text.count("<")
    cheap = text
    if len(text) > _HARMLESS_CHARACTERS:
        cheap = cap_attributes(text, tags=tags)
    if tags > MOST_NESTED_TAGS or tags * len(text) > _MOST_COPIED:
        cheap = flatten(cheap)
    elif len(text) > _HARMLESS_CHARACTERS or tags > HARMLESS_TAGS:
        raw = cheap.encode("utf-8", "ignore")
        if count_reopened(raw, tags=tags) > MAX_REOPENED or has_many_roots(raw):
            cheap = flatten(cheap)
    return LexborHTMLParser(cheap, scripting=True)


class PageTrees(NamedTuple):
    """A page as one tree or, where that would take too long, as one for each of its pieces, in their order.

    With ``is_flat`` it is one without nesting: its elements lack what contains them.
    """

    trees: Sequence[LexborHTMLParser]
    is_flat: bool = False


def parse_trees(text: str, *, utf8: bytes | None = None) -> PageTrees:
    """As ``parse_tree``; a page with many tags keeps its nesting, as far as it can be parsed in pieces (``html.pieces``).

    ``utf8`` is ``text`` in UTF-8, where the caller has it.
    """
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


#: More than a tag of any real page has.
MAX_ATTRIBUTES: Final = 1_000
#: A parser compares a new name with others; so many take a tenth of a second.
MAX_NAMES: Final = 10_000

# Where a tokenizer may be inside a tag (HTML standard, 13.2.5): in its name; before, in and after the name of an
# attribute; before a value, and in one of each kind.
_TAG, _BEFORE, _NAME, _AFTER, _VALUE, _BARE, _DOUBLE, _SINGLE = (1 << bit for bit in range(8))
_QUOTED: Final = _DOUBLE | _SINGLE
# Where each kind of token leads: from a tag's name, from before a name, and so on. 0: out of the tag.
_MOVES: Final = {
    "blank": (_BEFORE, _BEFORE, _AFTER, _AFTER, _VALUE, _BEFORE, _DOUBLE, _SINGLE),
    "slash": (_BEFORE, _BEFORE, _BEFORE, _BEFORE, _BARE, _BARE, _DOUBLE, _SINGLE),
    "equals": (_TAG, _NAME, _VALUE, _VALUE, _BARE, _BARE, _DOUBLE, _SINGLE),
    "double": (_TAG, _NAME, _NAME, _NAME, _DOUBLE, _BARE, _BEFORE, _SINGLE),
    "single": (_TAG, _NAME, _NAME, _NAME, _SINGLE, _BARE, _DOUBLE, _BEFORE),
    "end": (0, 0, 0, 0, 0, 0, _DOUBLE, _SINGLE),
    "other": (_TAG, _NAME, _NAME, _NAME, _BARE, _BARE, _DOUBLE, _SINGLE),
}
# A tag begins with the last two, wherever they stand.
_MOVES["start"], _MOVES["closing"] = _MOVES["other"], _MOVES["slash"]
_OPENS: Final = dict.fromkeys(("double", "single", "other", "start"), _BEFORE | _AFTER) | {"equals": _BEFORE}
_CLOSES: Final = frozenset({"blank", "slash", "closing", "equals", "end"})
_TOKEN: Final = re.compile(
    r"""(?P<blank>[\t\n\f\r ]+)|(?P<start><(?=[a-zA-Z]))|(?P<closing>(?<=<)/(?=[a-zA-Z]))|(?P<slash>/)|(?P<equals>=)"""
    r"""|(?P<double>")|(?P<single>')|(?P<end>>)|(?P<other><|[^\t\n\f\r /="'><]+)"""
)
_TEXT: Final = r"(?>[^<]++|<(?!/?[a-zA-Z]))"
# Tags in a value have no attributes: otherwise what follows has more readings than one.
_QUOTABLE: Final = r"""<(?!/?[a-zA-Z])|</?[a-zA-Z][^\t\n\f\r /<>"'=]*+>"""
_ATTRIBUTE: Final = (
    r"""[\t\n\f\r /]++([^\t\n\f\r /<>"'=]++)(?>[\t\n\f\r ]*+=[\t\n\f\r ]*+"""
    rf"""(?:"(?>[^"<]++|{_QUOTABLE})*+"(?=[\t\n\f\r />])|'(?>[^'<]++|{_QUOTABLE})*+'(?=[\t\n\f\r />])"""
    r"""|[^\t\n\f\r <>"'=]++|(?=>)))?+"""
)
# A tag of which there is but one reading, with up to so many attributes.
_PLAIN_TAG: Final = rf"(</?[a-zA-Z][^\t\n\f\r /<>]*+)(?>{_ATTRIBUTE}){{0,%d}}+[\t\n\f\r /]*+>"
_ATTRIBUTES: Final = re.compile(_ATTRIBUTE)
_TAGS: Final = re.compile(rf"</?[a-zA-Z][^\t\n\f\r /<>]*+((?>{_ATTRIBUTE.replace('([^', '(?:[^', 1)})++)")
_TEXTS: Final = re.compile(f"{_TEXT}*+")
#: What ends a tag, and no comment.
_END: Final = " >"


def end_long_tags(text: str, *, most: int = MAX_ATTRIBUTES, names: int | None = None) -> str:
    """``text`` with tags of at most ``most`` attributes; what is beyond becomes text.

    With ``names``, it has at most so many names of attributes as well.
    """
    places = [0, *_find_ends(text, most, names)]
    if len(places) == 1:
        return text
    parts = (text[start:end] for start, end in zip(places, [*places[1:], len(text)], strict=True))
    return _END.join(parts)


def _find_ends(text: str, most: int, names: int | None) -> Iterator[int]:
    """Where tags are to be ended."""
    place, known = 0, set[str]()
    # Expressions read what is plain in a tenth of the time.
    tag = re.compile(_PLAIN_TAG % most)
    plain = re.compile(f"(?>{_TEXT}|{tag.pattern})*+")
    while place < len(text):
        end = plain.match(text, place).end()  # type: ignore[union-attr]  # it matches everywhere
        if names is not None and not _note(_find_names(text, place, end), known, names):
            yield from _end_tags(text, place, end, tag, known, names)
        place = yield from _read_tags(text, end, most, names, known)


def _end_tags(text: str, place: int, end: int, tag: re.Pattern[str], known: set[str], names: int) -> Iterator[int]:
    """Where plain tags are to be ended that have too many names."""
    while place < end:
        place = _TEXTS.match(text, place).end()  # type: ignore[union-attr]  # it matches everywhere
        match = tag.match(text, place, end)
        if match is None:
            return
        if not _note(_ATTRIBUTES.findall(text, match.end(1), match.end()), known, names):
            yield match.end(1)
        place = match.end()


def _find_names(text: str, place: int, end: int) -> list[str]:
    """The names of attributes of plain tags; of tags that are alike once."""
    return _ATTRIBUTES.findall(">".join(set(_TAGS.findall(text, place, end))))


def _note(found: Iterable[str], known: set[str], names: int) -> bool:
    """Notes names of attributes; False, and notes none, if there were more than ``names`` then."""
    new = {name for name in found if name not in known}
    if len(known) + len(new) > names:
        return False
    known |= new
    return True


def _read_tags(text: str, start: int, most: int, names: int | None, known: set[str]) -> Generator[int, None, int]:
    """Reads from ``start`` to where no tokenizer can be in a tag; yields where tags are to be ended, and returns the end.

    ``states`` are all that a tokenizer may be in. The counters are the most attributes that the tag may have, by whether a
    quoted value is open.
    """
    tables = _build_tables()
    states, began, outside, double, single = 0, start, 0, 0, 0
    for match in _TOKEN.finditer(text, start):
        kind = match.lastgroup or ""
        if names is not None and states & _NAME and kind in _CLOSES:
            name = text[began : match.start()]
            if name not in known and not _note([name], known, names):
                states &= _QUOTED
                yield began
        if states & _OPENS.get(kind, 0):
            began = match.start()
            outside += 1
            if outside > most:
                states &= _QUOTED
                yield began
        if kind == "double":
            outside, double = _max_if(states, _DOUBLE, outside, double), _max_if(states, _VALUE, double, outside)
        elif kind == "single":
            outside, single = _max_if(states, _SINGLE, outside, single), _max_if(states, _VALUE, single, outside)
        states = tables[kind][states]
        if not states & ~_QUOTED:
            outside = 0
        if kind in {"start", "closing"}:
            states |= _TAG
        elif not states:
            return match.end()
    return len(text)


def _max_if(states: int, state: int, count: int, other: int) -> int:
    return max(count, other) if states & state else count


@cache
def _build_tables() -> dict[str, list[int]]:
    """For each kind of token: where it leads from each set of states."""
    return {
        kind: [
            reduce(or_, (state for bit, state in enumerate(moves) if states >> bit & 1), 0) for states in range(1 << 8)
        ]
        for kind, moves in _MOVES.items()
    }
