"""What tells a trap: the patterns of its URLs, how much of a page's text is its own, and how a pattern grows. Pure.

`TrapWatch` asks, in the writer thread; `explain` does for one URL.

See L8, L12, F5, and X-T1 to X-T6.

A pattern is a set of URLs that differ in numbers, ids and parameter values. They are computed once for each page, and for
links only if a pattern is cut or limited.

The own text of a page stands on no page that was read before. Numbers, ids, and the words of the query of the page's own
URL say nothing: a page of a calendar, or of a list that is filtered and sorted in many ways, has no text of its own because
of them. A line that nobody had before is the page's own if it has a word that nobody had before, which is mostly the name
of what the page is about, or many words, or several numbers with fractions.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import unquote

from searchcrawl.items import Link
from searchcrawl.rules.archives import list_archives

#: The placeholder for a number or an id.
_VARIABLE: Final = "{n}"
# In this order: a UUID; hex digits; letters and digits mixed; any long word with a digit. Percent escapes are no ids.
_ID: Final = re.compile(
    r"(?<![0-9A-Za-z%])(?:"
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}(?![0-9A-Za-z])"
    r"|(?:[A-Za-z]++[0-9]++[A-Za-z]|[0-9]++[A-Za-z]++[0-9])[0-9A-Za-z]*+"
    r"|(?=[A-Za-z]*[0-9])[0-9A-Za-z]{16,}+"
    r")"
)
_NUMBER: Final = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])[0-9]+")
# Numbers joined to a date or time, as 2026-11-21 or 12.34.56, are one placeholder.
_JOINED: Final = re.compile(r"\{n\}(?:[-_.,:~+]\{n\})+")
_ADDRESS: Final = re.compile(r"[0-9.]+")
_HAS_DIGIT: Final = re.compile("[0-9]")
_OF_HOSTS: Final = re.compile(r"[^/?]+//[^/?]+/\*\*")
_FEWEST_LABELS: Final = 3


class Level(IntEnum):
    """How much the URLs of a pattern may differ; a higher level is a wider pattern."""

    #: they differ in numbers, ids and parameter values
    VALUES = 0
    #: also in the set of parameters, or in the last segment of the path
    FACETS = 1
    #: all URLs below a first segment of the path
    BRANCH = 2
    #: all URLs of a host
    HOST = 3
    #: all URLs of the hosts below a domain
    HOSTS = 4


class Pattern(NamedTuple):
    """A pattern as it is shown: ``http://a.test/calendar/{n}?month&year``; ``*`` stands for anything."""

    level: Level
    text: str


def find_patterns(url: str) -> list[Pattern]:
    """The patterns that ``url`` (an identity) belongs to, the narrowest first, each text once.

    There is one of level VALUES only if the URL has a number, an id or a query.
    """
    slash = url.find("/", 8)
    origin, above = _split_origin(url[:slash])
    path, mark, query = url[slash:].partition("?")
    shape = replace_numbers(path)
    rest = "?*" if mark else ""
    found: list[Pattern] = []
    if mark:
        found = [
            Pattern(Level.VALUES, f"{origin}{shape}?{_join_names(query)}"),
            Pattern(Level.FACETS, f"{origin}{shape}?*"),
        ]
    elif shape != path or origin != url[:slash]:
        found = [Pattern(Level.VALUES, origin + shape)]
    trunk = shape.rstrip("/")
    segments = trunk.count("/")
    if segments:
        if not mark:
            found.append(Pattern(Level.FACETS, f"{origin}{trunk.rpartition('/')[0]}/*"))
        if segments > 1:
            found.append(Pattern(Level.BRANCH, f"{origin}/{trunk.split('/', 2)[1]}/**{rest}"))
    found.append(Pattern(Level.HOST, f"{origin}/**"))
    if above:
        found.append(Pattern(Level.HOSTS, f"{above}/**"))
    return found


def find_pattern(
    url: str, among: Container[str], productive: Container[str], spared: Container[str] = ()
) -> str | None:
    """The narrowest pattern of ``among`` that ``url`` belongs to; None if a narrower one of it is ``productive``.

    It is None as well for a pattern of whole hosts where a narrower one is ``spared``, and for a file in an archive: there
    are no more of them than one may have.
    """
    return None if list_archives(url) else find_among(find_patterns(url), among, productive, spared)


def find_among(
    patterns: Iterable[Pattern], among: Container[str], productive: Container[str], spared: Container[str]
) -> str | None:
    """The same for the ``patterns`` of a URL, narrowest first."""
    is_spared = False
    for level, text in patterns:
        if text in among:
            return None if is_spared and level >= Level.HOST else text
        if text in productive:
            return None
        is_spared = is_spared or text in spared
    return None


def is_of_hosts(pattern: str) -> bool:
    """Whether a pattern, given by its text, is that of all URLs of a host, or of the hosts below a domain."""
    return _OF_HOSTS.fullmatch(pattern) is not None


def build_counted_pattern(url: str) -> str | None:
    """The pattern whose URLs are counted: that of level VALUES, and None for a file in an archive."""
    return None if list_archives(url) else build_values_pattern(url)


