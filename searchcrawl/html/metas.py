"""What meta elements and headers tell a crawler: robots directives (B10, L5), and a refresh."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.items import Headers

#: Directives that have a value; in a header any other word before a colon is the name of an agent.
_WITH_VALUE: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_NOINDEX: Final = frozenset({"noindex", "none"})
_NOFOLLOW: Final = frozenset({"nofollow", "none"})
_PREFIX: Final = re.compile(r"\s*([^\s:,;][^:,;]*+)(?<!\s):")
#: No page needs more directives than fit in here.
_MAX_CHARACTERS: Final = 4_096
_WORD: Final = re.compile(r"[^\s;]+")

_SPACE: Final = r"[\t\n\x0c\r ]*"
# Whatever has been read is not given back: a number of thousands of digits would be tried at each of them.
_TIME: Final = re.compile(rf"{_SPACE}+(?:([0-9]++)|(?=\.))[0-9.]*+(?:\Z|(?=[;,\t\n\x0c\r ]){_SPACE}+[;,]?{_SPACE}+)")
_URL: Final = re.compile(rf"url{_SPACE}+={_SPACE}+", re.IGNORECASE)
#: A page that is shown for longer before its refresh is content, and the target of the refresh is a link.
MAX_REFRESH_SECONDS: Final = 100
_MAX_SECONDS: Final = 2**31


class RobotsDirectives(NamedTuple):
    """Whether the page may be indexed, until when, and whether its links may be followed.

    ``noindex_by_header`` and ``nofollow_by_header``: a header alone says that it, or they, may not.
    ``unavailable_ms`` is the time in the future (ms since 1970) from which it may not be indexed; None without one.
    """

    noindex: bool = False
    noindex_by_header: bool = False
    nofollow: bool = False
    nofollow_by_header: bool = False
    unavailable_ms: int | None = None


NO_DIRECTIVES: Final = RobotsDirectives()


def list_robots_tags(headers: Headers) -> list[str]:
    """The values of all X-Robots-Tag headers."""
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"x-robots-tag"]


def read_robots_directives(
    *, metas: Iterable[tuple[str, str]], headers: Iterable[str], user_agent: str, now: datetime
) -> RobotsDirectives:
    """Adds up all restrictions for every agent, and those for ``user_agent``.

    ``metas`` are names and contents of meta elements, ``headers`` the values of X-Robots-Tag. A
    date of ``unavailable_after`` before ``now`` counts as noindex; one that cannot be read is ignored.
    """
    agents = _list_agent_names(user_agent)
    words: set[str] = set()
    moments: list[datetime] = []
    for name, content in metas:
        agent = name.strip().lower()
        if agent == "robots" or agent in agents:
            words |= _collect_directives(content, agents=None, moments=moments)
    in_metas = bool(words & _NOINDEX) or any(moment < now for moment in moments)
    nofollow_in_metas = bool(words & _NOFOLLOW)
    for value in headers:
        words |= _collect_directives(value, agents=agents, moments=moments)
    if not words and not moments:
        return NO_DIRECTIVES
    first = min(moments, default=None)
    over = first is not None and first < now
    noindex = over or not words.isdisjoint(_NOINDEX)
    return RobotsDirectives(
        noindex=noindex,
        noindex_by_header=noindex and not in_metas,
        nofollow=not words.isdisjoint(_NOFOLLOW),
        nofollow_by_header=not nofollow_in_metas and not words.isdisjoint(_NOFOLLOW),
        unavailable_ms=None if first is None or over else clock.to_ms(first),
    )


# All pages of a run have the same one.
@lru_cache(maxsize=16)
def _list_agent_names(user_agent: str) -> frozenset[str]:
    """The names by which a directive may address us: the whole configured name, and its product token."""
    whole = user_agent.strip().lower()
    token = re.split(r"[/\s]", whole, maxsplit=1)[0]
    return frozenset({whole, token}) - {""}


def _collect_directives(content: str, *, agents: frozenset[str] | None, moments: list[datetime]) -> set[str]:
    """The directives in ``content`` that apply to us; after the name of an agent and a colon, they are for that agent only.

    Without ``agents``, as in a meta element, whose name says for whom it is, what is before a colon is a directive. Dates of ``unavailable_after`` are added to ``moments``.
    """
    words: set[str] = set()
    applies = True
    parts = content[:_MAX_CHARACTERS].split(",")
    index = 0
    while index < len(parts):
        part, position = parts[index], 0
        index += 1
        while (match := _PREFIX.match(part, position)) and agents is not None and match[1].lower() not in _WITH_VALUE:
            applies = match[1].lower() in agents
            position = match.end()
        if match is None:
            words.update(_WORD.findall(part[position:].lower()) if applies else ())
        elif match[1].lower() == "unavailable_after":
            moment, length = _read_date([part[match.end() :], *parts[index : index + 1]])
            index += length - 1
            if applies and moment is not None:
                moments.append(moment)
    return words


def _read_date(parts: list[str]) -> tuple[datetime | None, int]:
    """A date, and how many of ``parts`` (text split at commas) it takes: as few as possible, and more if it has commas."""
    for length in range(1, len(parts) + 1):
        moment = clock.parse_moment(",".join(parts[:length]).strip())
        if moment is not None:
            return moment, length
    return None, 1


class Refresh(NamedTuple):
    """``seconds`` to wait; ``url`` as written, empty for the page itself (HTML Standard, "shared declarative refresh steps")."""

    seconds: int
    url: str


def parse_refresh(content: str) -> Refresh | None:
    """Reads the content of a meta refresh or a Refresh header; None where browsers ignore it."""
    match = _TIME.match(content)
    if match is None:
        return None
    digits = match[1] or "0"
    seconds = min(int(digits), _MAX_SECONDS) if len(digits) < 11 else _MAX_SECONDS
    return Refresh(seconds, _read_target(content[match.end() :]))


def _read_target(rest: str) -> str:
    prefix = _URL.match(rest)
    if prefix is not None:
        rest = rest[prefix.end() :]
    elif rest[:1] in {"u", "U"}:
        return rest.strip("\t\n\x0c\r ")
    if rest[:1] in {'"', "'"}:
        rest = rest[1:].partition(rest[0])[0]
    return rest.strip("\t\n\x0c\r ")
