"""Cuts out the passage of a text that best shows why it was found. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from searchcrawl.index.forms import fold, most_added
from searchcrawl.index.query import Term
from searchcrawl.index.snippets import cut_around

#: Each letter with its forms that have accents.
_ACCENTED: Final = {
    base: "".join(letter for letter in map(chr, range(0xC0, 0x250)) if fold(letter) == base) + base
    for base in "abcdefghijklmnopqrstuvwxyz"
}
_MAX_SEARCHED_CHARS: Final = 500_000
_MAX_HITS: Final = 500


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
    phrases: list[str] = []
    words: list[str] = []
    forms: list[str] = []
    for term in terms:
        found = re.findall(r"[^\W_]+", term.text)
        if len(found) > 1:
            phrases.append(r"[\W_]+".join(_with_edges(word, cjk) for word in found))
        if term.prefix and found:
            forms.append(rf"(?<![^\W_]){_ignore_accents(found.pop())}[^\W_]*")
        words += [_with_edges(word, cjk) for word in found if not is_stop_word(word)]
        if not term.phrase and not term.prefix:
            forms += [_begin_with(beginning, cjk) for beginning in find_beginnings(term.text)]
    if not words and not forms:
        return None
    longest_first = sorted(dict.fromkeys(words), key=len, reverse=True)
    return re.compile("|".join([*phrases, *longest_first, *dict.fromkeys(forms)]), re.IGNORECASE)


def cut_snippet(text: str, pattern: re.Pattern[str] | None) -> str:
    """About 240 characters of plain text with the hits between HIT_START and HIT_END, and … where text was left out.

    Without a hit it is the beginning of the text.
    """
    return cut_around(text, _find_spans(text[:_MAX_SEARCHED_CHARS], pattern) if pattern else [])


def _with_edges(word: str, cjk: re.Pattern[str]) -> str:
    before = "" if cjk.match(word[0]) else r"(?<![^\W_])"
    after = "" if cjk.match(word[-1]) else r"(?![^\W_])"
    return before + _ignore_accents(word) + after


def _begin_with(beginning: str, cjk: re.Pattern[str]) -> str:
    if cjk.match(beginning):
        return re.escape(beginning)
    return rf"(?<![^\W_]){_ignore_accents(beginning)}[^\W_]{{0,{most_added(beginning)}}}(?![^\W_])"


def _ignore_accents(word: str) -> str:
    """A pattern of the word with and without accents."""
    return "".join(f"[{letter}{_ACCENTED[base]}]" if (base := fold(letter)) in _ACCENTED else re.escape(letter)
                   for letter in word)  # fmt: skip


def _find_spans(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        spans.append(match.span())
        if len(spans) == _MAX_HITS:
            break
    return spans
