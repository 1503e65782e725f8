"""Which of several copies is better: one order for copies, near copies and display URLs, in all sources (F2, F4, F6).

A page that answers itself is better than a URL that redirects to it. Then comes the one whose URL fits the document: it
stands in the folder or on the host of the document's own language, and not in that of another one; its own name is in the
title. Then the one without a query, with fewer segments, the shorter one, and the first by alphabet.

How a URL fits depends on the URL and on what copies have in common alone, so it is as lasting as the digest of the content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote


class LanguageFit(IntEnum):
    """What a URL says of the language of its document; the smallest is the best."""

    #: the tag of the document itself
    SAME_TAG = 0
    #: its language
    OWN = 1
    #: nothing, or the document tells no language
    NONE_NAMED = 2
    #: only another language
    OTHER = 3


class NameFit(IntEnum):
    """Where the words of a URL's own name stand in its document; the smallest is the best."""

    IN_TITLE = 0
    IN_FIRST_LINE = 1
    NOWHERE = 2


_NAME_FITS: Final = len(NameFit)
#: How the URL of a document fits that an earlier release has read: it says nothing of the language, or of the name.
UNKNOWN_FIT: Final = LanguageFit.NONE_NAMED * _NAME_FITS + NameFit.NOWHERE

#: Two letters that name a language in URLs: ISO 639-1, without codes that are common words of paths.
_CODES: Final = frozenset({
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "dv", "el", "en", "eo", "es", "et",
    "eu", "fa", "fi", "fo", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr", "hu", "hy", "ia", "id", "ig", "is",
    "it", "ja", "jv", "ka", "kk", "km", "kn", "ko", "ku", "ky", "la", "lb", "lo", "lt", "lv", "mg", "mi", "mk", "ml", "mn",
    "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "oc", "pa", "pl", "ps", "pt", "qu", "rm", "ro", "ru", "rw", "sa", "sd",
    "si", "sk", "sl", "sn", "sq", "sr", "st", "su", "sv", "sw", "ta", "te", "tg", "th", "ti", "tk", "tl", "tn", "tr", "tt",
    "ug", "uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu",
})  # fmt: skip
#: What is written for a language besides its code: older codes, and countries whose code is that of no language.
_ALIASES: Final = {
    "no": "nb", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro",
    "cn": "zh", "tw": "zh", "jp": "ja", "kr": "ko", "cz": "cs",
}  # fmt: skip
_KNOWN: Final = _CODES | _ALIASES.keys()
#: Most URLs have no such word that is a code.
_SHORT_WORD: Final = re.compile(r"(?<![a-z0-9])[a-z]{2,3}(?![a-z0-9])")
_TAG: Final = re.compile(r"([a-z]{2,3})(?:[-_@](?:[a-z]{2}|[a-z]{4}|[0-9]{3}|cyrillic|latin|valencia)){0,2}")
#: At the end of a name: manual-de, readme_pt_BR.
_JOINED_TAG: Final = re.compile(r"[-_]([a-z]{2}(?:[-_@](?:[a-z]{2}|[a-z]{4}))?)$")
#: Codes that end names as words: what-is, user_id, do-it.
_WORDS: Final = frozenset({"am", "as", "be", "ha", "he", "hi", "id", "is", "it", "la", "my", "pa", "ps", "se", "tt"})
_CODES_OF_NAMES: Final = _CODES - _WORDS
_LONGEST_TAG: Final = 24
_LANGUAGE_PARAMETERS: Final = frozenset({"hl", "lang", "language", "locale", "uselang"})
#: The last labels of a host name are its domain: the code of a country is that of no language.
_DOMAIN_LABELS: Final = 2
_LONGEST_EXTENSION: Final = 5
_WORD: Final = re.compile(r"[^\W_]+")
#: Names of pages that stand for their folder.
_FOLDER_NAMES: Final = frozenset({"", "index", "default", "home"})
#: Words with fewer letters are no names.
_FEWEST_LETTERS: Final = 2
#: So many characters of a name, a title and a first line are looked at.
_MOST_CHARS: Final = 300


