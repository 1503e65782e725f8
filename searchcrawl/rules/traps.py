"""The patterns of a URL: what is alike but for numbers, ids and parameter values (L8, F5; X-T1–X-T6).

Pure and quick: a page pays for them once, a link only where a pattern is cut or limited.
"""

from __future__ import annotations

import re
from collections.abc import Container
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

#: What stands in a pattern for a number or an id.
_VARIABLE: Final = "{n}"
# Longest first: a UUID; hex digits; letters and digits in turn; anything long with a digit. Escapes are no ids.
_ID: Final = re.compile(
    r"(?<![0-9A-Za-z%])(?:"
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}(?![0-9A-Za-z])"
    r"|(?:[A-Za-z]++[0-9]++[A-Za-z]|[0-9]++[A-Za-z]++[0-9])[0-9A-Za-z]*+"
    r"|(?=[A-Za-z]*[0-9])[0-9A-Za-z]{16,}+"
    r")"
)
_NUMBER: Final = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])[0-9]+")
# 2026-11-21, 12.34.56: one variable, as 20261121 is.
_JOINED: Final = re.compile(r"\{n\}(?:[-_.,:~+]\{n\})+")
_ADDRESS: Final = re.compile(r"[0-9.]+")
_HAS_DIGIT: Final = re.compile("[0-9]")
_FEWEST_LABELS: Final = 3


class Level(IntEnum):
    """How much URLs of a pattern may differ: the higher, the more."""

    #: numbers, ids and parameter values
    VALUES = 0
    #: the set of parameters, or the last segment of the path
    FACETS = 1
    #: all below a first segment of the path
    BRANCH = 2
    #: all at a host
    HOST = 3
    #: all at the hosts below one
    HOSTS = 4


class Pattern(NamedTuple):
    """A pattern as it is shown: ``http://a.test/calendar/{n}?month&year``; ``*`` stands for anything."""

    level: Level
    text: str


def patterns_of(url: str) -> list[Pattern]:
    """The patterns that ``url`` (an identity) belongs to, the narrowest first, each text once.

    One of level VALUES is among them only where the URL has a number, an id or a query.
    """
    slash = url.find("/", 8)
    origin, above = _origin(url[:slash])
    path, mark, query = url[slash:].partition("?")
    shape = shape_of(path)
    rest = "?*" if mark else ""
    found: list[Pattern] = []
    if mark:
        found = [Pattern(Level.VALUES, f"{origin}{shape}?{_names(query)}"), Pattern(Level.FACETS, f"{origin}{shape}?*")]
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


def cut_by(url: str, cuts: Container[str], proven: Container[str]) -> str | None:
    """Which of the patterns ``cuts`` ``url`` belongs to; those of a narrower one whose pages are ``proven`` are spared."""
    for _, text in patterns_of(url):
        if text in cuts:
            return text
        if text in proven:
            return None
    return None


def values_pattern(url: str) -> str | None:
    """The pattern of level VALUES alone, None where no other URL can be alike."""
    slash = url.find("/", 8)
    origin, _ = _origin(url[:slash])
    path, mark, query = url[slash:].partition("?")
    shape = shape_of(path)
    if mark:
        return f"{origin}{shape}?{_names(query)}"
    return None if shape == path and origin == url[:slash] else origin + shape


def shape_of(text: str) -> str:
    """``text`` with ``{n}`` for each number and id."""
    if _HAS_DIGIT.search(text) is None:
        return text
    shape = _NUMBER.sub(_VARIABLE, _ID.sub(_VARIABLE, text))
    return _JOINED.sub(_VARIABLE, shape) if shape.count(_VARIABLE) > 1 else shape


@lru_cache(maxsize=4096)
def _origin(origin: str) -> tuple[str, str]:
    """``scheme://host[:port]`` with the numbers of its name left out, and the one of all hosts beside it, or ""."""
    scheme, _, netloc = origin.partition("://")
    host, colon, port = netloc.partition(":")
    if netloc.startswith("[") or _ADDRESS.fullmatch(host):
        return origin, ""
    # One label at a time: no variable reaches over a dot.
    labels = [shape_of(label) for label in host.split(".")]
    above = ""
    if len(labels) >= _FEWEST_LABELS and labels[0] != "www":
        above = f"{scheme}://*.{'.'.join(labels[1:])}{colon}{port}"
    return f"{scheme}://{'.'.join(labels)}{colon}{port}", above


def _names(query: str) -> str:
    """The names of the parameters, sorted, each once: their order and number are of no account."""
    if "&" not in query:
        return shape_of(query.partition("=")[0])
    return "&".join(sorted({shape_of(part.partition("=")[0]) for part in query.split("&") if part}))
