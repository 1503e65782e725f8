"""Whether known pages of a host have turned into one text: a login form, a notice, an error page (L9, X-R17, 965).

Such texts may differ in numbers, tokens and a few words, and in words of the URL or the title of the page. A text is
compared with others by a sketch: the smallest hashes of its words. Pages whose texts are near to each other are a
cluster. Whether its pages have turned is decided by their whole texts: a page has, where it has no text of its own any
more and has lost most of the words that were its own.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self
from urllib.parse import unquote, urlsplit

import xxhash

#: A word; in scripts without blanks each character is one.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]|\w+")
#: Longer words are tokens.
_LONGEST_WORD: Final = 30


def split_words(text: str) -> list[str]:
    """All words, numbers and tokens of ``text`` in lower case, in order."""
    return _WORD.findall(text.lower().replace("_", " "))


def is_plain(word: str) -> bool:
    """Whether ``word`` is no number and no token: it holds no digit, and is not as long as a token."""
    return word.isalpha() and len(word) <= _LONGEST_WORD


def words_of(text: str) -> list[str]:
    """The words of ``text`` in lower case, in order; for one that holds a digit or is as long as a token, ""."""
    return [word if is_plain(word) else "" for word in split_words(text)]


def split_url(url: str) -> list[str]:
    """The words, numbers and tokens of the path, the query and the route of a URL."""
    parsed = urlsplit(url)
    return split_words(unquote(f"{parsed.path} {parsed.query} {parsed.fragment}"))


#: How many characters of a text are compared.
_MAX_CHARACTERS: Final = 32_768
#: A sketch has so many hashes of words, and a cluster is found by so many of them.
_SKETCH_WORDS: Final = 64
_KEYS: Final = 8
#: Texts that are near to each other have one in so many of these keys in common, or more.
_SHARED_KEYS: Final = 3
#: Of so many clusters that a hash leads to, those with the most pages are kept.
_CLUSTERS_OF_KEY: Final = 3
_MOST_CLUSTERS: Final = 5_000
#: Texts that are near to each other have at most this many words of their own, and one in so many more.
_OWN_WORDS: Final = 3
_OWN_OF_SKETCH: Final = 40
_OWN_OF_TEXT: Final = 100
#: A text with so many times the words of another one is not like it.
_MOST_TIMES: Final = 4
#: A placeholder page has at most so many numbers and tokens of its own.
_OWN_TOKENS: Final = 24
#: Of so many pages the words are compared to find those that they have in common.
_COMPARED: Final = 20
#: Without the earlier text: a page whose length changed by no more bytes has changed a number or a date.
_SAME_BYTES: Final = 8


class PageWords(NamedTuple):
    """The different words of a text, and those of its URL and its title, which a placeholder page may repeat."""

    words: frozenset[str]
    echoes: frozenset[str]

    @classmethod
    def of(cls, url: str, title: str, text: str) -> Self:
        echoes = frozenset(split_url(url)).union(split_words(title[:_MAX_CHARACTERS]))
        return cls(frozenset(split_words(text[:_MAX_CHARACTERS])), echoes)


class Sketch(NamedTuple):
    """The smallest hashes of the words of a text: of those that are its own, and of those of its URL or title."""

    plain: array[int]
    echoed: array[int]

    @classmethod
    def of(cls, page: PageWords) -> Self:
        """The sketch of a page; numbers and tokens are left out."""
        return cls(_hash_words(page.words - page.echoes), _hash_words(page.words & page.echoes))

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        count, *hashes = array("I", packed)
        return cls(array("I", hashes[:count]), array("I", hashes[count:]))

    def pack(self) -> bytes:
        return array("I", [len(self.plain), *self.plain, *self.echoed]).tobytes()

    def is_near(self, other: Sketch) -> bool:
        """Whether the texts have no more than a few words of their own."""
        # Beyond the largest hash of a full sketch its words are not known.
        full = [sketch.plain[-1] for sketch in (self, other) if len(sketch.plain) == _SKETCH_WORDS]
        most = min(full, default=0xFFFFFFFF)
        one, two = ({value for value in sketch.plain if value <= most} for sketch in (self, other))
        allowed = _count_allowed(max(len(one), len(two)), _OWN_OF_SKETCH)
        return len(one - two - set(other.echoed)) <= allowed and len(two - one - set(self.echoed)) <= allowed


def _hash_words(words: Collection[str]) -> array[int]:
    encoded = " ".join(filter(is_plain, words)).encode("utf-8", "surrogatepass").split()
    return array("I", sorted(set(map(xxhash.xxh32_intdigest, encoded)))[:_SKETCH_WORDS])


def _count_allowed(words: int, one_in: int) -> int:
    return min(_OWN_WORDS, words // 4) + words // one_in


@dataclass(slots=True, eq=False)
class Cluster:
    """Pages whose texts are near to each other.

    ``members`` are those that were stored and are not judged yet, or have turned; each with whether the cache still has
    its earlier text. ``turned`` counts all that have.
    """

    host: str
    sketch: Sketch
    pages: int = 0
    turned: int = 0
    members: dict[int, bool] = field(default_factory=dict)
    comparison: Comparison | None = None


class Clusters:
    """The changed pages of one run by the nearness of their texts, for each host; about 15 MB at most.

    If there are too many, those with the fewest pages are forgotten, and of these the oldest.
    """

    def __init__(self) -> None:
        self._clusters: list[Cluster] = []
        self._by_key: dict[tuple[str, int], list[Cluster]] = {}

    def find_or_add(self, host: str, sketch: Sketch) -> Cluster:
        """The cluster of a page."""
        keys = _list_keys(host, sketch)
        near = [cluster for cluster in self._list_candidates(keys) if cluster.sketch.is_near(sketch)]
        if near:
            return max(near, key=_count_pages)
        if len(self._clusters) >= _MOST_CLUSTERS:
            self._forget()
        cluster = Cluster(host, sketch)
        self._add(cluster, keys)
        return cluster

    def _list_candidates(self, keys: Collection[tuple[str, int]]) -> list[Cluster]:
        """Clusters that share a good part of the keys: texts with the same navigation share some of them."""
        shared = Counter(cluster for key in keys for cluster in self._by_key.get(key, ()))
        return [cluster for cluster, count in shared.items() if count * _SHARED_KEYS >= len(keys)]

    def _add(self, cluster: Cluster, keys: Collection[tuple[str, int]]) -> None:
        self._clusters.append(cluster)
        for key in keys:
            found = self._by_key.setdefault(key, [])
            found.append(cluster)
            if len(found) > _CLUSTERS_OF_KEY:
                # The oldest of those with the fewest pages.
                found.remove(min(found, key=_count_pages))

    def _forget(self) -> None:
        # Sorting keeps the order of those with as many pages.
        kept = sorted(self._clusters, key=_count_pages)[-(_MOST_CLUSTERS // 2) :]
        self._clusters, self._by_key = [], {}
        for cluster in kept:
            self._add(cluster, _list_keys(cluster.host, cluster.sketch))


def _list_keys(host: str, sketch: Sketch) -> list[tuple[str, int]]:
    """By what a cluster is found; a text without words has one key as well."""
    return [(host, value) for value in sketch.plain[:_KEYS]] or [(host, -1)]


def _count_pages(cluster: Cluster) -> int:
    return cluster.pages


class Version(NamedTuple):
    """A page that changed: its words before and now, and by how many bytes its length changed.

    ``before`` and ``now`` are None where the cache has no such record any more.
    """

    before: PageWords | None
    now: PageWords | None
    length_change: int = 0


class Comparison:
    """What the pages of a cluster have in common, before and now; by that each of them is judged."""

    def __init__(self, pages: Sequence[Version]) -> None:
        self._before = _find_common(page.before for page in pages)
        self._now = _find_common(page.now for page in pages)
        same = sum(abs(page.length_change) <= _SAME_BYTES for page in pages)
        self._lengths_stay = same * 2 > len(pages)

    def has_turned(self, page: Version) -> bool:
        """Whether a page has lost its text, and has none of its own in its place."""
        if page.now is not None and self._has_own_text(page.now):
            return False
        if page.before is None:
            return not self._lengths_stay
        return self._has_lost_words(page.before, page.now or PageWords(self._now, frozenset()))

    def _has_own_text(self, now: PageWords) -> bool:
        own = now.words - self._now - now.echoes
        plain = sum(map(is_plain, own))
        # Lists of part numbers or readings are texts as well.
        return plain > _count_allowed(len(now.words), _OWN_OF_TEXT) or len(own) - plain > _OWN_TOKENS

    def _has_lost_words(self, before: PageWords, now: PageWords) -> bool:
        # Numbers change in pages that stay what they are: readings, prices, dates.
        words = {word for word in before.words - now.echoes if not word.isdigit()}
        own = words - self._before
        # A page with few words of its own stays what it is as long as the words that it shares with others stay.
        counted = own if len(own) >= _OWN_WORDS else words
        if not counted:
            return any(map(is_plain, now.words - self._before))
        # A long text has any two words.
        by_chance = len(counted) < _OWN_WORDS and len(now.words) > _MOST_TIMES * len(before.words)
        return by_chance or len(counted & now.words) * 2 < len(counted)


def _find_common(pages: Iterable[PageWords | None]) -> frozenset[str]:
    """The words that more than half of the first pages have."""
    known = [page for page in pages if page is not None][:_COMPARED]
    counts = Counter(word for page in known for word in page.words)
    return frozenset(word for word, count in counts.items() if count * 2 > len(known))