def build_values_pattern(url: str) -> str | None:
    """The pattern of level VALUES; None where the URL has no number, id or query."""
    slash = url.find("/", 8)
    origin, _ = _split_origin(url[:slash])
    path, mark, query = url[slash:].partition("?")
    shape = replace_numbers(path)
    if mark:
        return f"{origin}{shape}?{_join_names(query)}"
    return None if shape == path and origin == url[:slash] else origin + shape


def replace_numbers(text: str) -> str:
    """Replaces each number and id of ``text`` by ``{n}``."""
    if _HAS_DIGIT.search(text) is None:
        return text
    shape = _NUMBER.sub(_VARIABLE, _ID.sub(_VARIABLE, text))
    return _JOINED.sub(_VARIABLE, shape) if shape.count(_VARIABLE) > 1 else shape


@lru_cache(maxsize=4096)
def _split_origin(origin: str) -> tuple[str, str]:
    """The origin with numbers and ids of its host replaced, and the one of all hosts of its domain, or ""."""
    scheme, _, netloc = origin.partition("://")
    host, colon, port = netloc.partition(":")
    if netloc.startswith("[") or _ADDRESS.fullmatch(host):
        return origin, ""
    # Label by label: a placeholder never includes a dot.
    labels = [replace_numbers(label) for label in host.split(".")]
    above = ""
    if len(labels) >= _FEWEST_LABELS and labels[0] != "www":
        above = f"{scheme}://*.{'.'.join(labels[1:])}{colon}{port}"
    return f"{scheme}://{'.'.join(labels)}{colon}{port}", above


def _join_names(query: str) -> str:
    """The names of the parameters, sorted, each once: their order and number do not matter."""
    if "&" not in query:
        return replace_numbers(query.partition("=")[0])
    return "&".join(sorted({replace_numbers(part.partition("=")[0]) for part in query.split("&") if part}))


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
_TOKEN_ID: Final = re.compile(
    r"(?=[a-f]*[0-9])[0-9a-f]{8,}|(?=[a-z]*[0-9])[0-9a-z]{16,}|[a-z]*[0-9]+[a-z]+[0-9][0-9a-z]*"
)
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
        _, mark, of_query = url.partition("?")
        query = set(_find_words(unquote(of_query))[0]) if mark else ()
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
        elif _LETTER.search(token) is not None and _TOKEN_ID.fullmatch(token) is None:
            words.append(token.strip(_DIGITS))
    return words, numbers if len(numbers) > 1 else []


#: It grows as fast as it is visited: so many new URLs of it a page, by so large a share of its pages.
_NAMED_A_PAGE: Final = 0.9
_NAMING_SHARE: Final = 0.5
#: It makes its own pages if pages outside name no larger share of its new URLs.
_MOST_FROM_OUTSIDE: Final = 0.1
#: Pages have no text of their own if their mean share (``rules.traps``) is below this.
BARE: Final = 0.05
#: The share 1 in its stored form, a byte.
_STORED_ONE: Final = 255


@dataclass(slots=True)
class Span:
    """What was seen while some pages of a pattern were visited."""

    #: pages that were visited
    pages: int = 0
    #: those of them that named a URL, of any pattern, which nobody had named before
    naming: int = 0
    #: new URLs of the pattern that were named, by any page
    named: int = 0
    #: those of them that were named by pages outside
    outside: int = 0

    @property
    def grew(self) -> bool:
        """Whether the pattern grew as fast as it was visited."""
        return self.naming >= _NAMING_SHARE * self.pages and self.named >= _NAMED_A_PAGE * self.pages

    @property
    def grew_by_itself(self) -> bool:
        """The same, and its own pages named what is new."""
        return self.grew and self.outside <= _MOST_FROM_OUTSIDE * self.named


@dataclass(slots=True)
class WatchedPattern:
    """What is known of a pattern; spans begin anew after so many pages."""

    pages: int = 0
    #: how many they were when it was written
    noted: int = 0
    #: the shares of own text of its last pages, each as a byte (255 is 1)
    shares: bytearray = field(default_factory=bytearray)
    span: Span = field(default_factory=Span)
    #: in so many spans in a row it grew, and grew by itself
    grown: int = 0
    grown_by_itself: int = 0
    #: its URLs are visited after all others: what was seen since
    last: Span | None = None
    #: so many of its URLs wait to be visited last
    queued: int = 0

    def add_share(self, share: float, *, most: int) -> None:
        """Notes a page with its share of own text; ``most`` shares are kept."""
        self.pages += 1
        self.shares.append(round(_STORED_ONE * share))
        del self.shares[:-most]

    def mean_of(self, last: int) -> float:
        """The mean share of the ``last`` pages, or of fewer; 1 if none is known."""
        shares = self.shares[-last:]
        return sum(shares) / (_STORED_ONE * len(shares)) if shares else 1.0

    def end_span(self) -> None:
        """Takes the span that is over into account, and begins another."""
        self.grown = self.grown + 1 if self.span.grew else 0
        self.grown_by_itself = self.grown_by_itself + 1 if self.span.grew_by_itself else 0
        self.span = Span()
