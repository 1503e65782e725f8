"""In which forms a word of a query is looked for besides the one that was typed. Pure.

In most European languages it is the word's stem, which an index makes itself; here is only which word that is. Chinese and
Japanese are written without blanks and Korean words carry endings: of these the embedded index keeps *pairs* of neighbouring
characters, which ``read_pairs`` takes from texts and from words alike:

- Chinese and Japanese: the pairs within each run of ideographs, and of each run of katakana. Hiragana, in which Japanese
  writes what it appends to words, is left out. A run of one character is kept as it is.
- Korean: the pairs within each word, without the particle at its end.

Thai has no other forms: its characters are looked for in their order, as those of the others are.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

# Scripts that are written without blanks, and Hangul, whose words carry endings: Hangul Jamo, CJK
# radicals, kana, Bopomofo, ideographs with their extensions, Hangul syllables, half-width kana. And Thai.
CJK: Final = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"
)
CJK_RUN: Final = re.compile(f"([{CJK}]+)")

#: A word with an article or a pronoun before it (l'été, dell'arte), and with the English 's.
_STEMMED: Final = re.compile(r"(?:[^\W\d_]{1,7}['’])?([^\W_]{3,})(?:['’][sS])?")
_MIN_BEGINNING_CHARS: Final = 3
_LONG_BEGINNING_CHARS: Final = 5
_HAN_OR_KATAKANA: Final = re.compile(
    "[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+|[\u30a1-\u30fa\u30fc]+"
)
_HANGUL: Final = re.compile("[\uac00-\ud7a3]+")
#: The longest come first.
_PARTICLE: Final = re.compile(
    "(?<=[\uac00-\ud7a3]{2})(?:에서는|으로는|에게서|으로부터|이라고|에서|으로|에게|한테|까지|부터|처럼|보다|이나|마다|조차|에는"
    "|은|는|이|가|을|를|에|의|로|와|과|도|만)$"
)


def find_stemmed(text: str) -> str | None:
    """The word, in lower case, whose stem is looked for; None for what is not a single word."""
    match = _STEMMED.fullmatch(text)
    return None if match is None or CJK_RUN.search(text) else lower(match[1])


def find_beginning(word: str, stem: str) -> str:
    """What the forms of a word begin with, by its stem, which has no accents; empty where that is too short."""
    count = 0
    for letter, other in zip(word, stem, strict=False):
        if fold(letter) != other:
            break
        count += 1
    # The stem of both library and libraries is librari.
    beginning = word[: count - 1] if count > _LONG_BEGINNING_CHARS and word[count - 1] == "i" else word[:count]
    return beginning if len(beginning) >= _MIN_BEGINNING_CHARS else ""


def most_added(beginning: str) -> int:
    """How many letters may follow this beginning in a form of the word; cat is no beginning of category."""
    return 4 if len(beginning) >= _LONG_BEGINNING_CHARS else 2


def lower(word: str) -> str:
    """The word in lower case as an index has it: each letter stays one, wherever it stands (İ, Σ)."""
    return "".join(letter.lower()[0] for letter in word)


def fold(letter: str) -> str:
    """The letter in lower case and without accents."""
    return unicodedata.normalize("NFD", letter)[0].lower()


def is_cjk(text: str) -> bool:
    """Whether a word is in characters of Chinese, Japanese and Korean alone."""
    return CJK_RUN.fullmatch(text) is not None


def read_runs(text: str, language: str) -> Iterator[str]:
    """What stays of the words of a text in ``zh``, ``ja`` or ``ko`` without what these languages append."""
    for run in (_HANGUL if language == "ko" else _HAN_OR_KATAKANA).findall(text):
        yield _PARTICLE.sub("", run) if language == "ko" else run


def read_pairs(text: str, language: str) -> Iterator[list[str]]:
    """The pairs of each run of a text in ``zh``, ``ja`` or ``ko``, in their order."""
    for run in read_runs(text, language):
        yield [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def require_pairs(pairs: Sequence[str]) -> list[tuple[str, ...]]:
    """What a document must have of the pairs of a run: one of each tuple, so that a pair covers each character.

    A word is mostly made of shorter ones, between which a text may have a particle: the pair across both is missing there.
    """
    inner = itertools.pairwise(pairs[1:-1])
    return [(pairs[0],), *inner, *(((pairs[-1],),) if len(pairs) > 1 else ())]
