"""Marks that most people leave out when they type: accents of Greek, vowels of Arabic and Hebrew. Pure.

What both indexes make of them is declared here; a test compares it with ``solr/configset/lang/folding.txt``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

#: Points and cantillation of Hebrew; signs, vowels and the stretching of Arabic, and those of the Quran. A hamza is a letter.
POINTS: Final = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
_POINT: Final = re.compile(f"[{POINTS}]")
#: The letters of Hebrew and Arabic.
POINTED: Final = re.compile("[\u05d0-\u06ff]")
#: What begins all of these characters in UTF-8.
LEADS: Final = frozenset({0xCE, 0xCF, 0xD6, 0xD7, 0xD8, 0xD9, 0xDB, 0xE1})
_GREEK: Final = (*range(0x370, 0x400), *range(0x1F00, 0x2000))


def _list_greek() -> dict[str, str]:
    """The small letter without accents of each Greek letter that has some; the sigma at the end of words is one like any."""
    found = {"ς": "σ"}
    for letter in map(chr, _GREEK):
        base = unicodedata.normalize("NFD", letter)[0].lower()
        if letter.isalpha() and letter.lower() != base and "α" <= base <= "ω":
            found[letter] = base
    return found


#: What becomes of a letter with accents; points become nothing.
UNACCENTED: Final[Mapping[str, str]] = _list_greek()
_FOLDED: Final = re.compile(f"[{POINTS}{''.join(UNACCENTED)}]")


def fold_marks(text: str) -> str:
    """The text without these marks."""
    return _FOLDED.sub(lambda match: UNACCENTED.get(match[0], ""), text)


def remove_points(text: str) -> str:
    """The text without the points of Hebrew and Arabic."""
    return text if text.isascii() else _POINT.sub("", text)
