"""How similar two texts are, without regard to numbers, times and tokens in them (L9, X-R17)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Final

#: A word; in scripts without blanks each character is one.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|\w+")
#: Longer words are tokens.
_LONGEST_WORD: Final = 30

#: Words, and pairs of neighbours.
Features = frozenset[str | tuple[str, str]]


def words_of(text: str) -> list[str]:
    """The words of ``text`` in lower case, in order; for one that holds a digit or is as long as a token, ""."""
    return [
        word if word.isalpha() and len(word) <= _LONGEST_WORD else ""
        for word in _WORD.findall(text.lower().replace("_", " "))
    ]


def features_of(words: Iterable[str], *, without: Collection[str] = ()) -> Features:
    """All of ``words`` and all pairs of neighbours, but for blank ones and those that hold one of ``without``."""
    kept = [word if word not in without else "" for word in words] if without else list(words)
    return frozenset(filter(None, kept)).union(filter(all, pairwise(kept)))


def distance(one: Features, other: Features) -> float:
    """How far two texts are from each other: 0 for the same, 1 where they have nothing in common (Jaccard)."""
    together = len(one | other)
    return 1 - len(one & other) / together if together else 0.0
