"""How similar the answers of a host to unknown paths are: the signature of its placeholder page (L9, X-R17, 965).

A placeholder page has status 200 and no content: a soft 404, a login form, a notice that the site is down. A host is
asked for two paths that cannot exist. The two answers show how much such answers differ by themselves (the repeated
path, a clock, a token). A page that does not differ more from them is a placeholder page.
"""

from __future__ import annotations

import posixpath
import re
import secrets
import string
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from searchcrawl import urls
from searchcrawl.items import Page, Withdrawn
from searchcrawl.rules.turned_pages import is_plain, split_url, words_of
from searchcrawl.soft404.signs import Outline
from searchcrawl.soft404.taken_pages import TakenPage

#: Of a host with fewer pages no new one is worth two more requests, whatever it looks like.
LEAST_PAGES: Final = 4
#: A page may differ by one and a half times the difference of the two answers, and by one more word in two hundred.
_MARGIN: Final = 1.5
_SLACK: Final = 0.005
#: Two texts are not alike if one has this many times the words of the other.
_MOST_TIMES: Final = 4
#: Answers that differ more than this are not one page: the host makes up a page for each path.
_MAX_DIFFERENCE: Final = 0.3
_PROBE_LETTERS: Final = 20
_SUFFIX: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}")

#: Words, and pairs of neighbours.
Features = frozenset[str | tuple[str, str]]


def probe_url(url: str) -> str:
    """A URL that cannot exist: random letters in the folder of ``url``, with the ending of its name, no query."""
    parsed = urlsplit(url)
    folder, name = posixpath.split(parsed.path or "/")
    ending = _SUFFIX.fullmatch(posixpath.splitext(name)[1])
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(_PROBE_LETTERS))
    return urls.resolve(f"{folder.rstrip('/')}/{letters}{ending[0] if ending else ''}", url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The words of a page, and the words of the requested URL, which the page may repeat; ``outline`` is that of its text."""

    title: tuple[str, ...]
    text: tuple[str, ...]
    echoes: frozenset[str]
    outline: Outline

    @classmethod
    def of(cls, page: Page, *, asked: str) -> Self:
        return cls(
            title=tuple(words_of(page.title)),
            text=tuple(words_of(page.all_text)),
            echoes=_words_of_url(asked),
            outline=Outline.of(page.all_text, asked=asked),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The answer of a host to any path: one such answer, and how far title and text of a second one are from it (0 to 1).

    ``landing`` is the URL to which the host redirects such requests; None if it answers them itself.
    """

    sample: Sample
    title_spread: float
    text_spread: float
    landing: str | None = None

    @classmethod
    def between(cls, one: Sample, other: Sample, *, landing: str | None = None) -> Self | None:
        """The signature of two answers; None if they have too little in common, or no text."""
        # The words of their URLs do not count.
        echoes = one.echoes | other.echoes
        text = _distance(one.text, other.text, echoes)
        if not any(one.text) or not any(other.text) or text > _MAX_DIFFERENCE:
            return None
        return cls(
            sample=one, title_spread=_distance(one.title, other.title, echoes), text_spread=text, landing=landing
        )

    def lands_on(self, place: int | None) -> bool:
        """Whether a page is content although it is this answer: it is a home (None), or the page to which redirects lead."""
        return place is None or (self.landing is not None and place == urls.key(self.landing))

    def matches(self, page: Page, *, asked: str) -> bool:
        """Whether ``page``, the answer to ``asked``, is such an answer too."""
        sample, echoes = self.sample, self.sample.echoes | _words_of_url(asked)
        # Most pages have a title or length of their own: then their words need not be compared.
        if _distance(words_of(page.title), sample.title, echoes) > self.title_spread:
            return False
        words = words_of(page.all_text)
        if not any(words) or not len(sample.text) / _MOST_TIMES <= len(words) <= len(sample.text) * _MOST_TIMES:
            return False
        return _distance(words, sample.text, echoes) <= _MARGIN * self.text_spread + _SLACK


def _words_of_url(asked: str) -> frozenset[str]:
    return frozenset(filter(is_plain, split_url(asked)))


def _distance(one: Sequence[str], other: Sequence[str], echoes: frozenset[str]) -> float:
    return distance(features_of(one, without=echoes), features_of(other, without=echoes))


def features_of(words: Iterable[str], *, without: Collection[str] = ()) -> Features:
    """All of ``words`` and all pairs of neighbours, but for blank ones and those that hold one of ``without``."""
    kept = [word if word not in without else "" for word in words] if without else list(words)
    return frozenset(filter(None, kept)).union(filter(all, pairwise(kept)))


def distance(one: Features, other: Features) -> float:
    """How far two texts are from each other: 0 for the same, 1 where they have nothing in common (Jaccard)."""
    together = len(one | other)
    return 1 - len(one & other) / together if together else 0.0


class ProbeResult(NamedTuple):
    """What a host answers to any path (None: it says that there is none), and whether it did so before this run, too."""

    signature: Signature | None
    answers_any: bool = False


class Probes:
    """Has the processes of one run ask each host once. This one is for a single process, which knows what it asked.

    ``withdraw`` hands pages to the writer that were taken and are to be judged again.
    """

    def __init__(self, withdraw: Callable[[Withdrawn], object] = lambda withdrawn: None) -> None:
        self.withdraw = withdraw

    #: whether other processes have pages of the same hosts
    are_shared = False

    async def note_taken(self, origin: str, page: TakenPage) -> bool:
        """Notes a page that is to be taken for content; returns whether it is like one that another process has taken."""
        return False

    async def begin(self, origin: str, *, again: bool) -> ProbeResult | None:
        """What another process has found out; None: this one is to ask, and calls ``end``.

        ``again``: what was found before does not count any more.
        """
        return None

    def end(self, origin: str, result: ProbeResult | None) -> None:
        """Notes what came of a probe; None: the host could not be asked."""
