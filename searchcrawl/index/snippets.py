"""What snippets of all indexes have in common."""

from __future__ import annotations

from collections.abc import Callable

from searchcrawl.index.receiver import HIT_END, HIT_START

_MARKS = frozenset((HIT_START, HIT_END))


def has_mark(text: str) -> bool:
    """Whether a hit is marked in a text."""
    return HIT_START in text


def leave_out_title(text: str, title: str, *, has_hit: Callable[[str], object] = has_mark) -> str:
    """The text of a page without its first line where that is the title: a hit shows it already.

    The text may have marks of hits. The title stays where it is all, or has the only words that were found.
    """
    line, _, rest = text.lstrip().partition("\n")
    if not rest.strip() or not title or len(line) > 3 * len(title):
        return text
    said = "".join(letter for letter in line if letter not in _MARKS).split()
    return rest if said == title.split() and (has_hit(rest) or not has_hit(line)) else text
