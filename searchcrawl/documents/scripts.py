"""In which scripts a text is written, by the letters of all of it, and which languages a script may be of (C9).

Counted are the first bytes of its characters in UTF-8, which tell the block of a character: that takes a thousandth of the
time that a search for its letters takes. A page of some thousand letters has its scripts in a few microseconds.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Final, NamedTuple


class Script(NamedTuple):
    """A script other than the Latin one: how its letters begin in UTF-8, and which languages are written in it.

    The first language is the one that is taken where nothing tells which of them it is. A character of it says as much as
    ``letters`` Latin ones.
    """

    beginnings: tuple[bytes, ...]
    languages: tuple[str, ...]
    letters: int = 1

    @property
    def is_of_one(self) -> bool:
        """Whether its letters alone tell the language: Japanese has kana besides ideographs."""
        return len(self.languages) == 1 or self.languages[0] == "zh"

    @property
    def bytes_a_letter(self) -> float:
        """How many bytes of UTF-8 say as much as a Latin letter."""
        return (2 if self.beginnings[0] < b"\xe0" else 3) / self.letters


class Scripts(NamedTuple):
    """The letters of a text: those of the Latin script, and those of the others by the first language of each."""

    latin: int
    others: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many letters there are."""
        return self.latin + sum(self.others.values())

    def share(self, first: str) -> float:
        """The share of the letters that a script has, by its first language."""
        return self.others.get(first, 0) / max(self.total, 1)


def _script(beginnings: str, languages: str, letters: int = 1) -> Script:
    return Script(tuple(map(bytes.fromhex, beginnings.split())), tuple(languages.split()), letters)


_KANA: Final = _script("e381 e382 e383", "ja", 3)
_HAN: Final = _script("e4 e5 e6 e7 e8 e9", "zh ja", 3)
#: By the first language of each. The blocks of Armenian and Hebrew share a first byte, which few of their letters have.
OTHERS: Final[Mapping[str, Script]] = {
    script.languages[0]: script
    for script in (
        _script("ce cf e1bc e1bd e1be e1bf", "el"),
        _script("d0 d1 d2 d3", "ru uk be bg mk sr kk ky mn tg tt"),
        _script("d4 d5", "hy"),
        _script("d7", "he yi"),
        _script("d8 d9 da db", "ar fa ur ps ug ckb sd"),
        _script("e0a4 e0a5", "hi mr ne sa"),
        _script("e0a6 e0a7", "bn as"),
        _script("e0a8 e0a9", "pa"),
        _script("e0aa e0ab", "gu"),
        _script("e0ae e0af", "ta"),
        _script("e0b0 e0b1", "te"),
        _script("e0b2 e0b3", "kn"),
        _script("e0b4 e0b5", "ml"),
        _script("e0b6 e0b7", "si"),
        _script("e0b8 e0b9", "th"),
        _script("e0ba e0bb", "lo"),
        _script("e180 e181", "my"),
        _script("e183", "ka"),
        _script("e188 e189 e18a e18b e18c", "am ti"),
        _script("e19e e19f", "km"),
        _KANA,
        _HAN,
        _script("eb ec ed", "ko", 3),
    )
}
#: The languages that the Latin script is sure of; of others nothing is known.
LATIN: Final = frozenset({
    "ca", "cs", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "id", "is", "it", "lt",
    "lv", "nb", "nl", "nn", "no", "pl", "pt", "ro", "sk", "sl", "sv", "tr", "vi",
})  # fmt: skip
#: Language → the first language of its script. Of Japanese that is kana, also where it is written in ideographs.
SCRIPT_OF: Final[Mapping[str, str]] = {
    language: first for first, script in reversed(list(OTHERS.items())) for language in script.languages
}
#: So many stretches of a long text are looked at, and so many characters of each.
_STRETCHES: Final = 16
#: … or so many of one that has no other letters than Latin ones.
_ENOUGH: Final = 2_048
_STRETCH: Final = 128
#: Of a text that has kana at all so large a share of its ideographs and kana is kana, if it is Japanese.
_MIN_KANA_SHARE: Final = 0.1
#: A text has letters of another script at least where this share of them is none of the Latin one.
_FEW: Final = 0.02

_LETTERS: Final = string.ascii_letters.encode()
_NO_LETTERS: Final = bytes(code for code in range(0xC0) if code not in _LETTERS)
#: Latin letters with accents, symbols, punctuation, and what is beside the planes of living languages.
_LATIN_BYTES: Final = bytes(range(0xC3, 0xCE))
_EXTENDED_LATIN: Final = (b"\xe1\xb8", b"\xe1\xb9", b"\xe1\xba", b"\xe1\xbb")
_FIRST_OF_EXTENDED: Final = 0xE1
_NEUTRAL: Final = bytes([0xC0, 0xC1, 0xC2, 0xE2, *range(0xEE, 0x100)])


def weigh_scripts(text: str) -> Scripts:
    """The letters of a text by their scripts, of a long one those of stretches all over it.

    Katakana and ideographs of a text with kana count as Japanese.
    """
    if text.isascii():
        return Scripts(len(text[:_ENOUGH].encode().translate(None, _NO_LETTERS)), {})
    raw = _sample(text).encode("utf-8", "replace")
    firsts = raw.translate(None, _NO_LETTERS)
    plain = firsts.translate(None, _NEUTRAL)
    beyond = plain.translate(None, _LETTERS + _LATIN_BYTES)
    latin = len(plain) - len(beyond)
    if len(beyond) <= len(plain) * _FEW:
        return Scripts(latin, {})
    others = {first: count * OTHERS[first].letters for first in OTHERS if (count := _count(raw, beyond, first))}
    # Those of Vietnamese begin like letters of several other scripts.
    extended = sum(map(raw.count, _EXTENDED_LATIN)) if _FIRST_OF_EXTENDED in beyond else 0
    if "ja" in others and others["ja"] >= _MIN_KANA_SHARE * (others["ja"] + others.get("zh", 0)):
        others["ja"] += others.pop("zh", 0)
    return Scripts(latin + extended, others)


def _sample(text: str) -> str:
    if len(text) <= _STRETCHES * _STRETCH:
        return text
    step = (len(text) - _STRETCH) / (_STRETCHES - 1)
    begins = [int(number * step) for number in range(_STRETCHES)]
    return "".join([text[begin : begin + _STRETCH] for begin in begins])


def _count(raw: bytes, firsts: bytes, language: str) -> int:
    return sum(
        firsts.count(each) if len(each) == 1 else raw.count(each) if each[:1] in firsts else 0
        for each in OTHERS[language].beginnings
    )
