"""The patterns of a URL: sets of URLs that differ in numbers, ids and parameter values (L8, F5; X-T1–X-T6). Pure.

They are computed once for each page, and for links only if a pattern is cut or limited.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

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
