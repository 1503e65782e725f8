"""Cuts out the passage of a text that best shows why it was found. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, NamedTuple

from searchcrawl.index.folding import POINTED, POINTS, UNACCENTED
from searchcrawl.index.forms import fold, most_added
from searchcrawl.index.query import Term
from searchcrawl.index.snippets import cut_around

#: Each letter with its forms that have accents.
_ACCENTED: Final = {
    base: "".join(letter for letter in map(chr, range(0xC0, 0x250)) if fold(letter) == base) + base
    for base in "abcdefghijklmnopqrstuvwxyz"
} | {
    base: "".join(letter for letter, other in UNACCENTED.items() if other == base) + base
    for base in set(UNACCENTED.values())
}
_MAX_SEARCHED_CHARS: Final = 500_000
_MAX_HITS: Final = 500
#: How far a full-width letter is from the plain one.
_FULL_WIDTH: Final = 0xFEE0
#: No letter is before the first one of a word, which was read already, and none is after the last one.
_BEGINS: Final = r"(?<![^\W_].)"
_ENDS: Final = r"(?![^\W_])"
#: Among the letters of Arabic and Hebrew: a word may have points between them, and none are before its first one.
_MAY_HAVE_POINTS: Final = rf"[{POINTS}]*+"
_HAS_NO_POINT: Final = rf"(?<![{POINTS}].)"
#: The marks of Thai are no letters for a regular expression.
_WORD: Final = re.compile(r"(?:[^\W_]|[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])+")


class _Piece(NamedTuple):
    """What is looked for: a set with the forms of its first letter, and a pattern of what is around it.

    So the library can look for the first letters of all pieces at once, which takes a tenth of the time.
    """

    first: str
    rest: str


def build_hit_pattern(
    terms: Iterable[Term],
    *,
    is_stop_word: Callable[[str], bool],
    cjk: re.Pattern[str],
    find_beginnings: Callable[[str], Iterable[str]] = lambda _: (),
) -> re.Pattern[str] | None:
    """A pattern that finds the terms in a text: phrases as a whole, then words. None without words.

    What begins or ends with a character of ``cjk`` matches there also within a longer word. ``find_beginnings`` gives
    the beginnings of a word's forms; accents make no difference.
    """
    phrases: list[_Piece] = []
    words: list[_Piece] = []
    forms: list[_Piece] = []
    for term in terms:
        found = _WORD.findall(term.text)
        if len(found) > 1:
            first, *others = (_whole(word, cjk) for word in found)
            phrases.append(
                _Piece(first.first, "".join([first.rest, *(rf"[\W_]+{first}{rest}" for first, rest in others)]))
            )
        if term.prefix and found:
            forms.append(_begin(found.pop(), r"[^\W_]*"))
        words += [_whole(word, cjk) for word in found if not is_stop_word(word)]
        if not term.phrase and not term.prefix:
            forms += [_form(beginning, cjk) for beginning in find_beginnings(term.text)]
    if not words and not forms:
        return None
    pieces = dict.fromkeys([*phrases, *sorted(words, key=lambda piece: len(piece.rest), reverse=True), *forms])
    firsts = "".join(piece.first[1:-1] for piece in pieces)
    branches = "|".join(f"(?<={first}){rest}" for first, rest in pieces)
    return re.compile(f"[{firsts}](?:{branches})")


def cut_snippet(text: str, pattern: re.Pattern[str] | None) -> str:
    """About 240 characters of plain text with the hits between HIT_START and HIT_END, and … where text was left out.

    Without a hit it is the beginning of the text.
    """
    return cut_around(text, _find_spans(text[:_MAX_SEARCHED_CHARS], pattern) if pattern else [])


def _whole(word: str, cjk: re.Pattern[str]) -> _Piece:
    return _begin(word, "" if cjk.match(word[-1]) else _ENDS, is_inside=bool(cjk.match(word[0])))


def _form(beginning: str, cjk: re.Pattern[str]) -> _Piece:
    if cjk.match(beginning):
        return _begin(beginning, "", is_inside=True)
    return _begin(beginning, rf"[^\W_]{{0,{most_added(beginning)}}}{_ENDS}")


def _begin(word: str, rest: str, *, is_inside: bool = False) -> _Piece:
    first, *others = map(_read_letter, word)
    between, before = (_MAY_HAVE_POINTS, _HAS_NO_POINT) if POINTED.search(word) else ("", "")
    begins = "" if is_inside else f"{_BEGINS}{before}"
    return _Piece(first, f"{begins}{''.join(f'{between}{letter}' for letter in others)}{between}{rest}")


@cache
def _read_letter(letter: str) -> str:
    """A set of the letter, with and without accents, small and capital, also in full width."""
    base = UNACCENTED.get(letter) or UNACCENTED.get(fold(letter)) or fold(letter)
    forms = {letter, *_ACCENTED.get(base, base), base}
    forms |= {chr(ord(each) + _FULL_WIDTH) for each in forms if each.isascii()}
    forms |= {other for each in forms for other in (each.lower(), each.upper()) if len(other) == 1}
    return f"[{''.join(map(re.escape, sorted(forms)))}]"


def _find_spans(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        spans.append(match.span())
        if len(spans) == _MAX_HITS:
            break
    return spans
