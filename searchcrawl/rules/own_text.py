"""How much of a page's text stands on no page that was read before: its own text (L8, L12). Pure.

Numbers, ids, and the words of the query of the page's own URL say nothing: a page of a calendar, or of a list that is
filtered and sorted in many ways, has no text of its own because of them. A line that nobody had before is the page's own
if it has a word that nobody had before, which is mostly the name of what the page is about, or many words, or several
numbers with fractions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import chain
from typing import Final
from urllib.parse import unquote

from searchcrawl.items import Link

#: The pages of a pattern have text of their own if their mean share is at least this, once so many have come.
WITH_TEXT: Final = 0.15
PRODUCTIVE_PAGES: Final = 8
#: So many words of its own, and a page is taken as one that has text of its own, however long it is.
_ENOUGH_WORDS: Final = 24
#: A shorter page is treated as one with this many words, so that one new word is not a large share.
_MIN_WORDS: Final = 16
#: A line with more words, all known from other lines, is the page's own as well: it is a sentence.
_SHORT_LINE: Final = 8
#: Lines with so many characters are looked at first.
_LONG_LINE: Final = 80
#: So many characters of a line are looked at.
_LINE_CHARACTERS: Final = 200
#: What is remembered: at most twice so many lines, and twice so many words.
_LINES: Final = 50_000
_WORDS: Final = 50_000
# A number with a fraction or groups of digits that is no part of a date or version, or a word or name.
_TOKEN: Final = re.compile(r"(?<![\d.,/-])\d+(?:[.,]\d{3})*[.,]\d+(?![.,/-]?\d)|\w[\w'’-]*")
# Hex digits; a long word with a digit; letters between digits, and more of either.
_ID: Final = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{8,}|(?=[a-z]*[0-9])[0-9a-z]{16,}|[a-z]*[0-9]+[a-z]+[0-9][0-9a-z]*")
_IS_NUMBER: Final = re.compile(r"[\d.,]*[.,]\d+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_DIGITS: Final = "0123456789"


class Recent:
    """A bounded set of at most twice ``limit`` numbers; numbers that were not added for a long time are dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return number in self._young or number in self._old

    def add(self, numbers: set[int]) -> set[int]:
        """Adds numbers; returns those that were new."""
        fresh = numbers - self._young - self._old
        if len(self._young) >= self._limit:
            self._young, self._old = set(), self._young
        self._young |= numbers
        return fresh


class KnownText:
    """The lines and words of the pages that were read last; some 20 MB at most. Used by one thread."""

    def __init__(self) -> None:
        self._lines = Recent(_LINES)
        self._shapes = Recent(_LINES)
        self._words = Recent(_WORDS)

    def measure(self, url: str, title: str, text: str, links: Iterable[Link] = ()) -> float:
        """The share, from 0 to 1, of words of its own among those in lines that no page before had; remembers its text.

        ``text`` is its main text, a line a block; lines that are the text of one of its ``links`` name other pages, and are left
        out. A page with many words of its own has the share 1, one without a new line 0.
        """
        # A list of links says what its targets are named, not the page.
        linked = {words for link in links for words in link.texts}
        lines = [title, *[line for line in text.split("\n") if line not in linked]]
        # The hash of a string is computed once and kept in the string.
        fresh = self._lines.add(set(map(hash, lines)))
        if not fresh:
            return 0.0
        new = [line for line in lines if hash(line) in fresh]
        query = _find_words_of_query(url)
        own = 0
        shapes: set[int] = set()
        words: set[int] = set()
        # A sentence alone is enough for most pages.
        for line in chain(
            (line for line in new if len(line) >= _LONG_LINE), (line for line in new if len(line) < _LONG_LINE)
        ):
            found, numbers = _find_words(line)
            if query:
                found = [word for word in found if word not in query]
            found += numbers
            shape = hash(tuple(found))
            if not found or shape in shapes or shape in self._shapes:
                continue
            shapes.add(shape)
            hashes = set(map(hash, found))
            is_own = bool(numbers) or self._is_own(found, hashes - words, url)
            words |= hashes
            own += len(found) if is_own else 0
            if own >= _ENOUGH_WORDS:
                break
        self._shapes.add(shapes)
        self._words.add(words)
        if own >= _ENOUGH_WORDS:
            return 1.0
        # Words may be joined by something else than blanks.
        return min(1.0, own / max(sum(line.count(" ") + 1 for line in new), _MIN_WORDS))

    def _is_own(self, found: list[str], hashes: Iterable[int], url: str) -> bool:
        """Whether a line with the words ``found`` is the page's own; ``hashes`` are those not met on the page before."""
        if any(number not in self._words for number in hashes):
            return True
        if len(found) <= _SHORT_LINE:
            return False
        path = set(_find_words(unquote(url.partition("?")[0]))[0])
        return sum(1 for word in found if word not in path) > _SHORT_LINE


def _find_words(line: str) -> tuple[list[str], list[str]]:
    """The words of a line without ids, and without the digits at their ends; its numbers, where it is a row of a table."""
    words: list[str] = []
    numbers: list[str] = []
    for token in _TOKEN.findall(line[:_LINE_CHARACTERS].lower()):
        if token.isalpha():
            words.append(token)
        elif _IS_NUMBER.fullmatch(token) is not None:
            numbers.append(token)
        elif _LETTER.search(token) is not None and _ID.fullmatch(token) is None:
            words.append(token.strip(_DIGITS))
    return words, numbers if len(numbers) > 1 else []


def _find_words_of_query(url: str) -> Collection[str]:
    """The words in the query of a URL."""
    _, mark, query = url.partition("?")
    return set(_find_words(unquote(query))[0]) if mark else ()
