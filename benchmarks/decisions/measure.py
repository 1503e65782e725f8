"""How often the rules of thumb were wrong about the pages of a site: what of a page was lost, what was not its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from benchmarks.decisions.languages import is_same, tell_language
from benchmarks.decisions.truth import Truth, count_words

#: Words that so large a share of a site's pages have are not counted as a page's own.
_COMMON_SHARE: Final = 0.6
#: Fewer pages say nothing of what a site repeats.
_FEWEST_PAGES: Final = 5
_FEWEST_WORDS: Final = 20
#: From this share on of its own words a page is lost, and of the stored ones it is navigation.
_MOST_SHARE: Final = 0.1
#: A title that so many pages of a host have tells none of them.
SHARED_BY: Final = 5
_SHOWN_WORDS: Final = 25


@dataclass(frozen=True, slots=True)
class Stored:
    """A page as it is found: its title, text and language in the index."""

    url: str
    title: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Wrong:
    """A page about which a rule was wrong: how much of it, as a share, and what."""

    url: str
    share: float
    what: str


@dataclass(slots=True, kw_only=True)
class Figures:
    """Of a site: how many pages were measured by each truth, and about which the rules were wrong.

    ``titled`` are the pages whose titles were looked at.
    """

    titled: int = 0
    pages: int = 0
    with_words: int = 0
    with_language: int = 0
    lost: list[Wrong] = field(default_factory=list)
    navigation: list[Wrong] = field(default_factory=list)
    titles: list[Wrong] = field(default_factory=list)
    languages: list[Wrong] = field(default_factory=list)
    own_words: int = 0
    own_words_lost: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For a file of JSON."""
        return asdict(self)


def find_common_words(truths: Sequence[Truth]) -> frozenset[str]:
    """The words that a site repeats, from some of its pages."""
    if len(truths) < _FEWEST_PAGES:
        return frozenset()
    pages = Counter(word for truth in truths for word in truth.words)
    return frozenset(word for word, count in pages.items() if count >= _COMMON_SHARE * len(truths))


class Measuring:
    """Takes the pages of a site one by one, each with its truth; ``common`` are the words that the site repeats."""

    def __init__(self, common: frozenset[str]) -> None:
        self._common = common
        self._by_title: dict[str, list[str]] = {}
        self._figures = Figures()

    def add_title(self, stored: Stored) -> None:
        """Takes the title of a page."""
        self._figures.titled += 1
        self._by_title.setdefault(stored.title.strip(), []).append(stored.url)

    def add(self, stored: Stored, truth: Truth) -> None:
        """Measures the text and the language of a page."""
        figures = self._figures
        figures.pages += 1
        words = count_words(stored.text)
        self._measure_loss(stored.url, words, truth)
        if truth.words and words.total() >= _FEWEST_WORDS:
            extra = words - truth.words
            if extra.total() > _MOST_SHARE * words.total():
                figures.navigation.append(_wrong(stored.url, extra, words.total()))
        if language := tell_language(truth.prose):
            figures.with_language += 1
            if not is_same(stored.language, language):
                figures.languages.append(Wrong(stored.url, 1.0, f"{stored.language or 'none'} for {language}"))

    def _measure_loss(self, url: str, words: Counter[str], truth: Truth) -> None:
        own = Counter({word: count for word, count in truth.words.items() if word not in self._common})
        if (total := own.total()) < _FEWEST_WORDS:
            return
        missing = own - words
        self._figures.with_words += 1
        self._figures.own_words += total
        self._figures.own_words_lost += missing.total()
        if missing.total() > _MOST_SHARE * total:
            self._figures.lost.append(_wrong(url, missing, total))

    def finish(self) -> Figures:
        """The figures of all pages."""
        self._figures.titles = list(_find_shared(self._by_title))
        for several in (self._figures.lost, self._figures.navigation):
            several.sort(key=lambda one: -one.share)
        return self._figures


def _find_shared(by_title: dict[str, list[str]]) -> Iterable[Wrong]:
    for title, urls in sorted(by_title.items(), key=lambda item: -len(item[1])):
        if not title or len(urls) >= SHARED_BY:
            yield from (Wrong(url, 1.0, f"{title or '(empty)'} ({len(urls)} pages)") for url in urls)


def _wrong(url: str, words: Counter[str], total: int) -> Wrong:
    shown = " ".join(word if count == 1 else f"{word}*{count}" for word, count in words.most_common(_SHOWN_WORDS))
    return Wrong(url, round(words.total() / total, 3), shown)
