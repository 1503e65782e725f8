"""Blocks that stand on most pages of a host are no content of any of them: which ones, and a text without them (C8).

A block is a line of a text. A text loses those at its beginning and at its end; between other lines it loses long ones
alone, because a short line (a heading, a bracket) may stand on most pages and be content.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

import xxhash

#: Of fewer pages nothing can be said.
FEWEST_PAGES: Final = 10
#: The share of the pages, in percent, from which on a block is no content; one that was none stays so down to the other.
_ENTERS_AT: Final = 60
_STAYS_DOWN_TO: Final = 40
#: So many blocks of a host are kept: those on the most pages.
_MOST_BLOCKS: Final = 512
#: So many lines at the beginning and at the end of a page are counted, of lines with at most so many characters.
_COUNTED_LINES: Final = 200
_COUNTED_CHARACTERS: Final = 1_000
#: A line with so many characters is no content also between others.
_LONG_LINE: Final = 25


def count_blocks(texts: Iterable[str]) -> tuple[Counter[int], int]:
    """On how many of the texts each block stands, and how many texts there are."""
    counts: Counter[int] = Counter()
    pages = 0
    for text in texts:
        lines = text.split("\n")
        counted = {*lines[:_COUNTED_LINES], *lines[-_COUNTED_LINES:]}
        counts.update({_digest(line) for line in counted if len(line) <= _COUNTED_CHARACTERS})
        pages += 1
    return counts, pages


def select_blocks(counts: Counter[int], pages: int, *, before: Collection[int]) -> frozenset[int]:
    """The blocks that are no content; ``before`` are those of the last time."""
    if pages < FEWEST_PAGES:
        return frozenset()
    found = [
        (-count, block)
        for block, count in counts.items()
        if count * 100 >= pages * _ENTERS_AT or (count * 100 >= pages * _STAYS_DOWN_TO and block in before)
    ]
    return frozenset(block for _, block in sorted(found)[:_MOST_BLOCKS])


def cut_blocks(text: str, blocks: Collection[int]) -> str:
    """``text`` without blocks that are no content; all of it where nothing else would be left."""
    if not blocks or not text:
        return text
    lines = text.split("\n")
    known = [len(line) <= _COUNTED_CHARACTERS and _digest(line) in blocks for line in lines]
    if all(known):
        return text
    first, last = known.index(False), len(known) - known[::-1].index(False)
    kept = (
        line
        for line, is_known in zip(lines[first:last], known[first:last], strict=True)
        if not is_known or len(line) < _LONG_LINE
    )
    return "\n".join(kept)


def pack_blocks(blocks: Collection[int]) -> bytes:
    """The blocks as bytes, in the same order whatever theirs is."""
    return array("Q", sorted(blocks)).tobytes()


def unpack_blocks(packed: bytes) -> frozenset[int]:
    """The blocks that ``pack_blocks`` packed."""
    return frozenset(array("Q", packed))


def _digest(line: str) -> int:
    return xxhash.xxh3_64_intdigest(line.encode())
