"""One form for each letter, however it was typed or stored. Pure.

Each rule is about a character and its accents alone: what a query makes of a word must not depend on the rest of a text.
What both indexes make of marks that most people leave out when they type (accents of Greek, vowels of Arabic and Hebrew) is
declared here; a test compares it with ``solr/configset/lang/folding.txt``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

# Scripts that are written without blanks, and Hangul, whose words carry endings: Hangul Jamo, CJK
# radicals, kana, Bopomofo, ideographs with their extensions, Hangul syllables, half-width kana. And Thai.
CJK: Final = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"
)
CJK_RUN: Final = re.compile(f"([{CJK}]+)")

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


#: No language has so many marks on a letter (UAX 15, stream-safe text).
_MOST_MARKS: Final = 30
_LONG_MARKS: Final = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}")
#: They are not seen, and part no word: soft hyphen, word joiner, and the mark that begins some files.
_UNSEEN: Final = "\u00ad\u2060\ufeff"
_WITHOUT_UNSEEN: Final = str.maketrans(dict.fromkeys(_UNSEEN))
#: Letters as a printer joins them, which PDF files have: ﬁ, and the forms of Arabic letters by their neighbours.
_JOINED: Final = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]+")
#: Full-width and half-width forms, ligatures, and the forms of Arabic letters by their neighbours.
_SHAPED: Final = re.compile("[\uf900-\ufaff\ufb00-\ufdff\ufe30-\uffef]+")
# The leading bytes of its UTF-8 tell which characters a text has, at a tenth of the cost of a pattern. These
# begin combining accents, Jamo, full-width and other compatibility forms …
_UNCOMMON_LEADS: Final = frozenset({0xCC, 0xCD, 0xE1, 0xEF})
# … and these begin CJK characters, as does 0xF0 where it is no emoji.
_CJK_LEADS: Final = frozenset({0xE1, *range(0xE3, 0xF0)})
_RARE_IDEOGRAPH: Final = re.compile(rb"\xf0[\xa0-\xbf]")
# Thai shares its first byte with the scripts of India.
_THAI_LEADS: Final = (b"\xe0\xb8", b"\xe0\xb9")
_OTHER_BYTES: Final = bytes(set(range(256)) - _UNCOMMON_LEADS - _CJK_LEADS - LEADS)
#: Marks of Japanese and Arabic, which stand among letters with the same leading byte.
_OTHER_MARKS: Final = tuple(mark.encode() for mark in "\u3099\u309a\u0653\u0654\u0655")
_LEADS_OF_MARKS: Final = frozenset(mark[0] for mark in _OTHER_MARKS)
_DOTTED_I: Final = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}".encode()


def unify(text: str, encoded: bytes | None = None) -> str:
    """The text with an accent in one character with its letter (NFC), letters that are not joined, and no soft hyphens.

    ``encoded`` is the text in UTF-8, where the caller has it.
    """
    if text.isascii():
        return text
    if any(character in text for character in _UNSEEN):
        text, encoded = text.translate(_WITHOUT_UNSEEN), None
    if encoded is None:
        encoded = text.encode("utf-8", "replace")
    leads = _read_leads(encoded)
    if 0xEF in leads:
        text = _JOINED.sub(_separate, text)
    return _compose(text, encoded, leads)


def simplify(text: str) -> tuple[str, bool]:
    """The text as it is analysed, with plain letters for full-width ones and without marks, and whether it may have CJK."""
    if text.isascii():
        return text, False
    encoded = text.encode("utf-8", "replace")
    if _DOTTED_I in encoded:
        # Its small letter would be an i with a second dot, which nobody types.
        text = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "I")
    leads = _read_leads(encoded)
    if 0xEF in leads:
        text = _SHAPED.sub(_separate, text)
        encoded = text.encode("utf-8", "replace")
        leads = _read_leads(encoded)
    has_cjk = bool(
        leads & _CJK_LEADS or _RARE_IDEOGRAPH.search(encoded) or any(each in encoded for each in _THAI_LEADS)
    )
    text = _compose(text, encoded, leads)
    return fold_marks(text) if leads & LEADS else text, has_cjk


def _separate(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", match[0])


def _read_leads(encoded: bytes) -> frozenset[int]:
    return frozenset(encoded.translate(None, _OTHER_BYTES))


def _compose(text: str, encoded: bytes, leads: frozenset[int]) -> str:
    if leads & _UNCOMMON_LEADS or (leads & _LEADS_OF_MARKS and any(mark in encoded for mark in _OTHER_MARKS)):
        return unicodedata.normalize("NFC", _LONG_MARKS.sub(_cut_marks, text))
    return text


def _cut_marks(match: re.Match[str]) -> str:
    """At most _MOST_MARKS marks on one letter: they are sorted, and more take quadratic time (X-R13)."""
    kept, marks = [], 0
    for character in match[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def is_cjk(text: str) -> bool:
    """Whether a word is in characters of Chinese, Japanese and Korean alone."""
    return CJK_RUN.fullmatch(text) is not None
