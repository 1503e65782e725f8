"""Which texts of links say something of the page that they lead to (C8, G2).

Texts with the same letters are one, whatever their case. No list of words is needed: a word that leads to many documents
(next, section) says nothing of any, and what its title says of one need not be said again; a text has a word that is neither.
What stands on most pages of a host is a menu.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import xxhash

#: So many different texts has a document.
MOST_TEXTS: Final = 20
#: A word that leads to more documents than these, and this share of them (in 1/1000), says nothing of any.
_MOST_TARGETS: Final = 5
_MOST_PERMILLE: Final = 5
#: From so many pages of a host on, what links from at least this share of them (in percent) is a menu.
_FEWEST_PAGES: Final = 10
_MENU_PERCENT: Final = 50
#: Words share a counter with few others of the same remainder: what is counted does not depend on their order.
_COUNTERS: Final = 1 << 20
_WORD: Final = re.compile(r"\w+")


class Linked(NamedTuple):
    """One spelling of a text for a document, and how many pages of a host have it."""

    folded: str
    text: str
    host_id: int
    pages: int


class WordCounts:
    """To how many documents the words of links lead."""

    def __init__(self) -> None:
        self._counts = array("I", bytes(array("I").itemsize * _COUNTERS))
        self._documents = 0

    def add(self, folded: Iterable[str]) -> None:
        """Counts the words of the texts of one document."""
        self._documents += 1
        for word in set[str]().union(*map(_split, folded)):
            self._counts[_find_counter(word)] += 1

    def says_something(self, word: str) -> bool:
        """Whether a word leads to so few documents that it says something of each."""
        count = self._counts[_find_counter(word)]
        return count <= _MOST_TARGETS or count * 1000 <= self._documents * _MOST_PERMILLE


def select_texts(
    linked: Iterable[Linked], *, title: str, counts: WordCounts, pages_of_host: Mapping[int, int]
) -> list[str]:
    """The texts of links to a document of this title, sorted: those from the most pages, if there are too many."""
    known = _split(title.casefold())
    pages: dict[str, int] = {}
    texts: dict[str, str] = {}
    for folded, text, host_id, count in linked:
        if _is_of_menu(count, pages_of_host.get(host_id, 0)):
            continue
        pages[folded] = pages.get(folded, 0) + count
        texts[folded] = min(text, texts.get(folded, text))
    said = [folded for folded in pages if any(map(counts.says_something, _split(folded) - known))]
    said.sort(key=lambda folded: (-pages[folded], folded))
    return sorted(texts[folded] for folded in said[:MOST_TEXTS])


def _is_of_menu(pages: int, of: int) -> bool:
    return of >= _FEWEST_PAGES and pages * 100 >= of * _MENU_PERCENT


def _split(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _find_counter(word: str) -> int:
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "replace")) % _COUNTERS
