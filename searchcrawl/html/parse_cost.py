"""Whether a page would take a parser long: its formatting elements that stay open, and its root elements (X-R13).

At each new block a parser opens anew all formatting elements that the block before left open, so the tree grows with
their number times that of the blocks. All other work for a tag is at most a look at each open element.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from searchcrawl.html.byte_pattern import compile_bytes
from searchcrawl.html.flat_markup import MAX_ROOTS

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
_NAME: Final = r"""[^\t\n\f\r /<>"'=]+"""
_BARE: Final = r"""[^\t\n\f\r <>"'=]+"""
_VALUE: Final = rf"""(?:"[^"<>]*"|'[^'<>]*'|{_BARE})"""
_ODD_VALUE: Final = rf"""(?:[<=]|{_BARE}[<"'=]|"[^"<>]*(?:[<>]|"[^\t\n\f\r />])|'[^'<>]*(?:[<>]|'[^\t\n\f\r />]))"""
_RUN: Final = rf"{_GAP}+(?:{_NAME}(?:{_SPACE}={_SPACE}{_VALUE})?{_GAP}+)*"
_PLAIN: Final = rf"(?:{_RUN}(?:{_NAME}{_SPACE}(?:={_SPACE}{_VALUE}?)?)?)?>"
_ODD: Final = rf"""{_RUN}(?:[<"'=]|{_NAME}{_SPACE}(?:[<"']|={_SPACE}{_ODD_VALUE}))"""


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
    return sum(1 for _ in islice(_find(_ROOT, raw), MAX_ROOTS + 1)) > MAX_ROOTS


def count_reopened(raw: bytes, *, tags: int) -> int:
    """How many formatting elements a parser opens anew at most for a page or a piece (in UTF-8, with ``tags`` tags).

    Those that may stay open times all other tags; a bound that is at most MAX_REOPENED is a rough one.
    """
    if tags <= HARMLESS_TAGS:
        return tags * tags // 4
    # So many elements, times all other tags, are the most that may be opened anew.
    allowed = (tags - math.isqrt(tags * tags - 4 * MAX_REOPENED)) // 2
    looked_at = min(allowed, _LOOKED_AT)
    left_open = sum(1 for _ in islice(_find(_LEFT_OPEN, raw), looked_at + 1))
    if left_open > looked_at:
        left_open = min(_count_different(raw), tags // 2)
    return left_open * (tags - left_open)


def _find(pattern: Any, raw: bytes) -> Iterator[Any]:
    """The matches of a pattern, which may begin within each other."""
    match = pattern.search(raw)
    while match is not None:
        yield match
        match = pattern.search(raw, match.start() + 1)


def _count_different(raw: bytes) -> int:
    """How many formatting elements that have more in them than text can be open at once: of those alike, only some."""
    written = Counter((match[1], match[2]) for match in _TAG.finditer(raw) if match[3] is None)
    return sum(number if attributes is None else min(number, _MAX_ALIKE) for (_, attributes), number in written.items())
