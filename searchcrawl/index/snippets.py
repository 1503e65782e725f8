"""What snippets of all indexes have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from searchcrawl.index.receiver import HIT_END, HIT_START

_MARKS = frozenset((HIT_START, HIT_END))
_WIDTH_CHARS: Final = 240
_LEAD_CHARS: Final = 60
_MARKED: Final = re.compile(f"{HIT_START}([^{HIT_START}{HIT_END}]*){HIT_END}")
# Text that was stored before sanitising removed these characters may still have them.
_WITHOUT_MARKS: Final = str.maketrans(dict.fromkeys(_MARKS))


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


def cut_around(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """About 240 characters of a text with the hits, which are at ``spans``, marked, and … where text was left out."""
    start, end = _choose_window(text, spans)
    pieces: list[str] = []
    done = start
    for left, right in spans:
        if start <= left and right <= end:
            pieces += [_strip_marks(text[done:left]), HIT_START, _strip_marks(text[left:right]), HIT_END]
            done = right
    pieces.append(_strip_marks(text[done:end]))
    passage = " ".join("".join(pieces).split())
    return f"{'… ' if start else ''}{passage}{' …' if end < len(text.rstrip()) else ''}"


def shorten(passage: str) -> str:
    """A passage with marks, cut around them: what an index takes for a sentence may be a table or a list."""
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0
    # The texts between hits and the hits take turns.
    for number, part in enumerate(_MARKED.split(passage)):
        if number % 2:
            spans.append((length, length + len(part)))
        plain.append(part)
        length += len(part)
    return cut_around("".join(plain), spans)


def _choose_window(text: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Begin and end of the passage with the most characters of different hits, cut between words."""
    first = max(range(len(spans)), key=lambda index: _count_characters(text, spans, index), default=None)
    start = 0 if first is None else max(0, spans[first][0] - _LEAD_CHARS)
    if start:
        blank = text.find(" ", start, spans[first][0] if first is not None else start)
        start = blank + 1 if blank >= 0 else start
    end = min(len(text), start + _WIDTH_CHARS)
    if end < len(text):
        blank = text.rfind(" ", start + _WIDTH_CHARS // 2, end)
        end = blank if blank >= 0 else end
    return start, end


def _count_characters(text: str, spans: Sequence[tuple[int, int]], first: int) -> int:
    limit = spans[first][0] + _WIDTH_CHARS - _LEAD_CHARS
    different: set[str] = set()
    # Not a copy of the rest: a passage may have thousands of hits, and each is tried as the first one.
    for number in range(first, len(spans)):
        left, right = spans[number]
        if right > limit:
            break
        different.add(text[left:right].lower())
    return sum(map(len, different))


def _strip_marks(text: str) -> str:
    return text.translate(_WITHOUT_MARKS)
