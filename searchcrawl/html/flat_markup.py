"""Whether a page would take a parser long, and markup without nesting for it: text, links and fields stay (X-R13).

At each new block a parser opens anew all formatting elements that the block before left open, so the tree grows with
their number times that of the blocks. Many html and body tags take long, too. All other work for a tag is at most a look
at each open element.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import re2

from searchcrawl.html import regions
from searchcrawl.html.page_text import BLOCK_MARK


def compile_bytes(pattern: str) -> Any:
    """A pattern of ASCII characters for bytes; it ignores case."""
    options = re2.Options()
    options.case_sensitive = False
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern.encode("ascii"), options)


#: Blocks get a mark before and after them, items only before them: after an item comes another one, or its parent ends.
BLOCKS: Final = (
    "address article aside blockquote body center dd details dialog dir div dl fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr legend main menu nav ol p pre search section summary table ul"
)
ITEMS: Final = "br caption dt li option optgroup tbody td tfoot th thead tr select textarea"

# Elements that a parser never nests: void ones, those whose content is text, and ``a``, which closes the one before.
_FLAT_NAMES: Final = (
    "a area base br hr iframe img input link meta noembed noframes noscript plaintext script style textarea "
    "title wbr xmp"
)
# Elements that nest, or whose tags a parser often ignores, but matter to what is read.
_KEPT_NAMES: Final = "body button form frame frameset head html optgroup option select template"
_KEPT: Final = frozenset(_KEPT_NAMES.split())
_ALLOWED: Final = frozenset(_FLAT_NAMES.split()) | _KEPT
#: So many of them stay: the time for a tree is the number of its tags times its depth.
_MAX_KEPT: Final = 1_000
#: Characters of the page, times the tags of them that stay: where a parser ignores these, its memory grows with that.
_MAX_COPIED: Final = 100_000_000
_ROOTS: Final = frozenset({"html", "body"})
#: The attributes of all html and body tags go to one element, each compared with all that it has.
MAX_ROOTS: Final = 6
_BREAKS: Final = frozenset(BLOCKS.split()) | {f"/{name}" for name in BLOCKS.split()} | frozenset(ITEMS.split())

# The marks of elements that are regions by their name alone.
_REGIONS: Final = {name: marks.before for name, marks in regions.OF_ELEMENT.items()} | {
    f"/{name}": marks.after for name, marks in regions.OF_ELEMENT.items()
}

# The name that a parser reads after "<", whatever it takes the place for, and what ends it. Frequent tags that may stay
# are passed over, which saves time: an end tag opens nothing.
_NAME: Final = re.compile(
    r"<(?!a[ >]|/(?:a|b|code|dt|em|i|li|s(?:cript|pan|trong)|td|tr)>)(/?[a-zA-Z][^\t\n\x0c\r />]*+[\t\n\x0c\r />]?)"
)
_AFTER_NAME: Final = "\t\n\f\r />"
# An end tag that no element has: a parser ignores it.
_NOTHING: Final = "</wbr"
# In place of one with attributes: where a parser ignores them it copies all text before them once more.
_DIVIDER: Final = "<wbr"


def flatten(text: str) -> str:
    """``text`` with only such start tags as cannot nest, or are few.

    It changes names and what ends them alone, wherever they may stand: what a comment, a script or a value is, only a parser knows for
    sure, and a page that was made to take long would hide its tags where this took them for none.
    """
    parts = _NAME.split(text)
    tags = parts[1::2]
    counts = Counter(tags)
    new = {tag: _rename(tag) for tag in counts}
    tags = [new[tag] for tag in tags]
    for plain, most in ((_KEPT, min(_MAX_KEPT, _MAX_COPIED // max(len(text), 1) + MAX_ROOTS)), (_ROOTS, MAX_ROOTS)):
        found = {tag for tag in new.values() if tag[1:].rstrip(_AFTER_NAME).lower() in plain}
        if sum(count for tag, count in counts.items() if new[tag] in found) > most:
            _drop_further(tags, found, plain, most)
    parts[1::2] = tags
    return "".join(parts)


def _drop_further(written: list[str], found: set[str], plain: frozenset[str], allowed: int) -> None:
    """Leaves the first ``allowed`` of the start tags ``found``, which have such names, among all that are ``written``.

    Where one goes, and where its element would end, a mark keeps the texts apart.
    """
    for place in [place for place, tag in enumerate(written) if tag in found][allowed:]:
        written[place] = BLOCK_MARK + _drop(_end_of(written[place]))
    for place, tag in enumerate(written):
        if tag[:2] == "</" and tag[2:].partition(">")[0].lower() in plain:
            written[place] = BLOCK_MARK + tag


def _rename(tag: str) -> str:
    """What replaces ``<tag``, a name with what ends it: itself where it is allowed, or what opens nothing.

    For a block or a region, with a mark before it.
    """
    _, cut, last = tag.rpartition("<")
    if cut:
        # A parser takes all of it for one name, but in a script it may be two.
        return _rename(last) if last[:1].isascii() and last[:1].isalpha() else f"<{last}"
    end = _end_of(tag)
    name = tag.removesuffix(end)
    plain = name.lower() if name.isascii() else ""
    if plain.removeprefix("/") in _ALLOWED:
        # The attributes of an end tag are ignored, too.
        return f"<{tag}" if name[0] != "/" or end in {">", ""} else f"<{name}>{_DIVIDER}{end}"
    return _REGIONS.get(plain, BLOCK_MARK) + _drop(end) if plain in _BREAKS else _drop(end)


def _drop(end: str) -> str:
    """What stands for a tag that is left out, up to what ended its name."""
    return (_NOTHING if end in {">", ""} else _DIVIDER) + end


def _end_of(tag: str) -> str:
    """What ends the name of a tag; empty at the end of the text."""
    return tag[-1] if tag[-1] in _AFTER_NAME else ""


#: Elements that may be opened anew in the whole page: so many take 50 ms and 15 MB.
MAX_REOPENED: Final = 25_000
#: A page with fewer tags cannot have so many.
HARMLESS_TAGS: Final = math.isqrt(4 * MAX_REOPENED)
#: A parser keeps no more open formatting elements that are alike.
_MAX_ALIKE: Final = 3
#: After so many it is cheaper to find all formatting elements at once.
_LOOKED_AT: Final = 64

_FORMATTING: Final = ("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u")

# The attributes of a tag, state by state as a tokenizer reads them: up to the end of the tag, or up to what is seldom
# written, and might hide an end from a pattern (quotes where no value is, brackets in values).
_GAP: Final = r"[\t\n\f\r /]"
_SPACE: Final = r"[\t\n\f\r ]*"
_ATTRIBUTE_NAME: Final = r"""[^\t\n\f\r /<>"'=]+"""
_BARE: Final = r"""[^\t\n\f\r <>"'=]+"""
_VALUE: Final = rf"""(?:"[^"<>]*"|'[^'<>]*'|{_BARE})"""
_ODD_VALUE: Final = rf"""(?:[<=]|{_BARE}[<"'=]|"[^"<>]*(?:[<>]|"[^\t\n\f\r />])|'[^'<>]*(?:[<>]|'[^\t\n\f\r />]))"""
_RUN: Final = rf"{_GAP}+(?:{_ATTRIBUTE_NAME}(?:{_SPACE}={_SPACE}{_VALUE})?{_GAP}+)*"
_PLAIN: Final = rf"(?:{_RUN}(?:{_ATTRIBUTE_NAME}{_SPACE}(?:={_SPACE}{_VALUE}?)?)?)?>"
_ODD: Final = rf"""{_RUN}(?:[<"'=]|{_ATTRIBUTE_NAME}{_SPACE}(?:[<"']|={_SPACE}{_ODD_VALUE}))"""


def _other_than(*names: str, ends: str = r"\t\n\f\r />") -> str:
    """A pattern of what is none of ``names`` with one of ``ends`` after it, up to where it differs."""
    firsts = sorted({name[:1] for name in names} - {""})
    differs = f"[^{''.join(firsts)}{ends if '' in names else ''}]"
    longer = [first + _other_than(*(name[1:] for name in names if name[:1] == first), ends=ends) for first in firsts]
    return "(?:" + "|".join([differs, *longer]) + ")"


def _left_open(name: str) -> str:
    """A pattern of a formatting element after which another tag comes than its end tag; spans of text may be in it."""
    content = f"(?:[^<]|<span{_PLAIN}[^<]*</span>)*"
    others = [_other_than(f"/{name}", "span"), f"span{_ODD}", f"span{_PLAIN}[^<]*<{_other_than('/span', ends='>')}"]
    return f"{name}(?:{_ODD}|{_PLAIN}{content}<(?:{'|'.join(others)}))"


_LEFT_OPEN: Final = compile_bytes(f"<(?:{'|'.join(map(_left_open, _FORMATTING))})")
_ROOT: Final = compile_bytes(f"<(?:html|body){_GAP}")
# One, its attributes if they are plain, and its end tag if there is only text in it.
_TAG: Final = re.compile(
    rb"<(%s)(?:((?>[\t\n\f\r /]++[^\t\n\f\r /<>\"'=]++(?>=(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\t\n\f\r <>\"'=]++))?+)*+"
    rb"[\t\n\f\r /]*+)>(?>([^<]*+</\1[\t\n\f\r />]))?+|[\t\n\f\r />])" % "|".join(_FORMATTING).encode(),
    re.IGNORECASE,
)


def has_many_roots(raw: bytes) -> bool:
    """Whether a page (in UTF-8) has more than MAX_ROOTS html and body tags with attributes."""
    return sum(1 for _ in islice(_find_matches(_ROOT, raw), MAX_ROOTS + 1)) > MAX_ROOTS


def count_reopened(raw: bytes, *, tags: int) -> int:
    """How many formatting elements a parser opens anew at most for a page or a piece (in UTF-8, with ``tags`` tags).

    Those that may stay open times all other tags; a bound that is at most MAX_REOPENED is a rough one.
    """
    if tags <= HARMLESS_TAGS:
        return tags * tags // 4
    # So many elements, times all other tags, are the most that may be opened anew.
    allowed = (tags - math.isqrt(tags * tags - 4 * MAX_REOPENED)) // 2
    looked_at = min(allowed, _LOOKED_AT)
    left_open = sum(1 for _ in islice(_find_matches(_LEFT_OPEN, raw), looked_at + 1))
    if left_open > looked_at:
        left_open = min(_count_different(raw), tags // 2)
    return left_open * (tags - left_open)


def _find_matches(pattern: Any, raw: bytes) -> Iterator[Any]:
    """The matches of a pattern, which may begin within each other."""
    match = pattern.search(raw)
    while match is not None:
        yield match
        match = pattern.search(raw, match.start() + 1)


def _count_different(raw: bytes) -> int:
    """How many formatting elements that have more in them than text can be open at once: of those alike, only some."""
    written = Counter((match[1], match[2]) for match in _TAG.finditer(raw) if match[3] is None)
    return sum(number if attributes is None else min(number, _MAX_ALIKE) for (_, attributes), number in written.items())