class CopyOrder(NamedTuple):
    """The place of a document among copies; the smallest is the best.

    ``place`` is that of its source in the order of names, 0: its own.
    """

    redirected: bool
    url_fit: int
    has_query: bool
    segments: int
    length: int
    url: str
    place: int

    @property
    def language_fit(self) -> LanguageFit:
        """What its URL says of its language."""
        return LanguageFit(self.url_fit // _NAME_FITS)

    @property
    def name_fit(self) -> NameFit:
        """Where the words of its name stand."""
        return NameFit(self.url_fit % _NAME_FITS)


def rank(url: str) -> tuple[bool, int, int, str]:
    """The rank of a URL by itself; the smallest is the best: no query, few segments, short, first by alphabet."""
    return ("?" in url, url.count("/"), len(url), url)


def build_order(url: str, *, redirected: bool, url_fit: int | None, place: int = 0) -> CopyOrder:
    """The place of a document; ``url_fit`` as of ``find_fit``, None where it is not known."""
    return CopyOrder(redirected, UNKNOWN_FIT if url_fit is None else url_fit, *rank(url), place)


def find_fit(url: str, *, language: str, title: str, text: str) -> int:
    """How a URL fits its document, by the language, the title and the first line of that; the smallest is the best.

    ``language`` is a tag (BCP 47), empty where it is not known. Without a title of its own a document has none here.
    """
    by_language = _find_language_fit(url, language) if language else LanguageFit.NONE_NAMED
    return by_language * _NAME_FITS + _find_name_fit(url, title, text)


def describe_preference(better: CopyOrder, worse: CopyOrder) -> str | None:
    """Why one of two copies stands for the other one, as of that other one: ``its URL has a query``; None if it does not."""
    if not better < worse:
        return None
    if better.redirected != worse.redirected:
        return "it redirects, and that one answers itself"
    if better.language_fit != worse.language_fit:
        said = {
            LanguageFit.SAME_TAG: "exactly the language of the text",
            LanguageFit.OWN: "the language of the text",
            LanguageFit.NONE_NAMED: "no language",
            LanguageFit.OTHER: "another language than that of the text",
        }
        return f"its URL names {said[worse.language_fit]}, that one {said[better.language_fit]}"
    if better.name_fit != worse.name_fit:
        where = "title" if better.name_fit == NameFit.IN_TITLE else "first line of the text"
        return f"the {where} has the name of that URL, and not of its own"
    if better.has_query != worse.has_query:
        return "its URL has a query"
    if better.segments != worse.segments:
        return "its URL has more segments"
    if better.length != worse.length:
        return "its URL is longer"
    return (
        "that URL is the first by alphabet"
        if better.url != worse.url
        else "the source of that one is the first by name"
    )


def _find_language_fit(url: str, language: str) -> LanguageFit:
    own = _normalise(language)
    code = own.partition("-")[0]
    words = _SHORT_WORD.findall(url.lower())
    named = [] if code not in words and _KNOWN.isdisjoint(words) else list(_find_tags(url, code))
    if not named:
        # The start page of a site stands for itself, in whatever language it is.
        return LanguageFit.SAME_TAG if url.find("/", 8) == len(url) - 1 else LanguageFit.NONE_NAMED
    if own in named:
        return LanguageFit.SAME_TAG
    return LanguageFit.OWN if any(_get_code(tag) == code for tag in named) else LanguageFit.OTHER


def _find_tags(url: str, own: str) -> Iterator[str]:
    """The tags of languages in the labels of the host, in the folders, in the name of the file, and in the query.

    What is no known code, and not that of the language ``own``, may be any word.
    """
    before_query, _, query = url.lower().partition("?")
    _, _, address = before_query.partition("://")
    host, *segments = address.split("/")
    *folders, name = segments or [""]
    places = [*host.split(".")[:-_DOMAIN_LABELS], *folders]
    stem, *endings = name.split(".")
    if len(endings) > 1:
        # A single one is the type of the file: .pl is Perl.
        places += endings
    elif not folders and not endings:
        # /de is /de/ on many sites.
        places.append(name)
    for pair in query.split("&") if query else ():
        key, _, value = pair.partition("=")
        if key in _LANGUAGE_PARAMETERS:
            places.append(value)
    for place in places:
        if 2 <= len(place) <= _LONGEST_TAG and _TAG.fullmatch(place):
            tag = _normalise(place)
            if _get_code(tag) in _CODES or _get_code(tag) == own:
                yield tag
    for place in (*folders, stem):
        if joined := _JOINED_TAG.search(place):
            tag = _normalise(joined[1])
            if _get_code(tag) in _CODES_OF_NAMES or _get_code(tag) == own:
                yield tag


def _get_code(tag: str) -> str:
    return tag.partition("-")[0]


@lru_cache(maxsize=256)
def _normalise(tag: str) -> str:
    code, *rest = re.split("[-_@]", tag.lower())
    return "-".join([_ALIASES.get(code, code), *rest])


def _find_name_fit(url: str, title: str, text: str) -> NameFit:
    name = _find_name(url)
    if name is None:
        return NameFit.IN_TITLE
    words = set(_WORD.findall(name[:_MOST_CHARS].casefold()))
    if max(map(len, words), default=0) < _FEWEST_LETTERS:
        return NameFit.NOWHERE
    if words.issubset(_WORD.findall(title[:_MOST_CHARS].casefold())):
        return NameFit.IN_TITLE
    line = text[:_MOST_CHARS].partition("\n")[0]
    return NameFit.IN_FIRST_LINE if words.issubset(_WORD.findall(line.casefold())) else NameFit.NOWHERE


def _find_name(url: str) -> str | None:
    """The last segment that names anything, without its endings; None for the start page of a host.

    That needs no name: all pages of the host are below it.
    """
    # The scheme, nothing, the host and the path.
    segments = url.partition("?")[0].split("/")[3:]
    for segment in segments[:-3:-1]:
        stem = segment.partition(".")[0]
        if stem.lower() in _FOLDER_NAMES:
            continue
        rest, dot, ending = segment.rpartition(".")
        while dot and len(ending) <= _LONGEST_EXTENSION and ending[:1].isalpha():
            segment = rest  # noqa: PLW2901
            rest, dot, ending = segment.rpartition(".")
        return unquote(segment) if "%" in segment else segment
    return "" if len(segments) > 2 else None
