"""How much of a page's text is new among pages like it (L8): near copies, and pages that only count on, bring nothing.

Lines that such a page had before are no part of it: navigation makes real pages look alike. Of the others
numbers, dates and what stands in the page's own URL are left out; the rest is compared as runs of
words, and as a whole by a simhash (Charikar 2002, 64 bits).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import xxhash

#: A word and so many before it in its line are one piece of text.
_RUN_WORDS: Final = 10
#: So much of a page is looked at, and of its unknown lines.
_MAX_CHARACTERS: Final = 65_536
_MAX_WORDS: Final = 256
#: A page counts as so many words at least: one new word of a very short one is more than nothing.
_MIN_WORDS: Final = 16
#: Less is compared word by word alone.
_MIN_SIMHASH_WORDS: Final = 32
#: In so many of 64 bits the simhashes of near copies differ at most.
NEAR_BITS: Final = 6
_COPY: Final = 0.05
#: Lines of so many characters are compared with all other pages'.
_LONG_LINE: Final = 60
_KNOWN_LINES: Final = 40_000
#: So many characters are too many to be looked at for nothing.
_MUCH: Final = 300
#: What one pattern remembers: lines, runs, copies, each at most twice as many; and simhashes.
_LINES: Final = 2048
_RUNS: Final = 2048
_COPIES: Final = 1024
_SIMHASHES: Final = 1024
# A word; numbers with a fraction or groups, and no part of a date or a version.
_TOKEN: Final = re.compile(r"[^\W\d_][\w'’-]*|(?<![\d.,/-])\d+(?:[.,]\d{3})*[.,]\d+(?![.,/-]?\d)")
_ONE_BIT: Final = tuple(bytes(value >> bit & 1 for value in range(256)) for bit in range(8))


class Recent:
    """A set of the numbers met lately: at most twice ``limit``; what is asked for stays."""

    def __init__(self, limit: int, known: Iterable[int] = ()) -> None:
        self._limit = limit
        self._young: set[int] = set(known)
        self._old: set[int] = set()

    @property
    def newest(self) -> list[int]:
        """At most ``limit`` of them."""
        return list(self._young)[: self._limit]

    def learn(self, numbers: Collection[int]) -> set[int]:
        """Those of ``numbers`` that were not known; all are from now on."""
        given = numbers if isinstance(numbers, set) else set(numbers)
        fresh = given - self._young - self._old
        if len(self._young) >= self._limit:
            self._young, self._old = set(), self._young
        self._young |= given
        return fresh


class PageText(NamedTuple):
    """A page as it is compared: its lines, their hashes, and those hashes that a better page has, too."""

    url: str
    digest: bytes
    lines: Sequence[str]
    hashes: Sequence[int]
    elsewhere: Collection[int]


class KnownLines:
    """The long lines of all pages met lately, and the length of the shortest URL that has them.

    A copy under a longer URL (a session id more) brings nothing; the original that is found after its copies does.
    About 10 MB at most.
    """

    def __init__(self) -> None:
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def read(self, url: str, text: str, digest: bytes) -> PageText:
        """A page, whose lines are known from now on; ``digest`` is that of its text."""
        lines = text[:_MAX_CHARACTERS].split("\n")
        hashes = list(map(hash, lines))
        if len(self._young) >= _KNOWN_LINES:
            self._young, self._old = {}, self._young
        # A string keeps its hash.
        long = set(map(hash, [line for line in lines if len(line) >= _LONG_LINE]))
        length, young, old = len(url), self._young, self._old
        # A page has hundreds of lines: those that are new, most of them, cost no step of Python each.
        known = long & young.keys()
        fresh = long - known
        young |= dict.fromkeys(fresh, length)
        elsewhere: set[int] = set()
        for number in known:
            if young[number] <= length:
                elsewhere.add(number)
            else:
                young[number] = length
        for number in fresh & old.keys():
            if old[number] <= length:
                elsewhere.add(number)
                young[number] = old[number]
        return PageText(url, digest, lines, hashes, elsewhere)


class Novelty:
    """The text that pages of one pattern have brought so far; about 0.6 MB at most."""

    def __init__(self, evidence: bytes = b"") -> None:
        self._lines = Recent(_LINES)
        self._copies = Recent(_COPIES)
        self._runs = Recent(_RUNS, _unpacked(evidence))
        self._simhashes: list[int] = []

    def packed(self) -> bytes:
        """What another process has to know to go on."""
        return array("q", self._runs.newest).tobytes()

    def share(self, page: PageText, *, roughly: bool = False) -> float | None:
        """How much of the text of ``page`` is new, from 0 to 1; it is known from now on.

        ``roughly`` answers None, for the price of its lines, where a page has much that may be new: who brought
        much until now is not asked for all.
        """
        if not self._copies.learn((int.from_bytes(page.digest[:7], "big"),)):
            return 0.0
        fresh = self._lines.learn(set(page.hashes))
        if not fresh:
            return 0.0
        new: list[str] = []
        size = known_words = 0
        for line, number in zip(page.lines, page.hashes, strict=True):
            if number not in fresh:
                continue
            if number in page.elsewhere:
                known_words += line.count(" ") + 1
                continue
            new.append(line)
            size += len(line)
            if roughly and size >= _MUCH:
                return None
        # What a page says again and again is new once.
        runs = set(runs_of(new, page.url))
        if not runs:
            return 0.0
        share = len(self._runs.learn(runs)) / max(len(runs) + known_words, _MIN_WORDS)
        if (
            share >= _COPY
            and len(runs) >= _MIN_SIMHASH_WORDS
            and self._is_near(simhash([run for run in runs if run & 1]))
        ):
            return 0.0
        return share

    def _is_near(self, value: int) -> bool:
        if any((value ^ other).bit_count() <= NEAR_BITS for other in self._simhashes):
            return True
        self._simhashes.append(value)
        del self._simhashes[:-_SIMHASHES]
        return False


def runs_of(lines: Iterable[str], url: str) -> list[int]:
    """The runs of words in ``lines``, as 64-bit numbers, one for each of the first words."""
    echoed = set(_TOKEN.findall(unquote(url).lower()))
    found: list[int] = []
    for line in lines:
        words: list[str] = []
        numbers: list[str] = []
        for token in _TOKEN.findall(line.lower()):
            if token[0].isdigit():
                numbers.append(token)
            elif token not in echoed:
                words.append(token)
        found += _runs(words)
        # One number is a counter or a price; a row of them is a table.
        if len(numbers) > 1:
            found += _runs(numbers)
        if len(found) >= _MAX_WORDS:
            break
    return found[:_MAX_WORDS]


def _runs(words: Sequence[str]) -> list[int]:
    if not words:
        return []
    encoded = " ".join(words).encode("utf-8", "surrogatepass").split(b" ")
    hashes = [0] * (_RUN_WORDS - 1) + list(map(xxhash.xxh3_64_intdigest, encoded))
    return list(map(hash, zip(*(hashes[start:] for start in range(_RUN_WORDS)), strict=False)))


def simhash(features: Sequence[int]) -> int:
    """64 bits that differ the less the more of ``features`` (signed 64-bit numbers) two texts share."""
    packed = array("q", features).tobytes()
    half = len(features) / 2
    value = 0
    for place in range(8):
        column = packed[place::8]
        for bit, table in enumerate(_ONE_BIT):
            value |= (column.translate(table).count(1) > half) << (8 * place + bit)
    return value


def _unpacked(evidence: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(evidence)
    return numbers
