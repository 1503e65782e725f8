"""The new-content ratio: how much of a page's text is new among pages of its pattern (L8).

Near copies, and pages that differ in numbers and dates only, have the ratio 0. Lines that earlier pages of the
pattern had are left out: navigation makes different pages look alike. Of the other lines numbers, dates and words of
the page's own URL are left out. The rest is compared as runs of words, and as a whole by a simhash (Charikar 2002,
64 bits).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import xxhash

#: A run is a word with the words before it in its line: so many words.
_RUN_WORDS: Final = 10
#: How many characters of a page are compared, and how many words of its unknown lines.
_MAX_CHARACTERS: Final = 65_536
_MAX_WORDS: Final = 256
#: A shorter page is treated as one with this many words, so that one new word is not a large ratio.
_MIN_WORDS: Final = 16
#: Texts with fewer runs have no simhash.
_MIN_SIMHASH_WORDS: Final = 32
#: The simhashes of near copies differ in at most this many of 64 bits.
NEAR_BITS: Final = 6
#: Pages with a smaller ratio are not compared by simhash.
_COPY: Final = 0.05
#: Lines of at least this many characters are compared with those of all other pages.
_LONG_LINE: Final = 60
_KNOWN_LINES: Final = 40_000
#: With ``roughly``, a page with this many characters in unknown lines is not compared.
_MUCH: Final = 300
#: What one pattern remembers: at most twice these numbers of lines, runs and copies, and this number of simhashes.
_LINES: Final = 2048
_RUNS: Final = 2048
_COPIES: Final = 1024
_SIMHASHES: Final = 1024
# A word, or a number with a fraction or groups of digits that is no part of a date or version.
_TOKEN: Final = re.compile(r"[^\W\d_][\w'’-]*|(?<![\d.,/-])\d+(?:[.,]\d{3})*[.,]\d+(?![.,/-]?\d)")
_ONE_BIT: Final = tuple(bytes(value >> bit & 1 for value in range(256)) for bit in range(8))


class Recent:
    """A bounded set of at most twice ``limit`` numbers; numbers that were not added for a long time are dropped."""

    def __init__(self, limit: int, known: Iterable[int] = ()) -> None:
        self._limit = limit
        self._young: set[int] = set(known)
        self._old: set[int] = set()

    @property
    def newest(self) -> list[int]:
        """At most ``limit`` of the numbers, the newest ones."""
        return list(self._young)[: self._limit]

    def add(self, numbers: Collection[int]) -> set[int]:
        """Adds numbers; returns those that were new."""
        added = numbers if isinstance(numbers, set) else set(numbers)
        fresh = added - self._young - self._old
        if len(self._young) >= self._limit:
            self._young, self._old = set(), self._young
        self._young |= added
        return fresh


class PageText(NamedTuple):
    """The text of a page for the comparison: its lines and their hashes.

    ``elsewhere`` are the hashes of lines that another page has under a URL that is not longer: they count as known.
    """

    url: str
    digest: bytes
    lines: Sequence[str]
    hashes: Sequence[int]
    elsewhere: Collection[int]


class KnownLines:
    """The long lines of all recent pages, each with the length of its shortest URL; about 10 MB at most.

    A line is new for the page with the shortest URL. So a copy with a longer URL (with a session id) has no new text,
    and an original that is found after its copies has.
    """

    def __init__(self) -> None:
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def add_page(self, url: str, text: str, digest: bytes) -> PageText:
        """Adds the lines of a page, and returns the page for the comparison; ``digest`` is the digest of its text."""
        lines = text[:_MAX_CHARACTERS].split("\n")
        hashes = list(map(hash, lines))
        if len(self._young) >= _KNOWN_LINES:
            self._young, self._old = {}, self._young
        # The hash of a string is computed once and kept in the string.
        long = set(map(hash, [line for line in lines if len(line) >= _LONG_LINE]))
        length, young, old = len(url), self._young, self._old
        # A page has hundreds of lines, most of them new: sets handle these without a Python loop.
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


class NewContent:
    """The text that pages of one pattern have brought so far; about 0.6 MB at most."""

    def __init__(self, packed_runs: bytes = b"") -> None:
        self._lines = Recent(_LINES)
        self._copies = Recent(_COPIES)
        self._runs = Recent(_RUNS, _unpack(packed_runs))
        self._simhashes: list[int] = []

    def pack(self) -> bytes:
        """The runs of words as bytes, for the process that continues with them."""
        return array("q", self._runs.newest).tobytes()

    def measure(self, page: PageText, *, roughly: bool = False) -> float | None:
        """Returns the new-content ratio of a page, from 0 to 1, and remembers its text.

        With ``roughly`` it returns None for a page with many characters in unknown lines, and compares no words. That
        is cheaper, and enough for a pattern whose pages brought much new text so far.
        """
        if not self._copies.add((int.from_bytes(page.digest[:7], "big"),)):
            return 0.0
        fresh = self._lines.add(set(page.hashes))
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
        # A run that occurs twice in the page counts once.
        runs = set(find_runs(new, page.url))
        if not runs:
            return 0.0
        ratio = len(self._runs.add(runs)) / max(len(runs) + known_words, _MIN_WORDS)
        if (
            ratio >= _COPY
            and len(runs) >= _MIN_SIMHASH_WORDS
            and self._is_near(simhash([run for run in runs if run & 1]))
        ):
            return 0.0
        return ratio

    def _is_near(self, value: int) -> bool:
        if any((value ^ other).bit_count() <= NEAR_BITS for other in self._simhashes):
            return True
        self._simhashes.append(value)
        del self._simhashes[:-_SIMHASHES]
        return False


def find_runs(lines: Iterable[str], url: str) -> list[int]:
    """The runs of words in ``lines`` as 64-bit numbers, for the first _MAX_WORDS words."""
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
        found += _hash_runs(words)
        # A single number in a line is a counter or a price; several are a row of a table.
        if len(numbers) > 1:
            found += _hash_runs(numbers)
        if len(found) >= _MAX_WORDS:
            break
    return found[:_MAX_WORDS]


def _hash_runs(words: Sequence[str]) -> list[int]:
    if not words:
        return []
    encoded = " ".join(words).encode("utf-8", "surrogatepass").split(b" ")
    hashes = [0] * (_RUN_WORDS - 1) + list(map(xxhash.xxh3_64_intdigest, encoded))
    return list(map(hash, zip(*(hashes[start:] for start in range(_RUN_WORDS)), strict=False)))


def simhash(features: Sequence[int]) -> int:
    """A number of 64 bits: the more ``features`` (signed 64-bit numbers) two texts share, the fewer bits differ."""
    packed = array("q", features).tobytes()
    half = len(features) / 2
    value = 0
    for place in range(8):
        column = packed[place::8]
        for bit, table in enumerate(_ONE_BIT):
            value |= (column.translate(table).count(1) > half) << (8 * place + bit)
    return value


def _unpack(packed_runs: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(packed_runs)
    return numbers
