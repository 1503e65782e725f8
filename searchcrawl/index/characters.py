"""One form for each letter, however it was typed or stored. Pure.

Each rule is about a character and its accents alone: what a query makes of a word must not depend on the rest of a text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from searchcrawl.index.folding import LEADS, fold_marks

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
